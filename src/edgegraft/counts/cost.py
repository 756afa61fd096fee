"""What a row costs the histogram, in words of AND + popcount, on the machine at hand.

The two ways of counting a pair give the same integers, so a noisy measurement can cost time
but never change a result. Processors differ by several times here (with and without a vector
popcount), which is why this is measured and not a constant.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

from edgegraft.kernels.counting.histogram import count_codes
from edgegraft.kernels.counting.popcount import Planes, count_planes

_ROWS = 8192
_STATES = 21


@cache
def row_in_words() -> float:
    """Return the words of plane pairs that can be counted while a histogram takes one row."""
    planes, codes = _sample()
    edges = np.array([[0, 1]])
    piece = np.array([0])
    offsets = np.array([0, _STATES * _STATES])
    margins = np.zeros(2 * _STATES, np.int64)
    margin_start = np.array([0, _STATES, 2 * _STATES])
    slots = np.array([[0, 0]])
    out = np.zeros(_STATES * _STATES, np.int64)
    margins.flags.writeable = False

    by_planes = by_codes = float("inf")
    for _ in range(5):
        started = perf_counter()
        count_planes(planes, margins, margin_start, edges, piece, offsets, out)
        middle = perf_counter()
        count_codes(codes, _ROWS, planes.states, None, edges, piece, piece, slots, offsets, out)
        by_planes = min(by_planes, middle - started)
        by_codes = min(by_codes, perf_counter() - middle)
    words = _STATES * _STATES * planes.words.shape[1]
    return float((by_codes / _ROWS) / (by_planes / words))


def _sample() -> tuple[Planes, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = (
        rng.integers(0, 2**63, (2 * _STATES, _ROWS // 64), np.uint64),
        np.array([0, _STATES, 2 * _STATES]),
        np.array([_STATES, _STATES]),
        np.array([False, False]),
    )
    codes = rng.integers(0, _STATES, (2, _ROWS)).astype(np.uint8)
    for array in (*arrays, codes):
        array.flags.writeable = False
    return Planes(*arrays), codes
