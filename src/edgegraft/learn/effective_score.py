"""The effective score of an edge, its variance, and the directions with enough data.

Used by :mod:`~edgegraft.learn.edge_tests`, and by :mod:`~edgegraft.learn.replicate_tests` with
other weights of the same rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, fdtrc

from edgegraft.core import Layout
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.device.conditionals import EdgeSums
from edgegraft.kernels.conditionals.effective_scores import (
    add_products,
    lay_out,
    project_rows,
)
from edgegraft.learn.conditional import Conditional, Rows, at_zero, describe, not_finite, without

MIN_DIRECTION_ROWS = 10.0
"""Minimum variance of a direction of a table, in rows; below it, noise is not Gaussian.

The two sides are added; if they agree, the variance is four times the expected count of a cell, so
10 corresponds to 2.5 to 5 expected rows.
"""

LINEAR = 1.0  # log-odds up to which one step from the fit to zero is accurate enough
SIGNIFICANT = 1e-6  # p-value at the fit below which no further test is needed
MIN_DOUBTED, MAX_DOUBTED = 1e-12, 0.01  # p-values of sparse pairs that are tested at zero too
MIN_RATIO = 1e-6  # variance over the rows, in units of the model's; less is rounding

_BLOCK = 1 << 14  # projected scores held at a time

Moments = tuple[Floats, Floats, Floats]  # score, variance by the model, variance by the rows


class Side(NamedTuple):
    """The effective score of an edge in the conditional of one end."""

    conditional: Conditional
    other: int
    residuals: Floats
    tables: Floats  # tables of the projection, see `lay_out`
    information: Floats  # (size, size)
    shift: Floats  # (size,) information times parameters


class Directions(NamedTuple):
    """Directions of a table with enough data, white under the model's variance.

    Attributes
    ----------
    axes : array of float, shape (size, dof)
    ratio : array of float, shape (dof,)
        Variance over the rows along each direction, in units of the model's.
    freedom : float
        Degrees of freedom of the variance over the rows.
    """

    axes: Floats
    ratio: Floats
    freedom: float = np.inf

    @property
    def dof(self) -> int:
        """Number of directions."""
        return len(self.ratio)

    def statistics(self, scores: Floats) -> Floats:
        """Return the statistic of one score, or of each row of several, by the larger variance."""
        along = np.square(scores @ self.axes)
        if np.isfinite(self.freedom):  # each ratio alone is too uncertain: their mean
            return np.asarray(along.sum(axis=-1) / max(1.0, float(self.ratio.mean())))
        return np.asarray(np.minimum(along.sum(axis=-1), (along / self.ratio).sum(axis=-1)))

    def again(self, score: Floats, replicated: Floats) -> Floats:
        """Return the statistics that other samples of as many rows would have.

        A replicated score varies about the observed one, which has the noise of the sample already;
        without what chance has added, the observed one is shorter by ``sqrt((T - dof) / T)``.
        """
        statistic = float(self.statistics(score))
        size = max(statistic - self.dof, 0.0) / max(statistic, np.finfo(float).tiny)
        return self.statistics(replicated - (1.0 - np.sqrt(size)) * score)

    def p_values(self, statistics: Floats) -> Floats:
        """Return the p-values of statistics, none of them zero."""
        if np.isfinite(self.freedom):
            upper = float(self.ratio.sum() ** 2 / np.square(self.ratio).sum())
            found = fdtrc(upper, upper * self.freedom, statistics / self.dof)
        else:
            found = chdtrc(self.dof, statistics)
        return np.asarray(np.maximum(found, np.finfo(float).tiny))


def directions(by_model: Floats, by_rows: Floats, freedom: float = np.inf) -> Directions:
    """Return the directions of an edge's score, without those of too few rows.

    A direction without variance over the rows uses only that of the model: one column may determine
    the other, or a cell happens to be empty.
    """
    spread, axes = np.linalg.eigh((by_model + by_model.T) / 2)
    enough = spread >= MIN_DIRECTION_ROWS
    white = axes[:, enough] / np.sqrt(spread[enough])
    ratio, turn = np.linalg.eigh(white.T @ ((by_rows + by_rows.T) / 2) @ white)
    return Directions(white @ turn, np.maximum(ratio, MIN_RATIO), freedom)


def describe_all(
    rows: Rows,
    layout: Layout,
    theta: Floats,
    n_jobs: int,
    max_bytes: int,
    only: Integers | None = None,
    nodes: dict[int, Conditional] | None = None,
) -> dict[int, Conditional]:
    """Return the conditional of every variable that has an edge, or of some of them.

    `nodes` are those of an earlier fit, and replaced if they have changed.
    """
    groups = _edges_of(layout.edges)
    nodes = {} if nodes is None else nodes

    def work(i: int) -> None:
        known = nodes.get(i)
        nodes[i] = describe(i, rows, layout, theta, groups[i], max_bytes, known=known)

    run(work, groups if only is None else only.tolist(), n_jobs)
    return nodes


def describe_alone(
    rows: Rows,
    layout: Layout,
    theta: Floats,
    n_jobs: int,
    max_bytes: int,
    chosen: Integers,
    alone: Integers,
    bases: dict[int, Conditional],
) -> list[tuple[Conditional, Conditional]]:
    """Return the conditionals of the ends of each chosen edge, without the other edges `alone`.

    `bases` are conditionals of an earlier fit, and replaced if they have changed.
    """
    beside = np.setdiff1d(np.arange(layout.n_edges), alone)
    groups = {i: beside[at] for i, at in _edges_of(layout.edges[beside]).items()}
    none = np.empty(0, np.int64)
    found: list[tuple[Conditional, Conditional] | None] = [None] * len(chosen)
    extends = rows.elsewhere is None and not rows.known.size

    def prepare(a: int) -> None:
        edges = groups.get(a, none)
        bases[a] = describe(a, rows, layout, theta, edges, max_bytes, known=bases.get(a))

    if extends:
        run(prepare, np.unique(layout.edges[chosen]).tolist(), n_jobs)

    def work(k: int) -> None:
        i, j = layout.edges[chosen[k]].tolist()
        one, other = (
            describe(
                a,
                rows,
                layout,
                theta,
                np.append(groups.get(a, none), chosen[k]),
                max_bytes,
                bases[a] if extends else None,
            )
            for a in (i, j)
        )
        found[k] = one, other

    run(work, range(len(chosen)), n_jobs)
    return [each for each in found if each is not None]


def _edges_of(edges: Edges) -> dict[int, Integers]:
    """Return the positions of the edges of every variable that has any."""
    ends = edges.ravel()
    order = np.argsort(ends, kind="stable")
    own, first = np.unique(ends[order], return_index=True)
    return dict(zip(own.tolist(), np.split(order // 2, first[1:]), strict=True)) if len(own) else {}


def side_of(node: Conditional, rows: Rows, other: int, residuals: Floats | None) -> Side:
    """Return the effective score of an edge in the conditional of one of its ends.

    Tables have the end of the smaller index first, in contrasts that are orthonormal over the
    cells, so that all states are treated alike.
    """
    i, q = node.design.target, node.coefficients.shape[1]
    m = len(rows.kept[other])
    cells = np.arange(node.coefficients.size).reshape(-1, q)[node.columns_of(other)]
    basis = table_basis(m, q) if other < i else table_basis(q, m)
    chosen = (cells if other < i else cells.T).ravel()
    assert node.inverse is not None
    across = node.inverse[:, chosen]
    information = np.linalg.inv(across[chosen])
    information = (information + information.T) / 2
    projection = (across @ information) @ basis.T
    table = node.coefficients.reshape(-1)[chosen]
    return Side(
        node,
        other,
        node.residuals(rows) if residuals is None else residuals,
        lay_out(np.ascontiguousarray(projection.reshape(-1, q, len(chosen)))),
        basis @ information @ basis.T,
        basis @ (information @ table),
    )


def needs_test_at_zero(p_value: float, node: Conditional, other: int, rows: Rows) -> bool:
    """Return whether an edge is to be tested at zero, given its p-value by a step from the fit.

    A step is inaccurate for strong tables: they have the p-value at zero. For sparse ones a step
    errs towards small p-values if cells are empty, and the score at zero if they are too full: they
    have the larger of the two, unless the first is below any doubt.
    """
    if p_value > SIGNIFICANT and _table_strength(node, other) > LINEAR:
        return True
    return MIN_DOUBTED < p_value < MAX_DOUBTED and rows.is_sparse(node.design.target, other)


def simpler(sides: list[tuple[Conditional, int]]) -> list[tuple[Conditional, int]]:
    """Return the side of the smaller conditional, if there are two.

    At zero it stands for both sides of a sparse edge. They agree, and their covariance over the
    rows is too small if a cell happens to be empty; and the conditional of a hub takes long.
    """
    return [min(sides, key=lambda side: side[0].coefficients.size)]


def _table_strength(node: Conditional, other: int) -> float:
    """Return the largest entry of an edge's table over observed states, in zero-sum gauge."""
    table = np.pad(node.coefficients[node.columns_of(other)], ((0, 1), (0, 1)))
    table -= table.mean(axis=0)
    table -= table.mean(axis=1, keepdims=True)
    return float(np.abs(table).max())


def _basis(q: int) -> Floats:
    """Return the matrix from scores of `q` contrasts to orthonormal coordinates of all states.

    The score of the reference is minus the sum of the others: the Gram matrix is ``I + 1 1'``.
    """
    return np.asarray(np.linalg.cholesky(np.eye(q) + 1.0).T)


@lru_cache(maxsize=64)
def table_basis(tall: int, wide: int) -> Floats:
    """Return the same matrix for the contrasts of a table."""
    return np.asarray(np.kron(_basis(tall), _basis(wide)), np.float64)


def moments(sides: list[Side], rows: Rows, doubled: bool = False) -> Moments:
    """Return the effective score of an edge and its variance by the model and by the rows.

    The covariance of two sides is that over the rows; a `doubled` side stands for both.
    """
    found, total = _sum_rows(sides, rows)
    return _combine(found, [side.conditional for side in sides], total, doubled)


def step_of(node: Conditional, other: int, across: Conditional, rows: Rows) -> Floats:
    """Return the step of an edge's table that its score asks for, in the rows that know both ends.

    A ridge of one row keeps it finite. Rows are observed states of the end of the smaller index,
    without its reference.
    """
    pair = ((node, other), (across, node.design.target))
    ends = [(each, end) for each, end in pair if each.inverse is not None]
    if not ends:
        return np.zeros((0, 0))
    found, _ = _sum_rows([side_of(each, rows, end, None) for each, end in ends], rows)
    tall, wide = (len(rows.kept[v]) for v in sorted((node.design.target, other)))
    size = len(found.shift)
    step = np.linalg.solve(found.information + np.eye(size), found.sums.sum(axis=0))
    return np.asarray((table_basis(tall, wide).T @ step).reshape(tall, wide))


def _sum_rows(sides: list[Side], rows: Rows) -> tuple[EdgeSums, float]:
    """Return the sums of an edge over the rows, and their weight."""
    size, n = len(sides[0].shift), len(rows.weights)
    sums, (whole, across) = np.zeros((2, size)), np.zeros((2, size, size))
    block = max(4, _BLOCK // size)
    by_cluster = 0.0 if rows.design is None else np.zeros((len(rows.design.stratum), size))
    weights, variances, shares = _evidence(sides, rows)
    for first in range(0, n, block):
        u = [project(side, rows, first, min(block, n - first)) for side in sides]
        for k, part in enumerate(u):
            sums[k] += weights[first : first + len(part)] @ part
        if len(u) == 2:
            add_products(u[0], u[1], variances, first, across)
            u[0] += u[1]
        add_products(u[0], u[0], variances, first, whole)
        if rows.design is not None:
            part = weights[first : first + len(u[0]), None] * u[0]
            by_cluster += rows.design.sums(part, first)
    total = weights.sum()
    if rows.design is not None:
        score = sums.sum(axis=0)
        whole = rows.design.variance(np.asarray(by_cluster)) + np.outer(score, score) / total
    each = list(zip(shares, sides, strict=True))
    information = np.sum([share * side.information for share, side in each], axis=0)
    shift = np.sum([share * side.shift for share, side in each], axis=0)
    return EdgeSums(sums, whole, across, information, shift), float(total)


def _evidence(sides: list[Side], rows: Rows) -> tuple[Floats, Floats, list[float]]:
    """Return weights and factors of the rows that know both ends, and the share of each side.

    A side's information is that of all rows that know its variable.
    """
    if not rows.completed:
        return rows.weights, rows.variances, [1.0] * len(sides)
    own, other = sides[0].conditional.design.target, sides[0].other
    both = rows.known[own] & rows.known[other]
    weights = rows.weights * both
    shares = [float(weights.sum() / side.conditional.weights.sum()) for side in sides]
    return weights, rows.variances * both, shares


def _combine(found: EdgeSums, nodes: list[Conditional], total: float, doubled: bool) -> Moments:
    """Return the moments of an edge from sums over the rows."""
    across = found.across - np.outer(found.sums[0], found.sums[1]) / total
    score = found.sums.sum(axis=0)
    by_rows = found.whole - np.outer(score, score) / total
    by_model = found.information + across + across.T
    raised = np.mean([node.correction for node in nodes])
    times = 2.0 if doubled else 1.0
    raised *= times**2
    return times * (score + found.shift), by_model * raised, by_rows * raised


def all_moments(
    edges: list[list[tuple[Conditional, int]]],
    rows: Rows,
    n_jobs: int,
    *,
    doubled: Mask,
    zero: bool = False,
    max_bytes: int = 0,
) -> list[Moments]:
    """Return the moments of many edges, each given as the usable conditionals of its ends.

    Of those that are `doubled`, one stands for both. For `zero` they are those of the edge's table
    at zero. Residuals that serve several edges are kept within `max_bytes`.
    """
    if rows.elsewhere is not None:
        return _moments_elsewhere(edges, rows, doubled, zero)
    kept = _keep_residuals([node for sides in edges for node, _ in sides], rows, n_jobs, max_bytes)
    found: list[Moments | None] = [None] * len(edges)

    def work(k: int) -> None:
        ends = [(without(node, rows, b) if zero else node, b) for node, b in edges[k]]
        sides = [side_of(node, rows, b, kept.get(id(node))) for node, b in ends]
        found[k] = moments(sides, rows, bool(doubled[k]))

    run(work, range(len(edges)), n_jobs)
    return [each for each in found if each is not None]


def _moments_elsewhere(
    edges: list[list[tuple[Conditional, int]]], rows: Rows, doubled: Mask, zero: bool
) -> list[Moments]:
    assert rows.elsewhere is not None
    if zero:
        edges = [[(at_zero(node, rows, b), b) for node, b in sides] for sides in edges]
    ends = [sorted((sides[0][0].design.target, sides[0][1])) for sides in edges]
    bases = [table_basis(len(rows.kept[i]), len(rows.kept[j])) for i, j in ends]
    settle = rows.incomplete and not zero
    sums = rows.elsewhere.edge_sums(edges, bases, settle=settle, move=zero)
    total, found = float(rows.weights.sum()), []
    for each, sides, twice in zip(sums, edges, doubled, strict=True):
        if isinstance(each, int):
            raise not_finite(each)
        found.append(_combine(each, [node for node, _ in sides], total, bool(twice)))
    return found


def _keep_residuals(
    nodes: list[Conditional], rows: Rows, n_jobs: int, max_bytes: int
) -> dict[int, Floats]:
    """Return the residuals of as many variables as fit, those with the most edges first."""
    room, chosen = max_bytes // (8 * rows.codes.shape[1]), []
    for node in sorted({id(node): node for node in nodes}.values(), key=lambda n: -len(n.start)):
        room -= node.coefficients.shape[1]
        if room < 0:
            break
        chosen.append(node)
    kept: dict[int, Floats] = {}

    def work(node: Conditional) -> None:
        kept[id(node)] = node.residuals(rows)

    run(work, chosen, n_jobs)
    return kept


def project(side: Side, rows: Rows, first: int, n: int) -> Floats:
    """Return the effective scores of `n` rows."""
    out = np.empty((n, len(side.shift)))
    node = side.conditional
    project_rows(rows.codes, node.weights, node.design, side.residuals, side.tables, first, out)
    return out
