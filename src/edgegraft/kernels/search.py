"""Candidate pairs: correlations and the strongest partners of a variable.

*Correlations* of two variables are those of their contrasts, functions of the states with mean 0
and variance 1 (:mod:`edgegraft.rank.correlations`).

*Partners* are bounded heaps, filled as pairs stream by. Row ``i`` of `partner` and `score` is a
heap of the ``k`` best so far, its smallest at the root (-1: empty). The order is total, larger
score first and then the smaller partner, so the result does not depend on the order of the pairs.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.counting.pairs import TILE, add_tile

BLOCK = 128  # variables per side of a block whose planes stay in cache together


@kernel
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


@kernel
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


@kernel
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


class Contrasts(NamedTuple):
    """The contrasts of all variables, one after another."""

    state_start: np.ndarray  # int64 (n + 1,)
    column_start: np.ndarray  # int64 (n + 1,): one column for each observed state but the first
    basis_start: np.ndarray  # int64 (n + 1,)
    basis: np.ndarray  # float64: tables (states, columns), row by row
    occurs: np.ndarray  # bool: one per state


@kernel
def correlate(values, offsets, edges, contrasts, pseudocount, out, out_start):
    """Write the correlation block of each pair table, row by row, at its place in `out`.

    `pseudocount` rows are added to a table, spread evenly over the cells of states that occur.
    """
    state_start, column_start, basis_start, basis, occurs = contrasts
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        rows = state_start[i + 1] - state_start[i]
        columns = state_start[j + 1] - state_start[j]
        high = column_start[i + 1] - column_start[i]
        wide = column_start[j + 1] - column_start[j]
        own_i = basis[basis_start[i] : basis_start[i + 1]].reshape(rows, high)
        own_j = basis[basis_start[j] : basis_start[j + 1]].reshape(columns, wide)
        block = out[out_start[e] : out_start[e] + high * wide].reshape(high, wide)
        if high == 0 or wide == 0:
            continue
        shown_i = occurs[state_start[i] : state_start[i + 1]].sum()
        added = pseudocount / (shown_i * occurs[state_start[j] : state_start[j + 1]].sum())
        total = pseudocount
        mean_i = np.zeros(high)
        mean_j = np.zeros(wide)
        along = np.empty(wide)
        block[:] = 0.0
        for a in range(rows):
            if not occurs[state_start[i] + a]:
                continue
            along[:] = 0.0
            of_row = 0.0
            for b in range(columns):
                if occurs[state_start[j] + b]:
                    count = values[offsets[e] + a * columns + b]
                    total += count
                    count += added
                    of_row += count
                    for y in range(wide):
                        along[y] += count * own_j[b, y]
            for y in range(wide):
                mean_j[y] += along[y]
            for x in range(high):
                mean_i[x] += of_row * own_i[a, x]
                for y in range(wide):
                    block[x, y] += own_i[a, x] * along[y]
        if total == 0.0:  # no row in which both are known, and nothing added
            continue
        # With missing cells the margins of a table are its own, not those of the variables.
        for x in range(high):
            for y in range(wide):
                block[x, y] = block[x, y] / total - mean_i[x] * mean_j[y] / (total * total)
