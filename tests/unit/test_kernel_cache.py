"""A second process must load every kernel from disk: no compiling at start-up."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

# Uses each kernel of the counting path once, then lists those that had to be compiled.
SCRIPT = """
import importlib, json, pkgutil
import numpy as np
import edgegraft.kernels
from edgegraft.ingest import pack
from edgegraft.table import PackedTable
from edgegraft.datasets import make_scale_free
from edgegraft.optimize import fit_parameters
from edgegraft.counts import CachedCounts, LocalCounts, mutual_information

data = make_scale_free(8, n_states=3, n_rows=50, random_state=0)
codes = np.column_stack([np.arange(200) % s for s in (2, 5, 21, 70)])
codes[0, 1] = -1
table = PackedTable.from_codes(codes)
counts = CachedCounts(LocalCounts(table, n_jobs=2))
edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
mutual_information(counts.pairs(edges))
LocalCounts(table, weights=np.ones(200)).pairs(edges)
pack(codes.astype(np.int16), bins=4, drop=["x3"]).codes()
model, info = fit_parameters(table, edges[:2], penalty=0.01, ridge=0.01)

compiled, loaded = [], 0
for module in pkgutil.iter_modules(edgegraft.kernels.__path__):
    members = vars(importlib.import_module(f"edgegraft.kernels.{module.name}"))
    for name, kernel in members.items():
        if hasattr(kernel, "py_func") and hasattr(kernel, "stats"):
            loaded += sum(kernel.stats.cache_hits.values())
            if kernel.stats.cache_misses:
                compiled.append(f"{module.name}.{name}")
print(json.dumps({"compiled": sorted(set(compiled)), "loaded": loaded}))
"""


# Uses one small kernel.
SMALL = """
import json
import numpy as np
from edgegraft.table import PackedTable
from edgegraft.kernels.counting.bitplanes import largest_code
PackedTable.from_codes(np.eye(2, dtype=int))
print(json.dumps({"compiled": len(largest_code.stats.cache_misses)}))
"""


def run_once(script, cache_dir):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache_dir)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    first = run_once(SCRIPT, tmp_path)
    assert first["compiled"], "the first process found kernels in an empty cache"
    second = run_once(SCRIPT, tmp_path)
    assert second["compiled"] == []
    assert second["loaded"] > 10


def test_kernels_of_other_sources_are_dropped(tmp_path):
    assert run_once(SMALL, tmp_path)["compiled"] > 0
    assert run_once(SMALL, tmp_path)["compiled"] == 0
    (stamp,) = tmp_path.rglob("edgegraft-kernels.sha256")
    kept = stamp.read_text()
    stamp.write_text("of another version")
    assert run_once(SMALL, tmp_path)["compiled"] > 0
    assert stamp.read_text() == kept
