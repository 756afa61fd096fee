"""How many rows a study needs: power of edges by theory and by simulation.

The statistic of an edge with ``d`` degrees of freedom is a chi-square whose noncentrality grows
with the rows: ``N`` times a size per row. For an effect ``r`` the size is about ``(r + .7 r^3)^2``,
and the root of the statistic varies less than that of a chi-square, by ``1 - 1.45 size``: both were
measured on networks of two neighbours per column, of two states and of levels, effects .1 to .4.
Every neighbour takes a row. An edge is found if its p-value passes the level that the false
discovery rate leaves, which depends on how many are found: statistics of all edges are drawn
together, and cut as those of a fit are. Edges that are not found explain nothing beside the others,
which raises roots of statistics by about a tenth of their share, strong edges counting by their
size.

Of a fit the size per row is ``(statistic - d) / N``, what chance adds being taken off.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.datasets.graphs import erdos_renyi
from edgegraft.errors import DataError, SettingError
from edgegraft.ingest.output import make_frame
from edgegraft.learn.discovery import discover
from edgegraft.learn.effects import Evidence, edge_effects
from edgegraft.model import PairwiseMRF, load, read_details
from edgegraft.study.comparison import plain_rows
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import TableRows

_DRAWS = 400
_STEEPER, _NARROWER = 0.7, 1.45  # noncentrality and spread of large effects
_CLEARER = 0.09  # of the share of edges that are not found
_MAX_ROWS = 1e9
_CURVE = 25  # numbers of rows on the curve
_CALIBRATIONS, _CALIBRATION_ROWS = 3, 4000  # of assumed networks
_GRAPHS = 5  # random ones that simulations go through


class _Study(NamedTuple):
    """Edges to be found among pairs: their sizes per row and degrees of freedom."""

    names: list[tuple[str, str]]
    size: Floats
    dof: Floats
    n_pairs: int
    fdr: float
    degree: float  # neighbours of a column

    def power(self, n_rows: float) -> Floats:
        """Return the chance of each edge to be found, over draws of all statistics."""
        centre = np.sqrt(_free_rows(n_rows, self.degree) * self.size)
        weights = np.maximum(self.size, 1e-12)
        lost = 1.0 - float(np.average(self._found(centre), weights=weights))
        return self._found(centre * (1.0 + _CLEARER * lost * _others(self.degree)))

    def _found(self, centre: Floats) -> Floats:
        rng = np.random.default_rng(0)  # the same noise for all numbers of rows
        noise = rng.normal(size=(_DRAWS, len(self.size)))
        rest = np.where(self.dof > 1, rng.chisquare(np.maximum(self.dof - 1, 1), noise.shape), 0.0)
        spread = np.maximum(1.0 - _NARROWER * self.size, 0.5)
        p = chdtrc(self.dof, (spread * noise + centre) ** 2 + rest)
        order = np.argsort(p, axis=1)
        rank = np.arange(1, p.shape[1] + 1)
        passing = np.take_along_axis(p, order, axis=1) <= self.fdr * rank / self.n_pairs
        found = np.where(passing.any(axis=1), p.shape[1] - passing[:, ::-1].argmax(axis=1), 0)
        return np.asarray((np.argsort(order, axis=1) < found[:, None]).mean(axis=0))

    def rows_for(self, power: float, edge: int | None = None) -> float:
        """Return the rows at which the mean power, or that of an edge, is enough."""

        def reached(n: float) -> bool:
            found = self.power(n)
            return bool((found.mean() if edge is None else found[edge]) >= power)

        low, high = 10.0, 20.0
        while not reached(high):
            low, high = high, 2 * high
            if high > _MAX_ROWS:
                return float("inf")
        while high / low > 1.002:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if reached(middle) else (middle, high)
        return float(np.ceil(high))


@dataclass(frozen=True)
class PowerPlan:
    """How many rows are needed.

    Attributes
    ----------
    rows : float
        At which the expected share of edges found is `power`; infinite if no number is enough.
    power : float
    fdr : float
    n_pairs : int
    curve : dict of str to array
        ``rows`` and ``power`` (the expected share of edges found), by theory; after a simulation
        also ``simulated``, NaN for rows that were not simulated.
    edges : dict of str to array
        ``first``, ``second``, ``rows`` (at which the edge is found with chance `power`) and, after
        a fit, ``power_now`` and ``power_twice`` with its rows and with twice as many; ``kept``.
    now : int or None
        Rows of the fit.
    """

    rows: float
    power: float
    fdr: float
    n_pairs: int
    curve: dict[str, NDArray[Any]]
    edges: dict[str, NDArray[Any]]
    now: int | None

    def edges_frame(self) -> Any:
        """Return the edges as a frame."""
        return make_frame(self.edges)

    def settled_by_twice(self) -> list[tuple[str, str]]:
        """Return the pairs that the fit did not keep and twice the rows would probably have."""
        if "kept" not in self.edges:
            return []
        likely = ~self.edges["kept"] & (self.edges["power_twice"] >= self.power)
        columns = self.edges["first"][likely], self.edges["second"][likely]
        return list(zip(*columns, strict=True))

    def summary(self) -> dict[str, Any]:
        """Return the plan in plain types, for JSON."""
        return {
            "rows": self.rows if np.isfinite(self.rows) else None,
            "power": self.power,
            "fdr": self.fdr,
            "n_pairs": self.n_pairs,
            "curve": plain_rows(self.curve),
            "edges": plain_rows(self.edges),
        }

    def __repr__(self) -> str:
        return (
            f"PowerPlan({self.rows:,.0f} rows for {self.power:.0%} of {len(self.edges['first'])} "
            f"edges at a false discovery rate of {self.fdr:g})"
        )


def plan(
    fitted: Any = None,
    *,
    power: float = 0.8,
    effect: float = 0.1,
    n_columns: int = 20,
    n_edges: int | None = None,
    dof: int = 1,
    fdr: float | None = None,
    rows: ArrayLike | None = None,
    n_simulations: int = 0,
    random_state: int = 0,
) -> PowerPlan:
    """Return the rows needed to find edges, by theory and, if asked for, by simulation.

    Parameters
    ----------
    fitted : GraftedMRF or path of a model file, optional
        Its edges are those to find, with their own sizes; without one, the assumptions below are.
    power : float, default 0.8
        Expected share of the edges that are found; of one edge the chance that it is.
    effect : float, default 0.1
        Partial correlation of the edges.
    n_columns : int, default 20
    n_edges : int, optional
        As many as columns by default.
    dof : int, default 1
        Degrees of freedom of a test: 1 for ordered or binary columns, ``(s - 1) (t - 1)`` for
        unordered ones of s and t states.
    fdr : float, optional
        By default that of the fit, or of :class:`~edgegraft.learn.Plan`.
    rows : array of int, optional
        Rows of the curve; by default from a tenth to four times the rows needed.
    n_simulations : int, default 0
        Data sets drawn and learned from at each number of rows of `rows`, or at the rows needed.
        Assumed networks are random graphs of binary columns, which need ``dof=1``.
    random_state : int, default 0

    Examples
    --------
    >>> plan(effect=0.2, n_columns=20)
    PowerPlan(427 rows for 80% of 20 edges at a false discovery rate of 0.005)
    """
    if not 0 < power < 1:
        raise SettingError("power", f"must lie between 0 and 1, found {power}")
    if fdr is not None and not 0 < fdr <= 1:
        raise SettingError("fdr", f"must be above 0 and at most 1, found {fdr}")
    if rows is not None and np.min(rows) < 2:
        raise SettingError("rows", f"must be at least 2, found {np.min(rows)}")
    if fitted is None:
        study, now, kept, model = _assumed(effect, n_columns, n_edges, dof, fdr), None, None, None
    else:
        study, now, kept, model = _learned(fitted, fdr)
    target = study if kept is None else study._replace(size=study.size[kept], dof=study.dof[kept])
    needed = target.rows_for(power)
    middle = needed if np.isfinite(needed) else 10_000.0
    points = np.unique(np.rint(np.geomspace(middle / 10, 4 * middle, _CURVE)).astype(np.int64))
    if rows is not None:
        points = np.atleast_1d(np.asarray(rows, np.int64))
    curve: dict[str, NDArray[Any]] = {
        "rows": points,
        "power": np.array([float(target.power(float(n)).mean()) for n in points]),
    }
    if n_simulations:
        models = (
            [model]
            if model is not None
            else [
                _random_model(effect, n_columns, len(study.size), [random_state, k])
                for k in range(min(_GRAPHS, n_simulations))
            ]
        )
        at = points if rows is not None else np.array([int(middle)])
        shares = _simulated(models, at, study.fdr, n_simulations, random_state)
        if rows is None:
            curve["rows"], place = np.append(points, at), len(points)
            curve["power"] = np.append(curve["power"], target.power(float(at[0])).mean())
            simulated = np.full(place + 1, np.nan)
            simulated[place] = shares[0]
            order = np.argsort(curve["rows"], kind="stable")
            curve = {name: values[order] for name, values in curve.items()}
            curve["simulated"] = simulated[order]
        else:
            curve["simulated"] = shares
    return PowerPlan(
        needed, power, study.fdr, study.n_pairs, curve, _edges(study, power, now, kept), now
    )


def _edges(
    study: _Study, power: float, now: int | None, kept: NDArray[np.bool_] | None
) -> dict[str, NDArray[Any]]:
    keys = list(zip(study.size.tolist(), study.dof.tolist(), strict=True))
    needed = {
        key: study.rows_for(power, k) for key, k in {key: k for k, key in enumerate(keys)}.items()
    }
    columns: dict[str, NDArray[Any]] = {
        "first": np.array([first for first, _ in study.names], object),
        "second": np.array([second for _, second in study.names], object),
        "rows": np.array([needed[key] for key in keys]),
    }
    if now is not None and kept is not None:
        columns |= {"power_now": study.power(now), "power_twice": study.power(2.0 * now)}
        columns["kept"] = kept
    return columns


def chance_to_return(model: PairwiseMRF, columns: Mapping[str, Any], n_rows: float) -> Floats:
    """Return how often another sample of as many rows would show each edge of a model."""
    n, dof = model.n_variables, np.asarray(columns["dof"])
    degree = 2.0 * model.n_edges / n
    size = np.maximum(np.asarray(columns["statistic"]) - dof, 0.0) / _free_rows(n_rows, degree)
    rate = float(Plan().fdr or 1)
    freedom = np.maximum(dof, 1).astype(float)
    study = _Study([], size, freedom, n * (n - 1) // 2, rate, degree)
    return np.where(dof > 0, study.power(n_rows), np.nan)


def _assumed(
    effect: float, n_columns: int, n_edges: int | None, dof: int, fdr: float | None
) -> _Study:
    n_pairs = n_columns * (n_columns - 1) // 2
    count = min(n_columns, n_pairs) if n_edges is None else n_edges
    if n_columns < 2:
        raise SettingError("n_columns", f"must be at least 2, found {n_columns}")
    if not 0 < abs(effect) < 1:
        raise SettingError("effect", f"must lie between 0 and 1, found {effect}")
    if not 1 <= count <= n_pairs:
        raise SettingError("n_edges", f"must be from 1 to the {n_pairs} pairs, found {count}")
    degree = 2.0 * count / n_columns
    steeper = _STEEPER * _others(degree) * effect**2
    size = np.full(count, (effect * (1.0 + steeper)) ** 2)
    names = [("any", "any")] * count
    freedom, rate = np.full(count, float(dof)), fdr or float(Plan().fdr or 1)
    return _Study(names, size, freedom, n_pairs, rate, degree)


def _others(degree: float) -> float:
    """Return whether an edge has others beside it, from 0 for none to 1 for one at each end."""
    return min(1.0, max(0.0, degree - 1.0))


def _free_rows(n_rows: float, degree: float) -> float:
    """Return the rows less those that a column's neighbours and its intercept take."""
    return max(n_rows - 1.0 - degree, 1.0)


def _learned(fitted: Any, fdr: float | None) -> tuple[_Study, int, NDArray[np.bool_], PairwiseMRF]:
    """Return the edges that a fit has tested, its rows, which it kept, and its model."""
    if isinstance(fitted, str | PathLike):
        stored, model = read_details(fitted), load(fitted)
        columns, details = dict(stored.edge_columns), stored.details
        names = [(model.names[i], model.names[j]) for i, j in model.edges.tolist()]
        kept = np.ones(len(names), bool)
    elif hasattr(fitted, "edge_table_"):
        columns, details, model = fitted.edge_table_, fitted._details, fitted.model_
        names = list(zip(columns["first"], columns["second"], strict=True))
        kept = np.asarray(columns["kept"])
    else:
        raise DataError(f"expected a fitted GraftedMRF or a model file, found {fitted!r}")
    if "statistic" not in columns or not kept.any():
        raise DataError("the model has no tested edges to plan for: give assumptions instead")
    source = details.get("source") or {}
    now = int(source.get("weight", source.get("rows", 0)))
    dof = np.maximum(columns["dof"], 1).astype(float)
    n = model.n_variables
    degree = 2.0 * float(kept.sum()) / n
    size = np.maximum(columns["statistic"] - columns["dof"], 0.0) / _free_rows(now, degree)
    rate = float(fdr or details.get("fdr") or Plan().fdr or 1)
    return _Study(names, size, dof, n * (n - 1) // 2, rate, degree), now, kept, model


def _random_model(effect: float, n: int, n_edges: int, seed: list[int]) -> PairwiseMRF:
    """Return a random network of binary columns whose edges have this effect.

    Neighbours leave a column less variance, so that a coupling of ``atanh(effect)`` is too small.
    """
    rng = np.random.default_rng(seed)
    edges = erdos_renyi(n, rng, n_edges=n_edges)
    layout, table = Layout(np.full(n, 2), edges), np.array([1.0, -1.0, -1.0, 1.0])
    schema, wanted = Schema.from_states(layout.states), float(np.arctanh(abs(effect)))
    coupling = wanted * rng.choice([-1.0, 1.0], n_edges)
    certain = Evidence(np.full(n_edges, 1e9), np.ones(n_edges, np.int64), None)
    for _ in range(_CALIBRATIONS):
        theta = np.concatenate((np.zeros(2 * n), np.outer(coupling, table).ravel()))
        model = PairwiseMRF(schema, edges, theta)
        codes = model.sample_codes(_CALIBRATION_ROWS, random_state=rng)
        rows = TableRows(PackedTable.from_codes(codes, schema))
        found = np.abs(edge_effects(model, rows, certain).effect)
        coupling *= wanted / np.arctanh(np.clip(found, 1e-3, 0.999))
    return model


def _simulated(models: list[PairwiseMRF], rows: Integers, fdr: float, n: int, seed: int) -> Floats:
    """Return the share of the models' edges that are found, by numbers of rows."""
    out = np.zeros(len(rows))
    for k, n_rows in enumerate(rows.tolist()):
        for run in range(n):
            model = models[run % len(models)]
            true = pair_ids(model.edges, model.n_variables)
            rng = np.random.default_rng([seed, n_rows, run])
            table = PackedTable.from_codes(
                model.sample_codes(n_rows, random_state=rng), model.schema
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found: Edges = discover(table, Plan(fdr=fdr, random_state=run)).model.edges
            out[k] += np.isin(true, pair_ids(found, model.n_variables)).mean() / n
    return out
