"""The pseudolikelihood in plain NumPy and double precision, as a reference for tests."""

from __future__ import annotations

import numpy as np

from edgegraft.core import Layout
from edgegraft.table import PackedTable, Schema


def residuals(codes, layout, theta, weights=None):
    """Return one-hot matrices, residuals and unnormalised losses, one per variable."""
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    one_hot = [(codes[:, [i]] == np.arange(s)).astype(float) for i, s in enumerate(layout.states)]
    logits = [np.tile(layout.node(theta, i), (len(codes), 1)) for i in range(len(one_hot))]
    for k, (i, j) in enumerate(layout.edges):
        logits[i] += one_hot[j] @ layout.edge(theta, k).T
        logits[j] += one_hot[i] @ layout.edge(theta, k)
    left, losses = [], []
    for i, z in enumerate(logits):
        log_p = z - np.logaddexp.reduce(z, axis=1)[:, None]
        losses.append(-(weights @ (one_hot[i] * log_p).sum(axis=1)))
        known = weights * (codes[:, i] >= 0)
        left.append(known[:, None] * (one_hot[i] - np.exp(log_p)))
    return one_hot, left, np.array(losses)


def evaluate(codes, layout, theta, weights=None):
    """Return the value and the gradient."""
    total = len(codes) if weights is None else np.sum(weights)
    one_hot, left, losses = residuals(codes, layout, theta, weights)
    gradient = np.empty(layout.n_parameters)
    for i, r in enumerate(left):
        layout.node(gradient, i)[:] = -r.sum(axis=0) / total
    for k, (i, j) in enumerate(layout.edges):
        table = left[i].T @ one_hot[j] + one_hot[i].T @ left[j]
        layout.edge(gradient, k)[:] = -table / total
    return losses.sum() / total, gradient


def make_case(states, n_rows, missing=0.0, density=0.5, seed=0):
    """Return codes, the packed table, a random graph and random parameters."""
    rng = np.random.default_rng(seed)
    n = len(states)
    codes = np.column_stack([rng.integers(0, s, n_rows) for s in states])
    # Dependence between columns, so that residuals do not average out.
    codes[:, 1:] = np.where(
        rng.random((n_rows, n - 1)) < 0.4, codes[:, :-1] % np.array(states[1:]), codes[:, 1:]
    )
    codes[rng.random(codes.shape) < missing] = -1
    table = PackedTable.from_codes(codes, Schema.from_states(states))
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    layout = Layout(states, pairs[rng.random(len(pairs)) < density])
    return codes, table, layout, rng.normal(scale=0.7, size=layout.n_parameters)
