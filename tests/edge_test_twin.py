"""The edge tests in plain NumPy: full information matrices over all states, pseudo-inverses.

Nothing is shared with the library: there are no reference states, no contrasts, and no inverse
shared by the edges of a variable. Every state must occur.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from edgegraft.core import Layout
from edgegraft.learn.edge_tests import MIN_DIRECTION_ROWS
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable


def fit(table, edges, ridge=1e-3, weights=None, tol=1e-5):
    """Return the model of given edges with a ridge."""
    layout = Layout(table.schema.n_states, edges)
    loss = Pseudolikelihood(table, weights=weights)
    found = minimize(loss, Penalty(0.0, ridge), layout, stopping=Stopping(tol, 500))
    return PairwiseMRF(table.schema, layout.edges, found.theta)


def blocks(draw, n_blocks, size, edges, ridge=1e-3):
    """Return many small tables joined side by side, and the model with `edges` within each."""
    codes = np.concatenate([draw() for _ in range(n_blocks)], axis=1)
    table = PackedTable.from_codes(codes)
    every = (size * np.arange(n_blocks)[:, None, None] + np.asarray(edges)).reshape(-1, 2)
    return table, fit(table, every, ridge, tol=1e-4)


def statistics_of(codes, model, weights=None):
    """Return the statistic, the degrees of freedom and the p-value of every edge."""
    layout, theta = model.layout, model.theta
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    found = []
    for k in range(layout.n_edges):
        result = _edge(codes, layout, theta, weights, k, at_zero=False)
        table = layout.edge(theta, k)
        table = table - table.mean(axis=0)
        table = table - table.mean(axis=1, keepdims=True)
        rarest = [
            min(weights @ (codes[:, v] == a) for a in range(layout.states[v]))
            for v in layout.edges[k].tolist()
        ]
        sparse = np.prod(rarest) / weights.sum() < 20
        strong = result[2] > 1e-6 and np.abs(table).max() > 1
        if strong or (sparse and 1e-12 < result[2] < 0.01):
            at_zero = _edge(codes, layout, theta, weights, k, at_zero=True, simpler=sparse)
            if at_zero[1] and not (sparse and at_zero[2] < result[2] < 0.01):
                result = at_zero
        found.append(result)
    return [np.array(column) for column in zip(*found, strict=True)]


def _edge(codes, layout, theta, weights, k, at_zero, simpler=False):
    i, j = layout.edges[k].tolist()
    ends = ((i, j), (j, i))
    if simpler:  # one end stands for both
        parameters = [
            (layout.states[v] - 1) * (1 + sum(layout.states[u] - 1 for u in _around(layout, v)))
            for v in (i, j)
        ]
        ends = (ends[int(np.argmin(parameters))],) * 2
    sides = [_side(codes, layout, theta, weights, *end, k, at_zero) for end in ends]
    u, informations, totals = zip(*sides, strict=True)
    raised = []
    for own, _ in ends:
        around = [own, *_around(layout, own)]
        n_rows = weights @ (codes[:, around] >= 0).all(axis=1)
        raised.append(n_rows / (n_rows - 1 - sum(layout.states[v] - 1 for v in around[1:])))
    return _judge(u, informations, sum(totals), weights, np.mean(raised), simpler)


def _around(layout, own):
    return [int(ends.sum() - own) for ends in layout.edges if own in ends]


def _side(codes, layout, theta, weights, own, other, edge, at_zero):
    """Return effective scores over the cells (smaller index first), information and total."""
    one_hot = [(codes[:, [v]] == np.arange(s)).astype(float) for v, s in enumerate(layout.states)]
    around = [k for k, ends in enumerate(layout.edges.tolist()) if own in ends]
    neighbours = [int(layout.edges[k].sum() - own) for k in around]
    used = weights * (codes[:, [own, *neighbours]] >= 0).all(axis=1)
    logits = np.tile(layout.node(theta, own), (len(codes), 1))
    for k, v in zip(around, neighbours, strict=True):
        table = layout.edge(theta, k)
        part = one_hot[v] @ (table.T if own < v else table)
        logits += used @ part / used.sum() if at_zero and k == edge else part
    p = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    for _ in range(50 if at_zero else 0):  # the intercept that gives the states their shares
        logits += np.log(np.maximum(used @ one_hot[own], 0.5)) - np.log(used @ p)
        p = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    design = np.concatenate([np.ones((len(codes), 1))] + [one_hot[v] for v in neighbours], axis=1)
    s = layout.states[own]
    psi = (design[:, :, None] * (one_hot[own] - p)[:, None]).reshape(len(codes), -1)
    psi *= (used > 0)[:, None]
    curvature = p[:, :, None] * (np.eye(s) - p[:, None])
    whole = np.einsum("r,rc,re,rab->caeb", used, design, design, curvature)
    whole = whole.reshape(psi.shape[1], -1)
    first = 1 + sum(layout.states[v] for v in neighbours[: neighbours.index(other)])
    tested = np.arange(first * s, (first + layout.states[other]) * s)
    rest = np.setdiff1d(np.arange(len(whole)), tested)
    inverse = np.linalg.pinv(whole[np.ix_(rest, rest)], rcond=1e-11, hermitian=True)
    slope = whole[np.ix_(tested, rest)] @ inverse
    u = psi[:, tested] - psi[:, rest] @ slope.T
    information = whole[np.ix_(tested, tested)] - slope @ whole[np.ix_(rest, tested)]
    table = layout.edge(theta, edge)
    table = table.T if own < other else table  # rows: states of the other end
    total = used @ u + (0 if at_zero else information @ table.ravel())
    cells = np.arange(len(tested)).reshape(table.shape)
    order = (cells.T if own < other else cells).ravel()
    return u[:, order], information[np.ix_(order, order)], total[order]


def _judge(u, informations, score, weights, raised, doubled):
    def covariance(a, b):
        return (a * weights[:, None]).T @ b - np.outer(weights @ a, weights @ b) / weights.sum()

    across = informations[0] if doubled else covariance(u[0], u[1])
    spread, axes = np.linalg.eigh(raised * (sum(informations) + across + across.T))
    axes, spread = axes[:, spread >= MIN_DIRECTION_ROWS], spread[spread >= MIN_DIRECTION_ROWS]
    along = axes.T @ score
    whole = raised * axes.T @ covariance(u[0] + u[1], u[0] + u[1]) @ axes
    statistic = min((along**2 / spread).sum(), along @ np.linalg.solve(whole, along))
    return statistic, len(spread), chi2.sf(statistic, len(spread))
