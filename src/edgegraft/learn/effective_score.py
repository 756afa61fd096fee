"""The effective score of an edge, its variance, and what follows for its p-value.

Used by :mod:`~edgegraft.learn.edge_tests`, by :mod:`~edgegraft.learn.replicate_tests` with other
weights of the same rows, and by :mod:`~edgegraft.learn.counted_tests` for many edges at a time:
scores and variances may have further axes before theirs.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.special import chdtrc, fdtrc

from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.device.conditionals import EdgeSums
from edgegraft.learn.conditional import Conditional, Conditionals, Side
from edgegraft.learn.table_conditionals import TableConditionals, not_finite

MIN_DIRECTION_ROWS = 10.0
"""Minimum variance of a direction of a table, in rows; below it, noise is not Gaussian.

The two sides are added; if they agree, the variance is four times the expected count of a cell, so
10 corresponds to 2.5 to 5 expected rows.
"""

LINEAR = 1.0  # log-odds up to which one step from the fit to zero is accurate enough
SIGNIFICANT = 1e-6  # p-value at the fit below which no further test is needed
MIN_DOUBTED, MAX_DOUBTED = 1e-12, 0.01  # p-values of sparse pairs that are tested at zero too
MIN_RATIO = 1e-6  # variance over the rows, in units of the model's; less is rounding
LINEAR_SHARE = 0.9  # of the level of an edge
ENOUGH = 0.05  # p-value of the further scores above which the linear ones are enough

_BLOCK = 1 << 14  # projected scores held at a time

Ends = list[tuple[Conditional, int]]  # the usable conditionals of an edge, each with its other end


class Moments(NamedTuple):
    """The effective score of an edge."""

    score: Floats
    by_model: Floats  # its variance by the model
    by_rows: Floats  # its variance over the rows
    information: Floats


class Directions(NamedTuple):
    """Directions of a table with enough data, white under the model's variance."""

    axes: Floats  # (..., size, size), those of too few rows first, as columns of zeros
    ratio: Floats  # (..., size) variance over the rows along each, in units of the model's
    dof: Integers  # (...) number of directions
    freedom: float = np.inf  # degrees of freedom of the variance over the rows

    def statistics(self, scores: Floats) -> Floats:
        """Return the statistic of a score, by the larger variance.

        Of one edge, scores may be several rows.
        """
        along = np.square((scores[..., None, :] @ self.axes)[..., 0, :])
        if np.isfinite(self.freedom):  # each ratio alone is too uncertain: their mean
            used = np.maximum(self.dof, 1)
            mean = (self.ratio * self._used).sum(axis=-1) / used
            return np.asarray(along.sum(axis=-1) / np.maximum(1.0, mean))
        return np.asarray(np.minimum(along.sum(axis=-1), (along / self.ratio).sum(axis=-1)))

    @property
    def _used(self) -> Mask:
        size = self.ratio.shape[-1]
        return np.asarray(np.arange(size) >= size - np.asarray(self.dof)[..., None])

    def again(self, score: Floats, replicated: Floats) -> Floats:
        """Return the statistics that other samples of as many rows would have.

        A replicated score varies about the observed one, which has the noise of the sample already;
        without what chance has added, the observed one is shorter by ``sqrt((T - dof) / T)``.
        """
        statistic = float(self.statistics(score))
        size = max(statistic - float(self.dof), 0.0) / max(statistic, np.finfo(float).tiny)
        return self.statistics(replicated - (1.0 - np.sqrt(size)) * score)

    def p_values(self, statistics: Floats) -> Floats:
        """Return the p-values of statistics, none of them zero; one without directions."""
        dof = np.maximum(self.dof, 1)
        if np.isfinite(self.freedom):
            ratio = np.where(self._used, self.ratio, 0.0)
            squares = np.maximum(np.square(ratio).sum(axis=-1), np.finfo(float).tiny)
            upper = np.maximum(ratio.sum(axis=-1) ** 2 / squares, np.finfo(float).tiny)
            found = fdtrc(upper, upper * self.freedom, statistics / dof)
        else:
            found = chdtrc(dof, statistics)
        found = np.maximum(found, np.finfo(float).tiny)
        return np.asarray(np.where(self.dof > 0, found, 1.0))


def directions(by_model: Floats, by_rows: Floats, freedom: float = np.inf) -> Directions:
    """Return the directions of an edge's score, without those of too few rows.

    A direction without variance over the rows uses only that of the model: one column may determine
    the other, or a cell happens to be empty.
    """
    spread, axes = np.linalg.eigh((by_model + np.swapaxes(by_model, -1, -2)) / 2)
    enough = spread >= MIN_DIRECTION_ROWS
    white = axes * (enough / np.sqrt(np.where(enough, spread, 1.0)))[..., None, :]
    across = np.swapaxes(white, -1, -2) @ ((by_rows + np.swapaxes(by_rows, -1, -2)) / 2) @ white
    diagonal = np.einsum("...aa->...a", across)
    diagonal[~enough] = -1.0  # they stay first
    ratio, turn = np.linalg.eigh(across)
    return Directions(white @ turn, np.maximum(ratio, MIN_RATIO), enough.sum(axis=-1), freedom)


def needs_test_at_zero(
    p_value: float | Floats, strength: float | Floats, pair: Edges, rows: Conditionals
) -> Mask:
    """Return whether edges are to be tested at zero, given their p-values by a step from the fit.

    A step is inaccurate for strong tables: they have the p-value at zero. For sparse ones a step
    errs towards small p-values if cells are empty, and the score at zero if they are too full: they
    have the larger of the two, unless the first is below any doubt.
    """
    i, j = pair.T
    p_value = np.asarray(p_value)
    strong = (p_value > SIGNIFICANT) & (strength > LINEAR)
    doubted = (p_value > MIN_DOUBTED) & (p_value < MAX_DOUBTED)
    return rows.rarity.are_few(i, j) | strong | (doubted & rows.rarity.are_sparse(i, j))


def simpler(ends: Ends) -> Ends:
    """Return the side of the smaller conditional, if there are two.

    At zero it stands for both sides of a sparse edge. They agree, and their covariance over the
    rows is too small if a cell happens to be empty; and the conditional of a hub takes long.
    """
    return [min(ends, key=lambda end: end[0].n_parameters)]


def moments(sides: list[Side], rows: Conditionals, doubled: bool = False) -> Moments:
    """Return the effective score of an edge and its variance by the model and by the rows.

    The covariance of two sides is that over the rows; a `doubled` side stands for both.
    """
    found, total = sum_rows(sides, rows)
    return combine(found, _raised([side.node for side in sides]), total, doubled)


def _raised(nodes: list[Conditional]) -> float:
    return float(np.mean([node.correction for node in nodes]))


def sum_rows(sides: list[Side], rows: Conditionals) -> tuple[EdgeSums, float]:
    """Return the sums of an edge over the rows, and their weight."""
    size, n, survey = len(sides[0].shift), len(rows.weights), rows.survey
    sums, (whole, across) = np.zeros((2, size)), np.zeros((2, size, size))
    block = max(4, _BLOCK // size)
    by_cluster = 0.0 if survey is None else np.zeros((len(survey.stratum), size))
    weights, variances, total, shares = rows.evidence(sides)
    for first in range(0, n, block):
        u = [rows.project(side, first, min(block, n - first)) for side in sides]
        for k, part in enumerate(u):
            sums[k] += weights[first : first + len(part)] @ part
        factors = variances[first : first + len(u[0]), None]
        if len(u) == 2:
            across += (factors * u[0]).T @ u[1]
            u[0] += u[1]
        whole += (factors * u[0]).T @ u[0]
        if survey is not None:
            part = weights[first : first + len(u[0]), None] * u[0]
            by_cluster += survey.sums(part, first)
    if survey is not None:
        score = sums.sum(axis=0)
        whole = survey.variance(np.asarray(by_cluster)) + np.outer(score, score) / total
    each = list(zip(shares, sides, strict=True))
    information = np.sum([share * side.information for share, side in each], axis=0)
    shift = np.sum([share * side.shift for share, side in each], axis=0)
    return EdgeSums(sums, whole, across, information, shift), total


def combine(found: EdgeSums, raised: float, total: float, doubled: bool = False) -> Moments:
    """Return the moments of an edge, or of many, from sums over the rows."""
    one, other = found.sums[..., 0, :], found.sums[..., 1, :]
    across = found.across - one[..., :, None] * other[..., None, :] / total
    score = one + other
    by_rows = found.whole - score[..., :, None] * score[..., None, :] / total
    by_model = found.information + across + np.swapaxes(across, -1, -2)
    times = 2.0 if doubled else 1.0
    raised *= times**2
    shifted = times * (score + found.shift)
    return Moments(shifted, by_model * raised, by_rows * raised, found.information)


def all_moments(
    edges: list[Ends], rows: Conditionals, n_jobs: int, *, doubled: Mask, zero: bool = False
) -> list[Moments]:
    """Return the moments of many edges, each given as the usable conditionals of its ends.

    Of those that are `doubled`, one stands for both. For `zero` they are those of the edge's table
    at zero. Otherwise residuals that serve several edges are kept, as far as memory allows.
    """
    if rows.elsewhere is not None:
        assert isinstance(rows, TableConditionals)
        return _moments_elsewhere(edges, rows, doubled, zero)
    nodes = [] if zero else [node for ends in edges for node, _ in ends]
    kept = _keep_residuals(nodes, rows, n_jobs)
    found: dict[int, Moments] = {}

    def work(k: int) -> None:
        ends = [(rows.without(node, b) if zero else node, b) for node, b in edges[k]]
        sides = [rows.side(node, b, kept.get(id(node))) for node, b in ends]
        found[k] = moments(sides, rows, bool(doubled[k]))

    run(work, range(len(edges)), n_jobs)
    return [found[k] for k in range(len(edges))]


def _moments_elsewhere(
    edges: list[Ends], rows: TableConditionals, doubled: Mask, zero: bool
) -> list[Moments]:
    assert rows.elsewhere is not None
    if zero:
        edges = [[(rows.at_zero(node, b), b) for node, b in ends] for ends in edges]
    bases = [rows.basis(*sorted((ends[0][0].target, ends[0][1]))) for ends in edges]
    settle = rows.incomplete and not zero
    sums = rows.elsewhere.edge_sums(edges, bases, settle=settle, move=zero)
    total, found = float(rows.weights.sum()), []
    for each, ends, twice in zip(sums, edges, doubled, strict=True):
        if isinstance(each, int):
            raise not_finite(each)
        found.append(combine(each, _raised([node for node, _ in ends]), total, bool(twice)))
    return found


def _keep_residuals(nodes: list[Conditional], rows: Conditionals, n_jobs: int) -> dict[int, Floats]:
    """Return the residuals of as many variables as fit, those with the most edges first."""
    n = rows.codes.shape[1]
    room, chosen = rows.max_bytes // (8 * n), []
    for node in sorted({id(node): node for node in nodes}.values(), key=lambda n: -len(n.start)):
        room -= sum(node.shape) if rows.grouped else node.shape[1]
        if room < 0:
            break
        chosen.append(node)
    kept: dict[int, Floats] = {}

    def work(node: Conditional) -> None:
        kept[id(node)] = rows.residuals(node, 0, n)

    run(work, chosen, n_jobs)
    return kept


class Verdict(NamedTuple):
    """A test of some weights; p-values of linear ones and of the others are NaN without such."""

    statistic: float
    dof: int
    p_value: float
    p_linear: float
    p_rest: float


class Verdicts(NamedTuple):
    """Verdicts on edges, in the order of asking."""

    statistic: Floats
    dof: Integers
    p_value: Floats
    p_linear: Floats
    p_rest: Floats

    @classmethod
    def of(cls, rows: Floats) -> Self:
        """Return verdicts from rows of numbers; of tables, those of groups may be left out."""
        found = np.full((len(cls._fields), rows.shape[1]), np.nan)
        found[: len(rows)] = rows
        statistic, dof, *p_values = found
        return cls(statistic, dof.astype(np.int64), *p_values)

    @classmethod
    def none(cls, m: int) -> Self:
        """Return the verdicts on `m` edges of which nothing is known."""
        return cls.of(np.repeat([[0.0], [0.0], [1.0]], m, axis=1))

    def put(self, at: Integers, verdicts: Verdicts) -> None:
        """Replace the verdicts on some edges."""
        for whole, part in zip(self, verdicts, strict=True):
            whole[at] = part


class GroupTests(NamedTuple):
    """P-values of the scores of ordered columns."""

    p_linear: Floats  # of the linear scores
    p_rest: Floats  # of the further ones beside them; NaN without such

    def columns(self, at: Integers) -> dict[str, Floats | Mask]:
        """Return what tables and files keep of some edges, by name."""
        linear = ~(self.p_rest <= ENOUGH)
        return {
            "p_linear": self.p_linear[at],
            "p_rest": self.p_rest[at],
            "linear_is_enough": linear[at],
        }


class WeightGroup(NamedTuple):
    """Some weights of a pair, beside those of the groups before."""

    turn: Floats  # (size, weights) from the score of the pair to that of the group
    directions: Directions
    share: float  # of the level

    def statistics(self, scores: Floats) -> Floats:
        """Return the statistic of one score, or of each row of several."""
        return self.directions.statistics(scores @ self.turn.T)

    def replicated(self, score: Floats, scores: Floats) -> Floats:
        """Return the p-values that other samples would have, from scores of replicates."""
        statistics = self.directions.again(self.turn @ score, scores @ self.turn.T)
        return self.directions.p_values(statistics)


def weight_groups(
    by_model: Floats,
    by_rows: Floats,
    linear: Mask,
    freedom: float = np.inf,
    information: Floats | None = None,
) -> list[WeightGroup]:
    """Return the linear weights and the rest, or all in one group.

    The score at zero is information times weights: what linear weights add to the rest is removed
    by the information, which is that of both conditionals and not the variance of the score.
    """
    every = np.eye(len(linear))
    if not linear.any() or linear.all():
        return [WeightGroup(every, directions(by_model, by_rows, freedom), 1.0)]
    rest = every[~linear]
    slopes = by_model if information is None else information
    lead = slopes[np.ix_(linear, linear)]
    rest[:, linear] = -slopes[np.ix_(~linear, linear)] @ np.linalg.pinv(lead)
    return [
        WeightGroup(
            turn, directions(turn @ by_model @ turn.T, turn @ by_rows @ turn.T, freedom), share
        )
        for turn, share in ((every[linear], LINEAR_SHARE), (rest, 1.0 - LINEAR_SHARE))
    ]


def judge_score(
    score: Floats,
    by_model: Floats,
    by_rows: Floats,
    linear: Mask,
    freedom: float = np.inf,
    information: Floats | None = None,
) -> Verdict:
    """Return the verdict of the groups together."""
    groups = weight_groups(by_model, by_rows, linear, freedom, information)
    statistics = [group.statistics(score) for group in groups]
    p = [
        float(group.directions.p_values(statistic))
        for group, statistic in zip(groups, statistics, strict=True)
    ]
    raised = [value / group.share for value, group in zip(p, groups, strict=True)]
    best = int(np.argmin(raised))
    return Verdict(
        float(statistics[best]),
        int(groups[best].directions.dof),
        min(1.0, *raised),
        p[0] if linear.any() else np.nan,
        p[1] if len(p) > 1 else np.nan,
    )
