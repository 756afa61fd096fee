"""The judge: is a pair an edge, given the other neighbours of one of its ends?

The likelihood ratio of the pair in the cheaper of its two conditionals,

    T = 2 (log L(with) - log L(without)) / deff  *  (W - features) / W,     chi-squared,

on distinct rows. `deff` is the design effect of Rao and Scott (1984): the mean of the eigenvalues
of ``J^-1 V``, with ``V`` the variance of the pair's effective scores over rows, weights or clusters
and ``J`` what the model expects; at least 1. The last factor allows for the parameters that a
conditional fits.

Before it a cheap judge: a step from the fit, which all pairs of a column share. It declares where
it is sure. For weak tables step and ratio agree; of strong ones a step loses information, so that a
large statistic is a lower bound, and a small one is left to the ratio.

Of ordered columns the linear scores and the further ones have a ratio each, and the p-value is
``min(p_linear / 0.9, p_rest / 0.1)``, a Bonferroni correction.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc

from edgegraft.conditional.conditional import RIDGE_ROWS, ROWS_PER_FEATURE, Conditional, Fit
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers

LINEAR = 1.0  # log-odds up to which a step to zero misses a statistic by less than `_MARGIN`
_MARGIN = 1.5  # a step is sure if its statistic is so many times above or below every level
_SURE = 2.0  # standard errors by which a design effect must exceed 1: about one in 40 by chance
LINEAR_SHARE = 0.9  # of the level of a pair; see the module
_TINY = float(np.finfo(float).tiny)

Pair = tuple[int, int]


class Verdict(NamedTuple):
    """A test of a pair; p-values of parts are NaN if it has none."""

    statistic: float
    dof: int
    p_value: float
    p_linear: float = np.nan
    p_rest: float = np.nan


UNTESTABLE = Verdict(0.0, 0, 1.0)


class Verdicts(NamedTuple):
    """Verdicts on pairs, in the order of asking."""

    statistic: Floats
    dof: Integers
    p_value: Floats
    p_linear: Floats
    p_rest: Floats

    @classmethod
    def of(cls, verdicts: list[Verdict]) -> Self:
        """Return verdicts as columns."""
        found = np.array(verdicts, float).reshape(len(verdicts), len(cls._fields)).T
        return cls(found[0], found[1].astype(np.int64), *found[2:])


class Network:
    """Edges on their way: which columns are neighbours."""

    def __init__(self, n: int, edges: Edges) -> None:
        self.beside: list[set[int]] = [set() for _ in range(n)]
        self.edges: set[Pair] = set()
        self.add({(i, j) for i, j in edges.tolist()})

    def add(self, edges: set[Pair]) -> None:
        """Add edges."""
        for i, j in edges:
            self.beside[i].add(j)
            self.beside[j].add(i)
        self.edges |= edges

    def drop(self, edges: set[Pair]) -> None:
        """Drop edges."""
        for i, j in edges:
            self.beside[i].discard(j)
            self.beside[j].discard(i)
        self.edges -= edges


@dataclass(frozen=True)
class Level:
    """Between which p-values a decision may lie: a step is sure beyond."""

    low: float
    high: float


_Key = tuple[int, tuple[int, ...]]


class Judge:
    """Verdicts on pairs of columns beside the edges of a network.

    A verdict is remembered for as long as the conditional that it was reached in has the same
    neighbours.
    """

    def __init__(self, rows: ConditionalRows, level: Level, n_jobs: int | None = None) -> None:
        self.rows, self._level, self._n_jobs = rows, level, resolve_jobs(n_jobs)
        self._fits: dict[int, Conditional] = {}  # the last conditional of each column
        self._known: dict[Pair, tuple[_Key, Verdict]] = {}

    def ask(self, network: Network, pairs: list[Pair]) -> list[Verdict]:
        """Return verdicts on edges of a network, or on pairs as additions to it, each alone."""
        found: dict[Pair, tuple[_Key, Verdict]] = {}
        work: dict[_Key, list[Pair]] = {}
        for pair in pairs:
            target, other = self._cheaper(network, pair)
            key = target, tuple(sorted(network.beside[target] | {other}))
            known = self._known.get(pair)
            if known is not None and known[0] == key:
                found[pair] = known
            else:
                work.setdefault(key, []).append(pair)

        def judge(key: _Key) -> None:
            asked = work[key]
            for pair, verdict in zip(asked, self._judge(key, asked), strict=True):
                found[pair] = key, verdict

        run(judge, sorted(work, key=self._cost, reverse=True), self._n_jobs)
        self._known.update(found)
        return [found[pair][1] for pair in pairs]

    def _cost(self, key: _Key) -> int:
        """Return the number of parameters of a conditional."""
        target, others = key
        sizes = int(self.rows.sizes[list(others)].sum())
        return int(self.rows.free[target]) + int(self.rows.sizes[target]) * sizes

    def _cheaper(self, network: Network, pair: Pair) -> Pair:
        """Return the end in whose conditional a pair is tested, and the other."""
        i, j = pair

        def cost(own: int, other: int) -> tuple[int, int]:
            return self._cost((own, (*network.beside[own] - {other}, other))), own

        return (i, j) if cost(i, j) <= cost(j, i) else (j, i)

    def _judge(self, key: _Key, pairs: list[Pair]) -> list[Verdict]:
        """Return the verdicts on some pairs in one conditional."""
        target, others = key[0], list(key[1])
        ends = [j if i == target else i for i, j in pairs]
        if self.rows.pairwise:
            each = [Conditional(self.rows, target, others, [target, other]) for other in ends]
        else:
            each = [self._conditional(target, others)] * len(ends)
        return [self._test(given, other) for given, other in zip(each, ends, strict=True)]

    def _conditional(self, target: int, others: list[int]) -> Conditional:
        """Return a conditional that starts from the last one of its column."""
        last = self._fits.get(target)
        if last is not None and last.others == others:
            return last
        start = None if last is None else _carry(last, others, self.rows)
        found = Conditional(self.rows, target, others, start=start)
        if found.usable:
            self._fits[target] = found
        return found

    def _test(self, given: Conditional, other: int) -> Verdict:
        """Return the verdict on one neighbour of a conditional."""
        sizes = self.rows.sizes[[other, given.target]]
        if not sizes.all() or not given.usable:
            return UNTESTABLE
        cells = given.cells_of(other)
        parts = [cells]
        linear = np.outer(*(self.rows.columns[i].linear for i in (other, given.target))).ravel()
        if linear.any() and not linear.all():
            parts = [cells[linear], cells[~linear]]
        quick = self._step(given, cells, parts) if self.rows.independent else None
        return quick or self._ratio(given, cells, parts)

    def _step(self, given: Conditional, cells: Integers, parts: list[Integers]) -> Verdict | None:
        """Return the verdict by one step from the fit, if that is sure."""
        whole, factor = given.wald(cells), _small_sample(given)
        statistics = [whole * factor]
        if len(parts) > 1:
            rest = given.wald(parts[1]) * factor
            statistics = [statistics[0] - rest, rest]
        linear = bool(np.abs(given.fit.theta[cells]).max() <= LINEAR)
        for statistic, part, share in zip(statistics, parts, _shares(parts), strict=True):
            above = statistic > _MARGIN * chdtri(len(part), self._level.low * share)
            below = statistic * _MARGIN < chdtri(len(part), self._level.high * share)
            if above:
                break  # one part that is significant decides
            if not (below and linear):
                return None
        p = [float(chdtrc(len(part), max(t, 0.0))) for t, part in zip(statistics, parts, strict=True)]
        return _combine(statistics, [len(part) for part in parts], p)

    def _ratio(self, given: Conditional, cells: Integers, parts: list[Integers]) -> Verdict:
        """Return the verdict by likelihood ratios."""
        fits = [given.without(cells), given.fit]
        if len(parts) > 1:
            fits.insert(1, given.without(parts[1]))
        statistics, dof, p = [], [], []
        for (null, fit), part in zip(pairwise(fits), parts, strict=True):
            ratio = 2.0 * max(fit.value - null.value, 0.0) * _small_sample(given)
            effects = design_effects(given, null, part, cells if part is parts[0] else part)
            statistics.append(ratio / effects.mean)
            dof.append(len(part))
            p.append(self._p_value(ratio / effects.mean, len(part), effects.along))
        return _combine(statistics, dof, p)

    def _p_value(self, statistic: float, dof: int, effects: Floats) -> float:
        """Return the p-value of a ratio over its mean design effect."""
        if self.rows.independent or not len(effects):
            return float(chdtrc(dof, statistic))
        upper = dof / len(effects) * float(effects.sum() ** 2 / np.square(effects).sum())
        survey = self.rows.survey
        if survey is None:
            return float(chdtrc(upper, statistic * upper / dof))
        return float(fdtrc(upper, upper * survey.freedom, statistic / dof))


class DesignEffects(NamedTuple):
    """Variances of a pair's effective scores, over those that the model expects."""

    along: Floats  # directions of the pair; empty if the model expects less than a row to tell
    mean: float  # by which a ratio is divided, at least 1


def design_effects(given: Conditional, null: Fit, part: Integers, cells: Integers) -> DesignEffects:
    """Return the design effects of a pair, at the fit without it.

    `cells` are zero there, and `part` of them is tested. Of rows that are drawn independently the
    mean is 1 if the conditional is right, and so it is taken `_SURE` standard errors lower: where a
    few rows make most of the variance it is far from it by chance.
    """
    size = given.n_parameters
    others = np.setdiff1d(np.arange(size), cells)
    whole = np.tril(null.information)
    whole = whole + np.tril(whole, -1).T
    across = np.linalg.solve(whole[np.ix_(others, others)], whole[np.ix_(others, part)])
    directions = np.zeros((len(part), size))
    directions[np.arange(len(part)), part] = 1.0
    directions[:, others] = -across.T
    expected = whole[np.ix_(part, part)] - whole[np.ix_(part, others)] @ across
    spread, axes = np.linalg.eigh(expected - RIDGE_ROWS * np.eye(len(part)))
    able = spread > 1.0
    if not able.any():
        return DesignEffects(np.empty(0), 1.0)
    white = (axes[:, able] / np.sqrt(spread[able])).T
    u = given.rows_along(null, white @ directions)
    rows = given.rows
    if rows.survey is not None:
        found = given.clustered(u)
    else:
        found = np.einsum("ga,gax,gay->xy", given.seen.variances, u, u, optimize=True)
    along = np.maximum(np.linalg.eigvalsh(found), 0.0)
    mean = float(along.mean())
    if rows.independent:
        size_of_row = np.square(u).sum(axis=2) / len(along)
        mean -= _SURE * float(np.sqrt((given.seen.counts * size_of_row**2).sum()))
    return DesignEffects(along, max(1.0, mean))


def _carry(last: Conditional, others: list[int], rows: ConditionalRows) -> Floats:
    """Return the parameters of a fit for other neighbours; those of new ones are zero."""
    q, k = last.q, last.k
    sizes = rows.sizes[others] * k
    out = np.zeros(q + int(sizes.sum()))
    out[:q] = last.fit.theta[:q]
    for other, end, size in zip(others, q + np.cumsum(sizes), sizes, strict=True):
        if other in last.others:
            out[end - size : end] = last.fit.theta[last.cells_of(other)]
    return out


def _small_sample(given: Conditional) -> float:
    """Return the factor that allows for fitted parameters."""
    features = 1.0 + float(given.design.start[-1])
    return max(1.0 - features / given.weight, 1.0 - 1.0 / ROWS_PER_FEATURE)


def _shares(parts: list[Integers]) -> list[float]:
    return [1.0] if len(parts) == 1 else [LINEAR_SHARE, 1.0 - LINEAR_SHARE]


def _combine(statistics: list[float], dof: list[int], p: list[float]) -> Verdict:
    """Return the verdict of the parts together."""
    if len(p) == 1:
        return Verdict(statistics[0], dof[0], max(p[0], _TINY))
    raised = [p[0] / LINEAR_SHARE, p[1] / (1.0 - LINEAR_SHARE)]
    best = int(np.argmin(raised))
    value = min(1.0, max(raised[best], _TINY))
    return Verdict(statistics[best], dof[best], value, max(p[0], _TINY), max(p[1], _TINY))
