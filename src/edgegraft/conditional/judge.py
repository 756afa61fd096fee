"""The judge says whether a pair is an edge, given the other neighbours of one of its ends.

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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self, TypeVar

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
#: a step is sure if its statistic is as many times above or below every level: for 15 tables of log
#: odds up to 1 in a network of 200 columns of five states it was at most 1.15 times off the ratio
_MARGIN = 1.25
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
    """Where decisions lie: of false discoveries among a number of pairs, or of any false edge."""

    level: float
    n_pairs: int
    familywise: bool = False

    def range(self, n_found: int) -> tuple[float, float]:
        """Return between which p-values a decision may lie if at most this many are found."""
        low = self.level / max(self.n_pairs, 1)
        return low, low if self.familywise else low * max(n_found, 1)


_Key = tuple[int, tuple[int, ...]]
_Answer = TypeVar("_Answer")


class Judge:
    """Verdicts on pairs of columns given the edges of a network.

    A verdict is remembered for as long as the conditional that it was reached in has the same
    neighbours. Without a level no step is sure: every verdict is by ratios.
    """

    def __init__(
        self,
        rows: ConditionalRows,
        level: Level | None = None,
        n_jobs: int | None = None,
        fitted: tuple[Layout, Floats] | None = None,
    ) -> None:
        self.rows, self._level, self._n_jobs = rows, level, resolve_jobs(n_jobs)
        self._sizes: list[int] = rows.sizes.tolist()
        self._free: list[int] = rows.free.tolist()
        self._fitted = fitted  # tables of a model from which first fits begin
        self._fits: dict[int, Conditional] = {}  # the last conditional of each column
        self._known: dict[tuple[Pair, _Key], Verdict] = {}

    @property
    def _is_quick(self) -> bool:
        """Whether what is sure need not be worked out to the end."""
        return self.rows.independent and self._level is not None

    def ask(self, network: Network, pairs: list[Pair]) -> list[Verdict]:
        """Return verdicts on edges of a network, or on pairs as additions to it, each alone."""
        if self._level is not None:
            self._range = self._level.range(len(network.edges) + len(pairs))
        each = [(pair, self._key(network, pair)) for pair in pairs]
        due = [asked for asked in each if asked not in self._known]
        new = self.answer(network, [pair for pair, _ in due], self._test)
        self._known.update(zip(due, new, strict=True))
        return [self._known[asked] for asked in each]

    def answer(
        self,
        network: Network,
        pairs: list[Pair],
        ask: Callable[[Conditional, int], _Answer],
    ) -> list[_Answer]:
        """Return what is asked of pairs: of the cheaper conditional of each, and the other end."""
        work: dict[int, dict[_Key, list[Pair]]] = {}
        for pair in pairs:
            key = self._key(network, pair)
            work.setdefault(key[0], {}).setdefault(key, []).append(pair)
        found: dict[Pair, _Answer] = {}

        def settle(target: int) -> None:  # in one thread: fits begin at the last of their column
            stays = len(network.beside[target])
            for (_, others), asked in sorted(
                work[target].items(), key=lambda item: len(item[0][1])
            ):
                given = None
                for pair in asked:
                    other = pair[0] + pair[1] - target
                    if given is None or self.rows.pairwise:
                        given = self._conditional(target, list(others), other)
                    found[pair] = ask(given, other)
                if given is not None and len(others) == stays and given.usable:
                    given.forget_rows()  # of ten thousand columns they would fill the memory
                    self._fits[target] = given

        costs = {target: sum(self._cost(*key) for key in keys) for target, keys in work.items()}
        run(settle, sorted(work, key=lambda target: -costs[target]), self._n_jobs)
        return [found[pair] for pair in pairs]

    def _cost(self, target: int, others: Iterable[int]) -> int:
        """Return the number of parameters of a conditional."""
        return self._free[target] + self._sizes[target] * sum(self._sizes[j] for j in others)

    def _key(self, network: Network, pair: Pair) -> _Key:
        """Return the end in whose conditional a pair is tested, and all of its neighbours."""
        i, j = pair
        ends = ((v, network.beside[v] | {i + j - v}) for v in (i, j))
        v, others = min(ends, key=lambda end: (self._cost(*end), end[0]))
        return v, tuple(sorted(others))

    def _conditional(self, target: int, others: list[int], other: int) -> Conditional:
        """Return a conditional that starts from the last one of its column in the network."""
        if self.rows.pairwise:
            return Conditional(self.rows, target, others, [target, other])
        last = self._fits.get(target)
        if last is not None and last.others == others:
            return last
        start = None
        if last is not None:
            start = last.carried(others)
        elif self._fitted is not None:
            start = start_from_tables(self.rows, target, others, *self._fitted)
        found = Conditional(self.rows, target, others, start=start)
        found.is_carried = last is not None
        return found

    def _test(self, given: Conditional, other: int) -> Verdict:
        """Return the verdict on one neighbour of a conditional."""
        if not testable(given, other):
            return UNTESTABLE
        cells, nested, quick = given.cells_of(other), spans(given, other), None
        if self._is_quick:
            quick = self._score(given, cells, nested) or self._step(given, cells, nested)
        return quick or self._ratio(given, cells, nested)

    def _score(self, given: Conditional, cells: Integers, nested: list[Floats]) -> Verdict | None:
        """Return the verdict on a new pair by its score at the last fit, if it is surely low."""
        if given.start is None or not given.is_carried or given.start[cells].any():
            return None
        statistic = 2.0 * given.first_gain * small_sample(given)
        dof = np.diff([directions.shape[1] for directions in nested]).tolist()
        if not all(map(self._is_low, [statistic] * len(dof), dof, shares(len(dof)))):
            return None
        return combine(
            [statistic] * len(dof), dof, [float(chdtrc(len(cells), statistic))] * len(dof)
        )

    def _is_low(self, statistic: float, dof: int, share: float) -> bool:
        """Return whether a statistic is far below every level."""
        return bool(statistic * _MARGIN < chdtri(dof, min(self._range[1] * share, 1.0)))

    def _step(self, given: Conditional, cells: Integers, nested: list[Floats]) -> Verdict | None:
        """Return the verdict by one step from the fit, if that is sure."""
        factor = small_sample(given)
        upto = [factor * given.step(cells, directions) for directions in nested[1:]]
        statistics = np.diff([0.0, *upto]).tolist()
        dof = np.diff([directions.shape[1] for directions in nested]).tolist()
        linear = bool(np.abs(given.fit.theta[cells]).max() <= LINEAR)
        for statistic, size, share in zip(statistics, dof, shares(len(dof)), strict=True):
            if statistic > _MARGIN * chdtri(size, self._range[0] * share):
                break  # one part that is significant decides
            if not (linear and self._is_low(statistic, size, share)):
                return None
        p = [float(chdtrc(size, max(t, 0.0))) for t, size in zip(statistics, dof, strict=True)]
        return combine(statistics, dof, p)

    def _ratio(self, given: Conditional, cells: Integers, nested: list[Floats]) -> Verdict:
        """Return the verdict by likelihood ratios of nested spans of the pair's parameters."""
        statistics, sizes, p = [], [], []
        parts = ratios(given, cells, nested)
        for part, share in zip(parts, shares(len(parts)), strict=True):
            effects = NO_EFFECTS
            if not (self._is_quick and self._is_low(part.ratio, part.dof, share)):
                effects = design_effects(given, white_scores(given, part))
            statistics.append(part.ratio / effects.mean)
            sizes.append(part.dof)
            p.append(self._p_value(part.ratio / effects.mean, part.dof, effects.along))
        return combine(statistics, sizes, p)

    def _p_value(self, statistic: float, dof: int, effects: Floats) -> float:
        """Return the p-value of a ratio over its mean design effect."""
        if self.rows.independent or not len(effects):
            return float(chdtrc(dof, statistic))
        upper = dof / len(effects) * float(effects.sum() ** 2 / np.square(effects).sum())
        survey = self.rows.survey
        if survey is None:
            return float(chdtrc(upper, statistic * upper / dof))
        return float(fdtrc(upper, upper * survey.freedom, statistic / dof))


def testable(given: Conditional, other: int) -> bool:
    """Return whether a conditional has enough rows to test a neighbour."""
    return bool(given.rows.tested[[other, given.target]].all()) and given.usable


def spans(given: Conditional, other: int) -> list[Floats]:
    """Return the nested spans of a pair's parameters between which it is tested."""
    ends = [given.rows.columns[i] for i in (other, given.target)]
    first, second = (column.tested for column in ends)
    every = first[:, None, :, None] * second[None, :, None]
    every = every.reshape(len(first) * len(second), -1)
    linear = np.outer(*(column.linear for column in ends)).ravel()
    nested: list[Floats] = [np.empty((len(every), 0)), every]
    if linear.any() and not linear.all():
        nested.insert(1, every[:, linear])
    return nested


class Ratio(NamedTuple):
    """The likelihood ratio of the outer of two nested spans."""

    ratio: float
    dof: int
    null: Fit  # in the inner span
    normals: Floats  # of that span
    tested: Floats  # parameters along the directions that the outer span has beside it, as rows


def ratios(given: Conditional, cells: Integers, nested: list[Floats]) -> list[Ratio]:
    """Return the likelihood ratios of nested spans of a pair's parameters."""
    whole = nested[-1].shape == (len(cells), len(cells))
    fits = [given.within(cells, directions) for directions in nested[: -1 if whole else None]]
    if whole:
        fits.append(given.fit)
    found = []
    for (null, fit), (inner, outer) in zip(pairwise(fits), pairwise(nested), strict=True):
        new = outer[:, _new(inner, outer)]
        tested = np.zeros((new.shape[1], given.n_parameters))
        tested[:, cells] = new.T
        ratio = 2.0 * max(fit.value - null.value, 0.0) * small_sample(given)
        found.append(Ratio(ratio, len(tested), null, given.normals(cells, inner), tested))
    return found


class DesignEffects(NamedTuple):
    """Variances of a pair's effective scores, over those that the model expects."""

    along: Floats  # directions of the pair; empty if the model expects less than a row to tell
    mean: float  # by which a ratio is divided, at least 1


NO_EFFECTS = DesignEffects(np.empty(0), 1.0)


def white_scores(given: Conditional, part: Ratio) -> Floats:
    """Return effective scores of rows along tested directions of a pair, at the fit without them.

    Scores are of unit variance if the model is right; directions of which it expects less than a
    row are left out, but for the largest.
    Configurations by states by directions.
    """
    metric = given.metric_at(part.null).across(part.normals)
    shown = part.normals @ part.tested.T
    directions = metric.towards(shown)
    expected = shown.T @ metric.weigh(shown)
    spread, axes = np.linalg.eigh(expected - RIDGE_ROWS * np.eye(len(expected)))
    able = spread >= np.clip(spread.max(), _TINY, 1.0)
    return given.rows_along(part.null, (axes[:, able] / np.sqrt(spread[able])).T @ directions)


def design_effects(given: Conditional, u: Floats) -> DesignEffects:
    """Return the design effects of a pair, given white scores of the rows.

    Of rows that are drawn independently the mean is 1 if the conditional is right, and so it is
    taken `_SURE` standard errors lower: where a few rows make most of the variance it is far from
    it by chance.
    """
    rows = given.rows
    if not u.shape[2]:
        return NO_EFFECTS
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


def small_sample(given: Conditional) -> float:
    """Return the factor that allows for fitted parameters."""
    features = 1.0 + float(given.design.start[-1])
    return max(1.0 - features / given.weight, 1.0 - 1.0 / ROWS_PER_FEATURE)


def _new(inner: Floats, outer: Floats) -> Mask:
    """Return which columns of the outer of two nested spans are not in the inner."""
    same = (outer[:, :, None] == inner[:, None]).all(axis=0)
    return np.asarray(~same.any(axis=1))


def shares(parts: int) -> list[float]:
    """Return the shares of the level that linear scores and the rest have, or all."""
    return [1.0] if parts == 1 else [LINEAR_SHARE, 1.0 - LINEAR_SHARE]


def combine(statistics: list[float], dof: list[int], p: list[float]) -> Verdict:
    """Return the verdict of the parts together."""
    if len(p) == 1:
        return Verdict(statistics[0], dof[0], max(p[0], _TINY))
    raised = [p[0] / LINEAR_SHARE, p[1] / (1.0 - LINEAR_SHARE)]
    best = int(np.argmin(raised))
    value = min(1.0, max(raised[best], _TINY))
    return Verdict(statistics[best], dof[best], value, max(p[0], _TINY), max(p[1], _TINY))
