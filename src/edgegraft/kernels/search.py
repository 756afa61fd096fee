"""Candidate pairs: the strongest partners of every variable.

*Partners* are bounded heaps, filled as pairs stream by. Row ``i`` of `partner` and `score` is a
heap of the ``k`` best so far, its smallest at the root (-1: empty). The order is total, larger
score first and then the smaller partner, so the result does not depend on the order of the pairs.
"""

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.counting import TILE, add_tile

BLOCK = 128  # variables per side of a block whose planes stay in cache together


@helper
def offer(partner, score, i, j, value):
    """Let `j` into the heap of `i` if it is good enough."""
    k = partner.shape[1]
    if not _worse(score[i, 0], partner[i, 0], value, j):
        return
    at = 0
    while 2 * at + 1 < k:
        below = 2 * at + 1
        other = below + 1
        if other < k and _worse(
            score[i, other], partner[i, other], score[i, below], partner[i, below]
        ):
            below = other
        if not _worse(score[i, below], partner[i, below], value, j):
            break
        score[i, at] = score[i, below]
        partner[i, at] = partner[i, below]
        at = below
    score[i, at] = value
    partner[i, at] = j


@helper
def _worse(score, partner, other_score, other_partner):
    if score != other_score:
        return score < other_score
    return partner > other_partner


@kernel
def offer_pairs(partner, score, edges, values):
    """Offer the ends of each pair to each other."""
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        offer(partner, score, i, j, values[e])
        offer(partner, score, j, i, values[e])


@kernel
def offer_binary(words, ones, n_rows, partner, score, first, step):
    """Offer all pairs of complete two-state variables to each other.

    Only every `step`-th row of blocks, from block `first` on: the share of one thread. There is one
    plane per variable, so a register tile counts 16 pairs at once. The score is the squared
    correlation of the two columns, chi-square / N, less its expectation under independence.
    """
    n = words.shape[0]
    counts = np.zeros(TILE * TILE, np.int64)
    scale = np.zeros(n)  # 1 / (N variance); a constant column depends on nothing
    for i in range(n):
        if 0 < ones[i] < n_rows:
            scale[i] = 1.0 / (ones[i] * (1.0 - ones[i] / n_rows))
    for left in range(first * BLOCK, n, step * BLOCK):
        for right in range(left, n, BLOCK):
            for i in range(left, min(left + BLOCK, n), TILE):
                for j in range(max(right, i), min(right + BLOCK, n), TILE):
                    high, wide = min(TILE, n - i), min(TILE, n - j)
                    counts[:] = 0
                    add_tile(words, i, words, j, 0, words.shape[1], high, wide, counts, 0, TILE)
                    _offer_tile(counts, ones, scale, n_rows, i, j, high, wide, partner, score)


@helper
def _offer_tile(counts, ones, scale, n_rows, i, j, high, wide, partner, score):
    for a in range(i, i + high):
        for b in range(max(j, a + 1), j + wide):
            both = counts[(a - i) * TILE + b - j]
            lift = both - np.float64(ones[a] * ones[b]) / n_rows
            value = lift * lift * (scale[a] * scale[b]) - 1.0 / n_rows
            if value >= score[a, 0]:
                offer(partner, score, a, b, value)
            if value >= score[b, 0]:
                offer(partner, score, b, a, value)
