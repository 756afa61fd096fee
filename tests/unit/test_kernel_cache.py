"""A second process must load every kernel from disk: no compiling at start-up."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from llvmlite import binding
from numba.core.errors import TypingError

from edgegraft.core.threads import interruptible
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
from edgegraft.kernels.solver import dot
dot(np.ones(3), np.ones(3))
print(json.dumps({"compiled": len(dot.stats.cache_misses)}))
"""


def run_once(script, cache_dir=None, **variables):
    """Run a script; none of the kernels that an installed package brings are used.

    Others are compiled for the processor, not for the level of the stored results.
    """
    given = {name: v for name, v in os.environ.items() if not name.startswith("NUMBA_CPU_")}
    if cache_dir is not None:
        variables["NUMBA_CACHE_DIR"] = str(cache_dir)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**given, "EDGEGRAFT_KERNELS": "none", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_second_process_compiles_nothing():
    run_once(SCRIPT)  # in the usual folder, where most kernels are already
    second = run_once(SCRIPT)
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
    stamp_of.cache_clear()
    third.write_text("g = 2\n")
    assert all(stamp_of(path, tmp_path) != before[path] for path in before)
    stamp_of.cache_clear()
    first.write_text("from .b import f, h\n")
    third.write_text("g = 1\n")
    assert stamp_of(first, tmp_path) != before[first]
    assert stamp_of(second, tmp_path) == before[second]


def test_kernels_work_when_no_folder_can_be_written(tmp_path):
    refuse = "import edgegraft.kernels.compiler as c; c.user_folder = lambda: None\n"
    assert run_once(refuse + SMALL.replace("cache_misses", "cache_hits"), "")["compiled"] == 0
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run_once("import warnings; warnings.simplefilter('error')\n" + refuse + SMALL, "")
    assert "NUMBA_CACHE_DIR" in failed.value.stderr


def test_a_compilation_that_fails_or_is_given_up_is_over():
    @compiler.kernel
    def unknown(x):
        return x.no_such_attribute

    compiled = compiler.COMPILATION
    with pytest.raises(TypingError):
        unknown(np.ones(3))
    assert compiled.line == ""
    assert gc.isenabled()
    count = compiled._count
    with interruptible() as interruption:
        interruption.asked = True
        with pytest.raises(KeyboardInterrupt):
            unknown(np.ones(3))
        assert compiled._count == count
        interruption.keeps = True
        with pytest.raises(TypingError):
            unknown(np.ones(3))


def test_the_file_of_a_kernel_does_not_depend_on_the_order_of_a_set():
    @compiler.kernel(fastmath={"contract", "reassoc", "nsz", "arcp"})
    def double(x):
        return x + x

    options = dict(double._cache._options)
    assert options["fastmath"] == "['arcp', 'contract', 'nsz', 'reassoc']"


def test_a_damaged_file_is_one_that_is_not_there(tmp_path):
    run_once(SMALL, tmp_path)
    files = list(tmp_path.glob("edgegraft/*.nbc"))
    for damage in (b"cedgegraft.kernels.compiler\nGone\n.", b"", b"\x80\x04\x95r\x08", b"\xff"):
        files[0].write_bytes(damage)
        assert compiler._load(files[0]) is None
    assert run_once(SMALL, tmp_path)["compiled"] in (0, 1)
    assert set(tmp_path.glob("edgegraft/*")) == set(files)


def test_shipped_kernels_are_used_on_processors_of_their_level(tmp_path):
    levels = compiler.LEVELS[binding.get_process_triple().split("-")[0]]
    level = list(levels)[-1]
    built, shipped, unused = (tmp_path / name for name in ("built", "shipped", "unused"))
    run_once(SMALL, built, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="")
    shipped.mkdir()
    (built / "edgegraft").rename(shipped / level)
    install = (
        "import pathlib, edgegraft.kernels.compiler as c\n"
        f"c.SHIPPED = pathlib.Path({str(shipped)!r})\n"
    )
    assert run_once(install + SMALL, unused, EDGEGRAFT_KERNELS="")["compiled"] == 0
    assert not list(unused.rglob("*.nbc"))
    assert run_once(install + SMALL, unused, EDGEGRAFT_KERNELS="native")["compiled"] > 0
    beyond = "for levels in c.LEVELS.values(): levels.update(dict.fromkeys(levels, {'to come'}))\n"
    more = tmp_path / "more"
    assert run_once(install + beyond + SMALL, more, EDGEGRAFT_KERNELS="")["compiled"] > 0


def test_no_two_kernel_files_share_a_name():
    # A kernel that is saved replaces those of other sources, which it knows by the file's name.
    names = [path.name for path in compiler.SHIPPED.parent.rglob("*.py") if path.stem != "__init__"]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("parts", [(), ("x",), (1, 2, 3, 4, 5, 6)])
def test_a_file_that_is_read_and_cannot_be_rebuilt_is_one_that_is_not_there(tmp_path, parts):
    run_once(SMALL, tmp_path)
    for file in tmp_path.glob("edgegraft/*.nbc"):
        file.write_bytes(pickle.dumps(parts))
    assert run_once(SMALL, tmp_path)["compiled"] >= 1
    assert run_once(SMALL, tmp_path)["compiled"] == 0
