"""Conditionals of known cells in rows with missing ones, which are summed over.

    p(a | known) / p(x_i | known) = exp(s_a - s_{x_i}) E[exp(sum_j w_ij(a, m_j) - w_ij(x_i, m_j))]

The expectation is over the missing cells ``m`` given all known ones, ``x_i`` among them; ``s`` are
the scores without missing neighbours. Missing cells that are connected through missing cells are a
*gap*. Gaps are independent of each other given the known cells, so their expectations multiply. All
states of a small gap are enumerated; those of a large one are drawn by Gibbs sweeps.
"""

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.conditionals.row_conditionals import conditional_scores, draw


@kernel
def sum_over_gaps(theta, codes, states, node_offset, neighbours, n_burnt, uniform, shift, out):
    """Write ``log p(x_i | known rest)`` of every known cell to `out`, nan if it is missing.

    `theta` is finite. `uniform` has, for each sweep and variable, a number to draw by, which is
    shifted by that of `shift` for the cell. The first `n_burnt` sweeps are not used, and a gap with
    at most as many states as sweeps are used is enumerated.
    """
    n, widest = states.shape[0], states.max()
    n_draws = uniform.shape[0] - n_burnt
    cells = np.empty(n, np.int64)
    shown = np.empty((n_draws, n), np.int64)
    weights, scores = np.empty(n_draws), np.empty(widest)
    sums = np.empty((n, widest))
    for r in range(codes.shape[0]):
        row, done = codes[r].copy(), codes[r] >= 0
        sums[:] = 0.0
        for first in range(n):
            if done[first]:
                continue
            size = _find_gap(codes[r], first, neighbours, done, cells)
            gap = cells[:size]
            count = _enumerate(
                theta, row, gap, states, node_offset, neighbours, shown, weights, scores
            )
            if count == 0:
                count = n_draws
                _draw_gap(
                    theta, row, gap, states, node_offset, neighbours, n_burnt, uniform,
                    shift[r], shown, scores,
                )  # fmt: skip
                weights[:] = -np.log(n_draws)
            for k in range(size):
                row[gap[k]] = -1
            _add_expectations(
                theta, codes[r], gap, states, neighbours, shown[:count], weights[:count], sums
            )
        for i in range(n):
            x = codes[r, i]
            out[r, i] = np.nan
            if x >= 0:
                conditional_scores(theta, codes[r], i, states, node_offset, neighbours, scores)
                own = scores[: states[i]] + sums[i, : states[i]]
                out[r, i] = own[x] - _log_sum(own)


@njit(inline="always")
def _log_sum(values):
    top = values.max()
    return top + np.log(np.exp(values - top).sum())


@helper
def _find_gap(row, first, neighbours, done, cells):
    """Write the missing cells connected to one of them to `cells`; return how many they are."""
    cells[0], size, k = first, 1, 0
    done[first] = True
    while k < size:
        i = cells[k]
        k += 1
        for e in range(neighbours.start[i], neighbours.start[i + 1]):
            j = neighbours.other[e]
            if row[j] < 0 and not done[j]:
                done[j] = True
                cells[size] = j
                size += 1
    return size


@helper
def _enumerate(theta, row, gap, states, node_offset, neighbours, shown, weights, scores):
    """Write all states of a gap and their log-probabilities; return their number, 0 if too many."""
    count = 1
    for k in range(gap.shape[0]):
        count *= states[gap[k]]
        if count > shown.shape[0]:
            return 0
    for state in range(count):
        left, total = state, 0.0
        for k in range(gap.shape[0]):
            i = gap[k]
            # Cells that follow are still missing, so each edge within the gap counts once.
            conditional_scores(theta, row, i, states, node_offset, neighbours, scores)
            row[i] = left % states[i]
            left //= states[i]
            total += scores[row[i]]
            shown[state, k] = row[i]
        weights[state] = total
        for k in range(gap.shape[0]):
            row[gap[k]] = -1
    weights[:count] -= _log_sum(weights[:count])
    return count


@helper
def _draw_gap(
    theta, row, gap, states, node_offset, neighbours, n_burnt, uniform, shift, shown, scores
):
    """Write states of a gap that are drawn given the known cells."""
    for t in range(uniform.shape[0]):
        for k in range(gap.shape[0]):
            i = gap[k]
            own = scores[: states[i]]
            conditional_scores(theta, row, i, states, node_offset, neighbours, own)
            row[i] = draw(own, (uniform[t, i] + shift[i]) % 1.0)
            if t >= n_burnt:
                shown[t - n_burnt, k] = row[i]


@helper
def _add_expectations(theta, row, gap, states, neighbours, shown, weights, sums):
    """Add the logarithms of the expectations over a gap to `sums` of the known cells around it."""
    at = np.full(row.shape[0], -1)  # where a known cell's terms are
    terms = np.zeros((row.shape[0], sums.shape[1], shown.shape[0]))
    around, n_around = np.empty(row.shape[0], np.int64), 0
    for k in range(gap.shape[0]):
        j = gap[k]
        for e in range(neighbours.start[j], neighbours.start[j + 1]):
            i = neighbours.other[e]
            if row[i] < 0:
                continue
            if at[i] < 0:
                at[i] = n_around
                around[n_around] = i
                n_around += 1
            for a in range(states[i]):
                first = neighbours.table[e] + a * neighbours.step[e]
                known = neighbours.table[e] + row[i] * neighbours.step[e]
                for d in range(shown.shape[0]):
                    b = shown[d, k] * neighbours.own_step[e]
                    terms[at[i], a, d] += theta[first + b] - theta[known + b]
    for k in range(n_around):
        i = around[k]
        for a in range(states[i]):
            sums[i, a] += _log_sum(terms[k, a] + weights)
