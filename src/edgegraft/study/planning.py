"""Rows that a study needs, by theory (:mod:`~edgegraft.study.power`) and by simulation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.conditional.judge import Judge, Network, Verdicts
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.config import Plan
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Floats, Integers
from edgegraft.datasets import make_erdos_renyi
from edgegraft.datasets.synthetic import Options
from edgegraft.errors import DataError, SettingError
from edgegraft.ingest.output import make_frame
from edgegraft.learn.discovery import discover
from edgegraft.model import PairwiseMRF
from edgegraft.study.columns import NORMAL, plain_rows
from edgegraft.study.groups import features_of
from edgegraft.study.power import (
    FittedEdges,
    PowerStudy,
    assumed_study,
    learned_study,
    study_of_tests,
)
from edgegraft.table import PackedTable


@dataclass(frozen=True)
class _Budget:
    """What a curve and its simulation take: seconds, not precision."""

    points: int = 25  # numbers of rows on the curve
    middle: float = 10_000.0  # of the curve if no number of rows is enough
    graphs: int = 5  # random ones that simulations go through
    rows: int = 20_000  # drawn for the sizes of a model's edges: errors of a hundredth


_BUDGET = _Budget()


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
        ``rows`` and ``power`` (the expected share of edges found), by theory; after a fit with an
        interval of 95 %, ``power_low`` to ``power_high``, because the sizes of its edges are
        estimates; after a simulation also ``simulated``, NaN for rows that were not simulated.
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

    @property
    def n_edges(self) -> int:
        """Number of edges to find; those that a fit has cut do not count."""
        return int(np.sum(self.edges.get("kept", np.ones(len(self.edges["first"]), bool))))

    def __repr__(self) -> str:
        return (
            f"PowerPlan({self.rows:,.0f} rows for {self.power:.0%} of {self.n_edges} edges at a "
            f"false discovery rate of {self.fdr:g})"
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
    fitted : GraftedMRF, path of a model file, or PairwiseMRF, optional
        Its edges are those to find, with their own sizes: of a fit those of its tests, of a model
        alone those of rows drawn from it. Without one, the assumptions below are.
    power : float, default 0.8
        Expected share of the edges that are found; of one edge the chance that it is.
    effect : float, default 0.1
        Correlation that an edge alone gives.
    n_columns : int, default 20
    n_edges : int, optional
        As many as columns by default.
    dof : int, default 1
        Degrees of freedom of a test: 1 for ordered or binary columns, ``(s - 1) (t - 1)`` for
        unordered ones of s and t states.
    fdr : float, optional
        By default the fit's, or the default of :class:`~edgegraft.learn.Plan`.
    rows : array of int, optional
        Rows of the curve; by default from a tenth to four times the rows needed.
    n_simulations : int, default 0
        Data sets drawn and learned from at each number of rows of `rows`, or at the rows needed.
        Assumed networks are random graphs of binary columns, which need ``dof=1``.
    random_state : int, default 0

    Examples
    --------
    >>> plan(effect=0.2, n_columns=20)
    PowerPlan(506 rows for 80% of 20 edges at a false discovery rate of 0.005)
    """
    if not 0 < power < 1:
        raise SettingError("power", f"must lie between 0 and 1, found {power}")
    if fdr is not None and not 0 < fdr <= 1:
        raise SettingError("fdr", f"must be above 0 and at most 1, found {fdr}")
    if rows is not None and np.min(rows) < 2:
        raise SettingError("rows", f"must be at least 2, found {np.min(rows)}")
    if n_simulations and fitted is None and dof != 1:
        raise SettingError("n_simulations", "draws binary columns: it needs dof=1, or a model")
    fit = None
    if isinstance(fitted, PairwiseMRF):
        fit = _drawn_study(fitted, fdr, random_state)
    elif fitted is not None:
        fit = learned_study(fitted, fdr)
    study = assumed_study(effect, n_columns, n_edges, dof, fdr) if fit is None else fit.study
    target = study if fit is None else study.of(fit.kept)
    needed = target.rows_for(power)
    middle = needed if np.isfinite(needed) else _BUDGET.middle
    if rows is not None:
        points = np.atleast_1d(np.asarray(rows, np.int64))
    else:
        points = np.rint(np.geomspace(middle / 10, 4 * middle, _BUDGET.points)).astype(np.int64)
        points = np.unique(np.append(points, int(middle)) if n_simulations else points)
    curve = _curve(target, points, fit)
    if n_simulations:
        at = np.ones(len(points), bool) if rows is not None else points == int(middle)
        models = (
            [fit.model]
            if fit is not None
            else [
                _random_model(effect, n_columns, len(study.size), [random_state, k])
                for k in range(min(_BUDGET.graphs, n_simulations))
            ]
        )
        curve["simulated"] = np.full(len(points), np.nan)
        curve["simulated"][at] = _simulated_power(
            models, points[at], study.fdr, n_simulations, random_state
        )
    now = None if fit is None else fit.n_rows
    return PowerPlan(needed, power, study.fdr, study.n_pairs, curve, _edges(study, power, fit), now)


def _curve(
    target: PowerStudy, points: NDArray[np.int64], fit: FittedEdges | None
) -> dict[str, NDArray[Any]]:
    """Return the mean power by numbers of rows, with its interval after a fit."""
    mean = np.array([float(target.power(float(n)).mean()) for n in points])
    curve: dict[str, NDArray[Any]] = {"rows": points, "power": mean}
    if fit is not None and fit.n_rows is not None:
        spread = NORMAL * np.array([target.error(float(n), fit.n_rows) for n in points])
        curve["power_low"] = np.maximum(mean - spread, 0.0)
        curve["power_high"] = np.minimum(mean + spread, 1.0)
    return curve


def _edges(study: PowerStudy, power: float, fit: FittedEdges | None) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {
        "first": np.array([first for first, _ in study.names], object),
        "second": np.array([second for _, second in study.names], object),
        "rows": study.rows_per_edge(power),
    }
    if fit is not None and fit.n_rows is not None:
        columns["power_now"], columns["power_twice"] = (
            study.power(times * fit.n_rows) for times in (1.0, 2.0)
        )
        columns["kept"] = fit.kept
    return columns


def _random_model(effect: float, n: int, n_edges: int, seed: list[int]) -> PairwiseMRF:
    """Return a random network of binary columns whose edges have this effect."""
    rng, coupling = np.random.default_rng(seed), float(np.arctanh(abs(effect)))
    settings: Options = {"couplings": "ising", "node_scale": 0.0, "random_state": rng}
    settings["coupling_range"] = (coupling, coupling)
    return make_erdos_renyi(n, 2, 1, n_edges=n_edges, **settings).model


def _drawn_study(model: PairwiseMRF, fdr: float | None, seed: int) -> FittedEdges:
    """Return the edges of a model with the sizes that they have in many rows drawn from it."""
    if not model.n_edges:
        raise DataError("the model has no edges to plan for: give assumptions instead")
    table = _drawn(model, _BUDGET.rows, np.random.default_rng([seed, 0]))
    features = features_of(table, np.ones(_BUDGET.rows))
    n, pairs = model.n_variables, [(i, j) for i, j in model.edges.tolist()]
    judge = Judge(ConditionalRows(table, features=features))
    found = Verdicts.of(judge.ask(Network(n, model.edges), pairs))
    names = [(model.names[i], model.names[j]) for i, j in pairs]
    study = study_of_tests(names, found, _BUDGET.rows, n * (n - 1) // 2, fdr, model)
    return FittedEdges(study, np.ones(model.n_edges, bool), None, model)


def _simulated_power(
    models: list[PairwiseMRF], rows: Integers, fdr: float, n: int, seed: int
) -> Floats:
    """Return the share of the models' edges that are found, by numbers of rows."""
    out = np.zeros(len(rows))
    for k, n_rows in enumerate(rows.tolist()):
        for run in range(n):
            model = models[run % len(models)]
            table = _drawn(model, n_rows, np.random.default_rng([seed, n_rows, run]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = discover(table, Plan(fdr=fdr, random_state=run)).model.edges
            true = pair_ids(model.edges, model.n_variables)
            out[k] += np.isin(true, pair_ids(found, model.n_variables)).mean() / n
    return out


def _drawn(model: PairwiseMRF, n_rows: int, rng: np.random.Generator) -> PackedTable:
    return PackedTable.from_codes(model.sample_codes(n_rows, random_state=rng), model.schema)
