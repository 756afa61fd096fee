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

from edgegraft.conditional.conditional import (
    RIDGE_ROWS,
    ROWS_PER_FEATURE,
    Conditional,
    Fit,
    start_from_tables,
)
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core import Layout
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers, Mask

LINEAR = 1.0  # log-odds up to which a step to zero misses a statistic by less than `_MARGIN`
#: a step is sure if its statistic is as many times above or below every level: of 400 pairs of
#: five states (python -m benchmarks.conditionals) it is up to 1.15 times off for tables of log-odds 1
_MARGIN = 1.25
_SURE = 2.0  # standard errors by which a design effect must exceed 1: about one in 40 by chance
_CONTRADICTION = 0.01  # chance that the ends of a true edge are taken to contradict each other
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
    """Where decisions lie: of false discoveries among a number of pairs, or of any false edge."""

    level: float
    n_pairs: int
    familywise: bool = False

    def range(self, n_found: int) -> tuple[float, float]:
        """Return between which p-values a decision may lie if at most this many are found."""
        low = self.level / max(self.n_pairs, 1)
        return low, low if self.familywise else low * max(n_found, 1)


_Key = tuple[int, tuple[int, ...]]


class Judge:
    """Verdicts on pairs of columns beside the edges of a network.

    A verdict is remembered for as long as the conditionals that it was reached in have the same
    neighbours.
    """

    def __init__(
        self,
        rows: ConditionalRows,
        level: Level,
        n_jobs: int | None = None,
        fitted: tuple[Layout, Floats] | None = None,
    ) -> None:
        self.rows, self._level, self._n_jobs = rows, level, resolve_jobs(n_jobs)
        self._fitted = fitted  # tables of a model from which first fits begin
        self._fits: dict[int, Conditional] = {}  # the last conditional of each column
        self._known: dict[tuple[Pair, _Key], Verdict] = {}

    def ask(
        self, network: Network, pairs: list[Pair], *, both_ends: bool = False
    ) -> list[Verdict]:
        """Return verdicts on edges of a network, or on pairs as additions to it, each alone.

        With `both_ends`, a pair that passes at one end has the verdict of the other if the two
        contradict each other.
        """
        self._range = self._level.range(len(network.edges) + len(pairs))
        ends = [self._cheaper(network, pair) for pair in pairs]
        found = self._verdicts(network, pairs, ends)
        if both_ends and not self.rows.pairwise:
            able = [k for k, verdict in enumerate(found) if verdict.p_value <= self._range[1]]
            doubted = self._contradicted(network, [ends[k] for k in able])
            able = [k for k, doubt in zip(able, doubted, strict=True) if doubt]
            turned = [(ends[k][1], ends[k][0]) for k in able]
            others = self._verdicts(network, [pairs[k] for k in able], turned)
            for k, other in zip(able, others, strict=True):
                found[k] = max(found[k], other, key=lambda verdict: verdict.p_value)
        return found

    def _verdicts(self, network: Network, pairs: list[Pair], ends: list[Pair]) -> list[Verdict]:
        """Return verdicts on pairs, each in the conditional of the first of two ends."""
        keys = [self._key(network, end) for end in ends]
        work: dict[_Key, list[tuple[Pair, int]]] = {}
        for pair, key, (_, other) in zip(pairs, keys, ends, strict=True):
            if (pair, key) not in self._known:
                work.setdefault(key, []).append((pair, other))
        fits = self._conditionals(network, list(work))

        def judge(key: _Key) -> None:
            for pair, other in work[key]:
                if self.rows.pairwise:
                    given = Conditional(self.rows, key[0], list(key[1]), [key[0], other])
                else:
                    given = fits[key]
                self._known[pair, key] = self._test(given, other)

        run(judge, sorted(work, key=self._cost, reverse=True), self._n_jobs)
        return [self._known[pair, key] for pair, key in zip(pairs, keys, strict=True)]

    def _contradicted(self, network: Network, ends: list[Pair]) -> list[bool]:
        """Return for which edges the parameters at the two ends differ by more than chance.

        In a model of pairs they are the same. If a neighbour is lacking at one end, a pair that
        stands in for it has parameters there alone.
        """
        keys = {self._key(network, turn) for i, j in ends for turn in ((i, j), (j, i))}
        fits = self._conditionals(network, sorted(keys))

        def differ(end: Pair) -> bool:
            i, j = end
            first = fits[self._key(network, (i, j))]
            second = fits[self._key(network, (j, i))]
            if not first.usable or not second.usable or not first.k * second.k:
                return False
            at, back = first.cells_of(j), second.cells_of(i).reshape(first.k, second.k).T.ravel()
            spread = first.inverse[np.ix_(at, at)] + second.inverse[np.ix_(back, back)]
            apart = first.fit.theta[at] - second.fit.theta[back]
            return bool(apart @ np.linalg.solve(spread, apart) > chdtri(len(at), _CONTRADICTION))

        answers: dict[Pair, bool] = {}
        run(lambda end: answers.update({end: differ(end)}), ends, self._n_jobs)
        return [answers[end] for end in ends]

    @staticmethod
    def _key(network: Network, end: Pair) -> _Key:
        """Return the column and the neighbours of the conditional in which a pair is tested."""
        target, other = end
        return target, tuple(sorted(network.beside[target] | {other}))

    def _cost(self, key: _Key) -> int:
        """Return the number of parameters of a conditional."""
        target, others = key
        sizes = int(self.rows.sizes[list(others)].sum())
        return int(self.rows.free[target]) + int(self.rows.sizes[target]) * sizes

    def _cheaper(self, network: Network, pair: Pair) -> Pair:
        """Return the end in whose conditional a pair is tested, and the other."""
        i, j = pair
        costs = self._cost(self._key(network, (i, j))), self._cost(self._key(network, (j, i)))
        return (i, j) if costs[0] <= costs[1] else (j, i)

    def _conditionals(self, network: Network, keys: list[_Key]) -> dict[_Key, Conditional]:
        """Return conditionals that start from the last ones of their columns."""
        found: dict[_Key, Conditional] = {}

        def describe(key: _Key) -> None:
            target, others = key[0], list(key[1])
            last = self._fits.get(target)
            if last is not None and last.others == others:
                found[key] = last
                return
            start = None
            if last is not None:
                start = last.carried(others)
            elif self._fitted is not None:
                start = start_from_tables(self.rows, target, others, *self._fitted)
            found[key] = Conditional(self.rows, target, others, start=start)
            found[key].is_carried = last is not None

        if self.rows.pairwise:
            return {}
        run(describe, sorted(keys, key=self._cost, reverse=True), self._n_jobs)
        for key in keys:  # those of the network itself; additions to it are for once
            if len(key[1]) == len(network.beside[key[0]]) and found[key].usable:
                self._fits[key[0]] = found[key]
        return found

    def _test(self, given: Conditional, other: int) -> Verdict:
        """Return the verdict on one neighbour of a conditional."""
        if not self.rows.tested[[other, given.target]].all() or not given.usable:
            return UNTESTABLE
        ends = [self.rows.columns[i] for i in (other, given.target)]
        cells, every = given.cells_of(other), np.kron(*(column.tested for column in ends))
        linear = np.outer(*(column.linear for column in ends)).ravel()
        nested = [np.empty((len(cells), 0)), every]
        if linear.any() and not linear.all():
            nested.insert(1, every[:, linear])
        quick = None
        if self.rows.independent:
            quick = self._score(given, cells, nested) or self._step(given, cells, nested)
        return quick or self._ratio(given, cells, nested)

    def _score(self, given: Conditional, cells: Integers, nested: list[Floats]) -> Verdict | None:
        """Return the verdict on a new pair by its score beside the last fit, if it is surely low."""
        if given.start is None or not given.is_carried or given.start[cells].any():
            return None
        statistic = 2.0 * given.first_gain * _small_sample(given)
        dof = np.diff([directions.shape[1] for directions in nested]).tolist()
        shares = _shares(len(dof))
        if not all(map(self._is_low, [statistic] * len(dof), dof, shares)):
            return None
        return _combine(
            [statistic] * len(dof), dof, [float(chdtrc(len(cells), statistic))] * len(dof)
        )

    def _is_low(self, statistic: float, dof: int, share: float) -> bool:
        """Return whether a statistic is far below every level."""
        return bool(statistic * _MARGIN < chdtri(dof, min(self._range[1] * share, 1.0)))

    def _step(self, given: Conditional, cells: Integers, nested: list[Floats]) -> Verdict | None:
        """Return the verdict by one step from the fit, if that is sure."""
        factor = _small_sample(given)
        upto = [factor * given.step(cells, directions) for directions in nested[1:]]
        statistics = np.diff([0.0, *upto]).tolist()
        dof = np.diff([directions.shape[1] for directions in nested]).tolist()
        linear = bool(np.abs(given.fit.theta[cells]).max() <= LINEAR)
        for statistic, size, share in zip(statistics, dof, _shares(len(dof)), strict=True):
            if statistic > _MARGIN * chdtri(size, self._range[0] * share):
                break  # one part that is significant decides
            if not (linear and self._is_low(statistic, size, share)):
                return None
        p = [float(chdtrc(size, max(t, 0.0))) for t, size in zip(statistics, dof, strict=True)]
        return _combine(statistics, dof, p)

    def _ratio(self, given: Conditional, cells: Integers, nested: list[Floats]) -> Verdict:
        """Return the verdict by likelihood ratios of nested spans of the pair's parameters."""
        whole = nested[-1].shape == (len(cells), len(cells))
        fits = [given.within(cells, directions) for directions in nested[: -1 if whole else None]]
        if whole:
            fits.append(given.fit)
        statistics, sizes, p = [], [], []
        for (null, fit), (inner, outer) in zip(pairwise(fits), pairwise(nested), strict=True):
            ratio = 2.0 * max(fit.value - null.value, 0.0) * _small_sample(given)
            effects = design_effects(given, null, cells, inner, outer[:, _new(inner, outer)])
            size = outer.shape[1] - inner.shape[1]
            statistics.append(ratio / effects.mean)
            sizes.append(size)
            p.append(self._p_value(ratio / effects.mean, size, effects.along))
        return _combine(statistics, sizes, p)

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


def design_effects(
    given: Conditional, null: Fit, cells: Integers, inner: Floats, tested: Floats
) -> DesignEffects:
    """Return the design effects of a pair along tested directions, at the fit without them.

    `inner` are directions of the pair's parameters that are in that fit. Of rows that are drawn
    independently the mean is 1 if the conditional is right, and so it is taken `_SURE` standard
    errors lower: where a few rows make most of the variance it is far from it by chance.
    """
    size, k = given.n_parameters, tested.shape[1]
    others = np.setdiff1d(np.arange(size), cells)
    basis = np.zeros((size, len(others) + inner.shape[1] + k))
    basis[others, np.arange(len(others))] = 1.0
    basis[cells, len(others) :] = np.concatenate((inner, tested), axis=1)
    whole = np.tril(null.information)
    whole = basis.T @ (whole + np.tril(whole, -1).T) @ basis
    across = np.linalg.solve(whole[:-k, :-k], whole[:-k, -k:])
    directions = (basis[:, -k:] - basis[:, :-k] @ across).T
    expected = whole[-k:, -k:] - whole[-k:, :-k] @ across
    spread, axes = np.linalg.eigh(expected - RIDGE_ROWS * np.eye(k))
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


def _small_sample(given: Conditional) -> float:
    """Return the factor that allows for fitted parameters."""
    features = 1.0 + float(given.design.start[-1])
    return max(1.0 - features / given.weight, 1.0 - 1.0 / ROWS_PER_FEATURE)


def _new(inner: Floats, outer: Floats) -> Mask:
    """Return which columns of the outer of two nested spans are not in the inner."""
    same = (outer[:, :, None] == inner[:, None]).all(axis=0)
    return np.asarray(~same.any(axis=1))


def _shares(parts: int) -> list[float]:
    return [1.0] if parts == 1 else [LINEAR_SHARE, 1.0 - LINEAR_SHARE]


def _combine(statistics: list[float], dof: list[int], p: list[float]) -> Verdict:
    """Return the verdict of the parts together."""
    if len(p) == 1:
        return Verdict(statistics[0], dof[0], max(p[0], _TINY))
    raised = [p[0] / LINEAR_SHARE, p[1] / (1.0 - LINEAR_SHARE)]
    best = int(np.argmin(raised))
    value = min(1.0, max(raised[best], _TINY))
    return Verdict(statistics[best], dof[best], value, max(p[0], _TINY), max(p[1], _TINY))
