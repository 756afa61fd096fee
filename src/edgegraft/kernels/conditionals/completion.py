"""Missing cells filled in from what is known of their row."""

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.conditionals.row_conditionals import conditional_scores


@kernel
def is_alone(missing, i, neighbours):
    """Return whether no neighbour of variable `i` is missing in this row."""
    for e in range(neighbours.start[i], neighbours.start[i + 1]):
        if missing[neighbours.other[e]]:
            return False
    return True


@kernel
def fill_alone(theta, codes, missing, states, node_offset, neighbours, uniform, out):
    """Fill the missing cells none of whose neighbours are missing: their conditional is exact.

    `uniform` holds one number for each cell to draw by, or nothing to take the likeliest state.
    """
    scores = np.empty(states.max())
    for r in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            if missing[r, i] and is_alone(missing[r], i, neighbours):
                conditional_scores(theta, codes[r], i, states, node_offset, neighbours, scores)
                if uniform.size:
                    out[r, i] = draw(scores[: states[i]], uniform[r, i])
                else:
                    out[r, i] = np.argmax(scores[: states[i]])


@kernel
def draw(scores, uniform):
    """Return a state with probability proportional to the exponential of its score."""
    top = scores.max()
    total = 0.0
    for a in range(scores.shape[0]):
        total += np.exp(scores[a] - top)
    goal = uniform * total
    running = 0.0
    last = 0
    for a in range(scores.shape[0]):
        weight = np.exp(scores[a] - top)
        running += weight
        if weight > 0.0:
            last = a
            if running > goal:
                return a
    return last


@kernel
def fill_by_gibbs(theta, row, cells, states, node_offset, neighbours, cooling, uniform):
    """Fill the missing `cells` of one row by Gibbs sweeps, one per temperature in `cooling`.

    A row that is cooled down to temperature zero ends in a state that no single change
    improves. `uniform` has one number for each sweep and cell.
    """
    scores = np.empty(states.max())
    for t in range(cooling.shape[0]):
        changed = False
        for k in range(cells.shape[0]):
            i = cells[k]
            own = scores[: states[i]]
            conditional_scores(theta, row, i, states, node_offset, neighbours, own)
            before = row[i]
            if cooling[t] > 0.0:
                for a in range(states[i]):
                    own[a] /= cooling[t]
                row[i] = draw(own, uniform[t, k])
            else:
                row[i] = np.argmax(own)
            changed |= row[i] != before
        if cooling[t] == 0.0 and not changed:
            break


@kernel
def sweep_cells(theta, codes, cells, starts, states, node_offset, neighbours, uniform):
    """Draw the missing cells of many rows by Gibbs sweeps, each given the rest of its row.

    Those of row `r` are the columns ``cells[starts[r]:starts[r + 1]]``; they hold states already.
    `uniform` has one number for each sweep and cell.
    """
    scores = np.empty(states.max())
    for r in range(codes.shape[0]):
        for t in range(uniform.shape[0]):
            for k in range(starts[r], starts[r + 1]):
                i = cells[k]
                own = scores[: states[i]]
                conditional_scores(theta, codes[r], i, states, node_offset, neighbours, own)
                codes[r, i] = draw(own, uniform[t, k - starts[0]])
