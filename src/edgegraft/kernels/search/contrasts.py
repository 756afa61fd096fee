"""Pair tables as blocks of a correlation matrix, in a basis in which every variable is white.

Variable ``i`` with observed states of probabilities ``p`` has the weighted Helmert contrasts

    f_k(a) = c for a before k,  -c P / p_k for a = k,  0 after it,
    c^2 = p_k / (P (P + p_k)),  P = sum of p over the states before k,

which have mean 0, variance 1 and no correlation among themselves. The correlations of those of
``i`` with those of ``j`` are a block whose squared norm is chi-square / N of the table.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.compiler import kernel


class Contrasts(NamedTuple):
    """The contrasts of all variables, one after another."""

    state_start: np.ndarray  # int64 (n + 1,)
    column_start: np.ndarray  # int64 (n + 1,): one column for each observed state but the first
    basis_start: np.ndarray  # int64 (n + 1,)
    basis: np.ndarray  # float64: tables (states, columns), row by row
    occurs: np.ndarray  # bool: one per state


def fill_contrasts(margins: NDArray[Any], contrasts: Contrasts, pseudocount: float) -> None:
    """Write the contrasts of every variable, ``(s_i, columns)`` row by row.

    States that never occur have rows of zeros. Variables of other numbers of columns are left.
    """
    start, columns = contrasts.state_start, np.diff(contrasts.column_start)
    occurs = contrasts.occurs
    observed = np.add.reduceat(occurs.astype(np.int64), start[:-1]) if len(columns) else columns
    due = (observed > 1) & (columns == observed - 1)
    shapes = np.stack((np.diff(start), observed), axis=1)[due]
    for states, seen in np.unique(shapes, axis=0):
        chosen = np.flatnonzero(due)[(shapes == (states, seen)).all(axis=1)]
        places = start[chosen][:, None] + np.arange(states)
        shown = np.nonzero(occurs[places])[1].reshape(len(chosen), seen)
        counts = np.take_along_axis(margins[places], shown, axis=1)
        total = margins[places].sum(axis=1, keepdims=True)
        p = (counts + pseudocount / seen) / (total + pseudocount)
        before, own = np.cumsum(p, axis=1)[:, :-1], p[:, 1:]
        c = np.sqrt(own / (before * (before + own)))
        upper = np.arange(seen)[:, None] <= np.arange(seen - 1)
        values = np.where(upper, c[:, None], 0.0)
        at = np.arange(seen - 1)
        values[:, at + 1, at] = -c * before / own
        tables = np.zeros((len(chosen), states, seen - 1))
        np.put_along_axis(tables, shown[:, :, None], values, axis=1)
        to = contrasts.basis_start[chosen][:, None] + np.arange(states * (seen - 1))
        contrasts.basis[to] = tables.reshape(len(chosen), -1)


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
