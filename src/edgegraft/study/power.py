"""Power of the tests of edges, by theory.

The statistic of an edge is a likelihood ratio in the conditional of one end: a chi-square whose
noncentrality is ``N`` times a size per row, twice the information that the edge has about the
column beside ``m`` other neighbours. Alone an edge of effect ``r`` between columns of ``s`` equally
likely states has that of a table of which ``r`` of the rows agree and the others are chance. On a
tree each edge adds ``q = r^2 / (1 - r^2)`` to the precision of a Gaussian column, in units of its
variance, so that others leave ``1 / (1 + m q)`` of the variance, and of the information:

    size = 2 (log s + p log p + (s - 1) o log o) / (1 + m q),    p = (1 + (s - 1) r) / s,
    d = (s - 1)^2,                                               o = (1 - r) / s

about ``r^2 sqrt(d)`` of small effects. Random networks of columns of two states have .97 to 1.07
times that, for effects .1 to .4 and two to four neighbours. The estimate of ``r`` has the error
``(1 - r^2) / sqrt(N)``, hence the root of the statistic ``sqrt((1 - exp(-e)) / e)`` with
``e = size / sqrt(d)``.

Every neighbour takes a row. An edge is found if its p-value passes the level that the false
discovery rate leaves, which depends on how many are found: statistics of all edges are drawn
together, and cut as in a fit. Edges that are not found explain nothing given the others:
``m`` becomes smaller by their share, strong edges counting by their size.

Of a fit the size per row is ``(statistic - d) / N``, what chance adds being taken off. The root of
a statistic has a standard error of one, from which that of a planned power follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from edgegraft.conditional.judge import LINEAR_SHARE, Verdicts
from edgegraft.config import Plan
from edgegraft.core.types import Floats
from edgegraft.errors import DataError, SettingError
from edgegraft.model import PairwiseMRF, load, read_details


@dataclass(frozen=True)
class _Grid:
    """Numbers of rows at which power is computed."""

    first: float = 10.0  # with fewer, no conditional is fitted
    last: float = 1e9  # a budget of 27 doublings
    parts: int = 8  # of a doubling: power is then within .01 of a straight line


_GRID = _Grid()
_DRAWS = 400  # of all statistics: the error of a share of .8 of one edge is .02
_MOST = 0.9  # of a column's variance that others are taken to explain: sizes may be noise
_STEP = 0.25  # of roots of statistics, for the slope of power: small against their error of one


class PowerStudy(NamedTuple):
    """Edges to be found among pairs."""

    names: list[tuple[str, str]]
    size: Floats  # noncentrality of each edge's statistic per row
    dof: Floats
    share: Floats  # of the level, that this test of the edge has
    n_pairs: int
    fdr: float
    beside: float  # other neighbours of a column in whose conditional an edge is tested

    def of(self, edges: NDArray[Any]) -> Self:
        """Return some of the edges."""
        names = [self.names[k] for k in np.arange(len(self.names))[edges]]
        parts = {name: getattr(self, name)[edges] for name in ("size", "dof", "share")}
        return self._replace(names=names, **parts)

    def power(self, n_rows: float) -> Floats:
        """Return the chance of each edge to be found, over draws of all statistics."""
        return self._found(self._centre(n_rows))

    def error(self, n_rows: float, now: float) -> float:
        """Return the standard error of the mean power if sizes were estimated from `now` rows."""
        centre = self._centre(n_rows)
        gradient = self._found(centre + _STEP) - self._found(np.maximum(centre - _STEP, 0.0))
        scale = np.sqrt(free_rows(n_rows, self.beside) / free_rows(now, self.beside))
        return float(scale * np.sqrt(np.square(gradient / (2 * _STEP)).sum()) / len(gradient))

    def _centre(self, n_rows: float) -> Floats:
        """Return the roots of the noncentralities, what is not found explaining nothing."""
        centre = np.sqrt(free_rows(n_rows, self.beside) * self.size)
        weights = np.maximum(self.size, 1e-12)
        lost = 1.0 - float(np.average(self._found(centre), weights=weights))
        explained = self.beside * float(np.average(self._each, weights=weights))
        return np.asarray(centre / np.sqrt(1.0 - lost * min(explained, _MOST)))

    @property
    def _each(self) -> Floats:
        """Size per direction."""
        return np.asarray(np.maximum(self.size, 1e-12) / np.sqrt(self.dof))

    def _found(self, centre: Floats) -> Floats:
        rng = np.random.default_rng(0)  # the same noise for all numbers of rows
        noise = rng.normal(size=(_DRAWS, len(self.size)))
        rest = np.where(self.dof > 1, rng.chisquare(np.maximum(self.dof - 1, 1), noise.shape), 0.0)
        spread = np.sqrt(-np.expm1(-self._each) / self._each)
        p = chdtrc(self.dof, (spread * noise + centre) ** 2 + rest) / self.share
        order = np.argsort(p, axis=1)
        rank = np.arange(1, p.shape[1] + 1)
        passing = np.take_along_axis(p, order, axis=1) <= self.fdr * rank / self.n_pairs
        found = np.where(passing.any(axis=1), p.shape[1] - passing[:, ::-1].argmax(axis=1), 0)
        return np.asarray((np.argsort(order, axis=1) < found[:, None]).mean(axis=0))

    def rows_for(self, power: float) -> float:
        """Return the rows at which the mean power is enough."""
        return float(self._crossings(power, lambda found: found.mean(keepdims=True))[0])

    def rows_per_edge(self, power: float) -> Floats:
        """Return the rows at which each edge has enough power."""
        return self._crossings(power, lambda found: found)

    def _crossings(self, power: float, of: Callable[[Floats], Floats]) -> Floats:
        """Return the rows at which functions of the power are enough, between points of a grid."""
        rows, found = [_GRID.first], [of(self.power(_GRID.first))]
        never = of(self.size) * _GRID.last < 1.0
        while not (never | (found[-1] >= power)).all() and rows[-1] < _GRID.last:
            rows.append(2.0 * rows[-1])
            found.append(of(self.power(rows[-1])))
        for k in reversed(range(1, len(rows))):  # finer where one passes
            if ((found[k - 1] < power) & (found[k] >= power)).any():
                finer = np.geomspace(rows[k - 1], rows[k], _GRID.parts + 1)[1:-1].tolist()
                rows[k:k], found[k:k] = finer, [of(self.power(n)) for n in finer]
        table, logs = np.maximum.accumulate(found, axis=0), np.log(rows)
        out = np.full(table.shape[1], np.inf)
        for e, column in enumerate(table.T):
            at = int((column >= power).argmax())
            if column[at] >= power:
                near = slice(max(at - 1, 0), at + 1)
                out[e] = np.ceil(np.exp(np.interp(power, column[near], logs[near])))
        return out


class FittedEdges(NamedTuple):
    """What a fit knows of the edges that it has tested."""

    study: PowerStudy  # the edges that it kept, then those that it cut and might have kept
    kept: NDArray[np.bool_]
    n_rows: int | None  # None if sizes are not estimates
    model: PairwiseMRF


def assumed_study(
    effect: float, n_columns: int, n_edges: int | None, dof: int, fdr: float | None
) -> PowerStudy:
    """Return edges that all have the same effect."""
    n_pairs = n_columns * (n_columns - 1) // 2
    count = min(n_columns, n_pairs) if n_edges is None else n_edges
    if n_columns < 2:
        raise SettingError("n_columns", f"must be at least 2, found {n_columns}")
    if not 0 < abs(effect) < 1:
        raise SettingError("effect", f"must lie between 0 and 1, found {effect}")
    if not 1 <= count <= n_pairs:
        raise SettingError("n_edges", f"must be from 1 to the {n_pairs} pairs, found {count}")
    beside = (count - 1) * (n_columns - 2) / max(n_pairs - 1, 1)  # of a random graph
    q = effect**2 / (1.0 - effect**2)
    states, r = 1.0 + np.sqrt(dof), abs(effect)
    agree, differ = (1.0 + (states - 1.0) * r) / states, (1.0 - r) / states
    alone = np.log(states) + agree * np.log(agree) + (states - 1.0) * differ * np.log(differ)
    each = 2.0 * alone / (1.0 + beside * q)
    size, dofs, share = (np.full(count, value) for value in (each, float(dof), 1.0))
    rate = fdr or float(Plan().fdr or 1)
    return PowerStudy([("any", "any")] * count, size, dofs, share, n_pairs, rate, beside)


def learned_study(
    fitted: Any, fdr: float | None = None, n_rows: float | None = None
) -> FittedEdges:
    """Return the edges that a fit, or the fit of a model file, has tested, on `n_rows` if given."""
    model, details = model_of(fitted)
    columns = dict(model.edge_columns)
    tested = np.isfinite(columns.get("statistic", np.full(model.n_edges, np.nan)))
    if not tested.any():
        raise DataError("the model has no tested edges to plan for: give assumptions instead")
    source, cut = details.get("source") or {}, details.get("cut") or {}
    inactive = (details.get("certificate") or {}).get("n_pairs")
    n, m = model.n_variables, int(tested.sum())
    names = [(model.names[i], model.names[j]) for i, j in model.edges[tested].tolist()]
    names += zip(cut.get("first", ()), cut.get("second", ()), strict=True)
    statistic, dof, linear, rest = (
        np.append(columns[name][tested], np.array(cut.get(name, ()), float))  # None is NaN
        if name in columns
        else np.full(len(names), np.nan)
        for name in ("statistic", "dof", "p_linear", "p_rest")
    )
    rows = float(n_rows or source.get("weight", source.get("rows", 0)))
    n_pairs = n * (n - 1) // 2 if inactive is None else inactive + m
    tests = Verdicts(statistic, dof.astype(np.int64), np.full(len(names), np.nan), linear, rest)
    study = study_of_tests(names, tests, rows, n_pairs, fdr or details.get("fdr"), model)
    return FittedEdges(study, np.arange(len(names)) < m, int(rows), model)


def study_of_tests(
    names: list[tuple[str, str]],
    tests: Verdicts,
    n_rows: float,
    n_pairs: int,
    fdr: float | None,
    model: PairwiseMRF,
) -> PowerStudy:
    """Return edges with the sizes that their tests show, in the conditionals of a model."""
    fewer = np.bincount(model.edges.ravel())[model.edges].min(axis=1)  # neighbours of an end
    beside = float(fewer.mean()) - 1.0
    linear, further = tests.p_linear / LINEAR_SHARE, tests.p_rest / (1.0 - LINEAR_SHARE)
    share = np.where(linear <= further, LINEAR_SHARE, 1.0 - LINEAR_SHARE)
    return PowerStudy(
        names,
        np.maximum(tests.statistic - tests.dof, 0.0) / free_rows(n_rows, beside),
        np.maximum(tests.dof, 1.0),
        np.where(np.isnan(linear) | np.isnan(further), 1.0, share),
        n_pairs,
        float(fdr or Plan().fdr or 1),
        beside,
    )


def model_of(fitted: Any) -> tuple[PairwiseMRF, Mapping[str, Any]]:
    """Return the network of a fit, or the model of a file, with how it was learned."""
    if isinstance(fitted, str | PathLike):
        return load(fitted), read_details(fitted).details
    if hasattr(fitted, "network_model_"):
        return fitted.network_model_, fitted._details
    if isinstance(fitted, PairwiseMRF):
        return fitted, {}
    raise DataError(f"expected a model, a fitted GraftedMRF or a file, found {fitted!r}")


def replication_probability(fitted: Any, model: PairwiseMRF, n_rows: float) -> Floats:
    """Return how often another sample of as many rows would show each edge of a model."""
    found = learned_study(fitted, n_rows=n_rows)
    kept = found.study.of(found.kept)
    chance = dict(zip(kept.names, kept.power(n_rows).tolist(), strict=True))
    ends = [(model.names[i], model.names[j]) for i, j in model.edges.tolist()]
    each = np.array([chance.get(pair, np.nan) for pair in ends])
    return np.where(dict(model.edge_columns)["dof"] > 0, each, np.nan)


def free_rows(n_rows: float, beside: float) -> float:
    """Return the rows less those that a column's neighbours and its intercept take."""
    return max(n_rows - 2.0 - beside, 1.0)
