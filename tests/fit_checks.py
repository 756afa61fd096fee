"""Independent derivations for the tests of fits, in plain NumPy, one group at a time."""

from __future__ import annotations

import numpy as np


def residual(theta, gradient, layout, penalty):
    """Return the largest violation of an optimality condition, directly from the equations."""
    worst = 0.0
    for i in range(layout.n_variables):
        strength = weight(penalty, layout.states[i]) if penalty.penalize_nodes else 0.0
        ridge = penalty.ridge if penalty.penalize_nodes else 0.0
        worst = max(
            worst,
            *_each(penalty, layout.node(theta, i), layout.node(gradient, i), strength, ridge),
        )
    for k, (i, j) in enumerate(layout.edges):
        strength = edge_weight(penalty, layout, i, j)
        w, g = layout.edge(theta, k).ravel(), layout.edge(gradient, k).ravel()
        worst = max(worst, *_each(penalty, w, g, strength, penalty.ridge))
    return worst


def weight(penalty, cells):
    """Return ``penalty * d`` of a group with a number of cells."""
    if penalty.kind == "l1":
        return penalty.penalty
    return penalty.penalty * (cells if penalty.group_weight == "states" else np.sqrt(cells))


def edge_weight(penalty, layout, i, j):
    """Return ``penalty * d`` of the table of an edge."""
    if penalty.kind == "group" and penalty.group_weight == "noise":
        return penalty.penalty * penalty.edge_weights(np.array([(i, j)]), None)[0]
    return weight(penalty, layout.states[i] * layout.states[j])


def _each(penalty, w, g, strength, ridge):
    if penalty.kind == "l1" and strength > 0:
        return [_one(w[k : k + 1], g[k : k + 1], strength, ridge) for k in range(len(w))]
    return [_one(w, g, strength, ridge)]


def _one(w, g, strength, ridge):
    norm = np.linalg.norm(w)
    if norm == 0.0:
        return max(0.0, np.linalg.norm(g) - strength)
    return np.linalg.norm(g + strength * w / norm + 2 * ridge * w)


def penalty_value(theta, layout, penalty):
    """Return the penalty, one group at a time."""
    groups = [layout.edge(theta, k).ravel() for k in range(layout.n_edges)]
    weights = [edge_weight(penalty, layout, i, j) for i, j in layout.edges]
    if penalty.penalize_nodes:
        groups += [layout.node(theta, i) for i in range(layout.n_variables)]
        weights += [weight(penalty, states) for states in layout.states]
    total = sum(penalty.ridge * (w @ w) for w in groups)
    if penalty.kind == "l1":
        return total + penalty.penalty * sum(np.abs(w).sum() for w in groups)
    norms = [np.linalg.norm(w) for w in groups]
    return total + np.dot(weights, norms)
