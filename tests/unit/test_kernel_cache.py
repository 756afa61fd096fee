"""A second process must load every kernel from disk: no compiling at start-up."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import pytest

from edgegraft.kernels import compiler
from edgegraft.kernels.compiler import stamp_of

# Uses each kernel of the counting path once, then lists those that had to be compiled.
SCRIPT = """
import importlib, json, pkgutil
import numpy as np
import edgegraft.kernels
from edgegraft.ingest import pack
from edgegraft.table import PackedTable
from edgegraft.datasets import make_scale_free
from edgegraft.optimize import fit_parameters
from edgegraft.counts import PairCounts, mutual_information

data = make_scale_free(8, n_states=3, n_rows=50, random_state=0)
codes = np.column_stack([np.arange(200) % s for s in (2, 5, 21, 70)])
codes[0, 1] = -1
table = PackedTable.from_codes(codes)
counts = PairCounts(table, n_jobs=2)
edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
mutual_information(counts.pairs(edges))
PairCounts(table, weights=np.ones(200)).pairs(edges)
pack(codes.astype(np.int16), bins=4, drop=["x3"]).codes()
model, info = fit_parameters(table, edges[:2], penalty=0.01, ridge=0.01)

compiled, loaded = [], 0
for module in pkgutil.walk_packages(edgegraft.kernels.__path__, "edgegraft.kernels."):
    members = vars(importlib.import_module(module.name))
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
from edgegraft.kernels.counting.bitplanes import pack_table
PackedTable.from_codes(np.eye(2, dtype=int)).planes
print(json.dumps({"compiled": len(pack_table.stats.cache_misses)}))
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


def test_kernels_of_other_sources_are_compiled_again(tmp_path):
    other = "import edgegraft.kernels.compiler as c; c.stamp_of = lambda path: 'another version'\n"
    assert run_once(SMALL, tmp_path)["compiled"] > 0
    assert run_once(SMALL, tmp_path)["compiled"] == 0
    assert run_once(other + SMALL, tmp_path)["compiled"] > 0
    assert run_once(SMALL, tmp_path)["compiled"] > 0


def test_a_stamp_covers_the_files_that_a_kernel_imports(tmp_path):
    (tmp_path / "part").mkdir()
    first, second, third = (tmp_path / "part" / name for name in ("a.py", "b.py", "c.py"))
    first.write_text("from .b import f\n")
    second.write_text("from edgegraft.kernels.part.c import g\n")
    third.write_text("g = 1\n")
    before = {path: stamp_of(path, tmp_path) for path in (first, second, third)}
    compiler._read.cache_clear()
    third.write_text("g = 2\n")
    assert all(stamp_of(path, tmp_path) != before[path] for path in before)
    compiler._read.cache_clear()
    first.write_text("from .b import f, h\n")
    third.write_text("g = 1\n")
    assert stamp_of(first, tmp_path) != before[first]
    assert stamp_of(second, tmp_path) == before[second]


def test_kernels_work_when_no_folder_can_be_written(tmp_path):
    refuse = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []\n"
    )
    assert run_once(refuse + SMALL.replace("cache_misses", "cache_hits"), "")["compiled"] == 0
    warned = "import warnings; warnings.simplefilter('error')\n" + refuse.split("\n", 1)[1] + SMALL
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run_once(warned, "")
    assert "NUMBA_CACHE_DIR" in failed.value.stderr


def test_an_index_that_cannot_be_read_is_one_that_is_not_there(tmp_path):
    file = compiler._CacheFile(str(tmp_path), "kernel", "stamp")
    for damage in (b"cedgegraft.kernels.compiler\nGone\n.", b"", b"\x80\x04\x95r\x08", b"\xff"):
        (tmp_path / "kernel.nbi").write_bytes(pickle.dumps(file._version) + damage)
        assert file._load_index() == {}
