"""The kernels that a first fit waits for longest, which several processes compile at once.

python -m edgegraft.kernels.plan CLAIMS     # what a helper runs
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numba import typeof

from edgegraft.kernels import compile_workers
from edgegraft.kernels.conditionals import effective_scores as tests
from edgegraft.kernels.conditionals import pseudolikelihood as sums
from edgegraft.kernels.conditionals.lookup import Groups, fill_joint, find_rows, sum_out
from edgegraft.kernels.conditionals.row_conditionals import Neighbours, log_conditionals
from edgegraft.kernels.conditionals.softmax import softmax_block
from edgegraft.kernels.solver import dot


def planned() -> list[tuple[Any, tuple[Any, ...], Path]]:
    """Return kernels, argument types and files, what a first fit needs last before the rest.

    A first fit begins with `work_bundles`, for which the kernels that it calls are needed.
    """
    found = []
    for kernel, *arguments in _examples():
        types = tuple(map(typeof, arguments))
        path = kernel._cache.path_of(types, kernel.targetctx)
        if path is not None:
            found.append((kernel, types, path))
    return found


def _examples() -> list[tuple[Any, ...]]:
    """Return kernels with arguments of the types that a table of categories gives them."""
    k, kk, n, nn = np.zeros(1, np.int64), np.zeros((1, 1), np.int64), *_empty(np.int32)
    d, dd, ddd, s, ss = *_empty(np.float64), np.zeros((1, 1, 1)), *_empty(np.float32)
    cells, weights, theta, offsets = (_fixed(of) for of in (np.zeros((1, 1), np.uint8), s, d, k))
    columns = sums.Columns(cells, weights, k, k, np.zeros(1, bool))
    bundles, groups = sums.Bundles(kk, k), Groups(*[k] * 9)
    kept = sums.Kept(s, k, np.zeros(1, bool))
    scratch = sums.Scratch(d, s, s, s, ss, d, n, d, d, nn)
    design = tests.Design(0, k, k, kk)
    return [
        (sum_out, groups, 0, k, 0, d, d, d),
        (sums._scatter_block, s, n, 0, 0, s),
        (softmax_block, s, s, s, d, 0, 0, True),
        (sums._place, columns, bundles, 0, 0, 0, ss, n),
        (sums._sum_block, s, nn, 0, 0, s),
        (find_rows, groups, 0, cells, 0, 0, n),
        (fill_joint, groups, 0, k, 0, d, d, d, s),
        (tests._add_information, cells, d, design, dd, ddd, 0, dd, kk),
        (tests._project_tiles, cells, d, design, dd, ddd, 0, dd, nn, dd),
        (tests.find_residuals, cells, d, design, dd, 0, dd, dd),
        (dot, d, d),
        (log_conditionals, theta, kk, offsets, offsets, Neighbours(*[k] * 5), d, dd),
        (
            sums.work_bundles,
            *(columns, bundles, k, groups, d, dd, groups, True, kept, scratch),
            sums.Results(d, dd, d),
        ),
    ]


def _empty(dtype: Any) -> tuple[Any, Any]:
    return np.zeros(1, dtype), np.zeros((1, 1), dtype)


def _fixed(array: Any) -> Any:
    fixed = array.copy()
    fixed.flags.writeable = False
    return fixed


def main() -> None:
    """Compile what no other process has claimed."""
    compile_workers.HELPERS = compile_workers.Helpers(Path(sys.argv[1]))
    for kernel, types, path in planned():
        if not path.exists() and not compile_workers.HELPERS.is_claimed(path):
            kernel.compile(types)


if __name__ == "__main__":
    main()
