"""A model that predicts: the penalised pseudolikelihood, as strong as held-out rows ask for.

    F = L + penalty * sum_e d_e ||w_e||_2 + ridge * ||w||_2^2

Edges that help to predict may be too weak to pass tests, and predict better shrunk. So a fifth of
the rows is held out, of few rows each fifth in turn, and :mod:`~edgegraft.learn.prediction_path`
finds the penalty and the ridge whose fit to the others predicts them best. Both are scaled to all
rows, which are fitted once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.features import Features
from edgegraft.config import Plan
from edgegraft.core.pairs import all_pairs, pair_ids
from edgegraft.core.types import Edges, Floats, Tree
from edgegraft.counts import PairCounts
from edgegraft.errors import DataError
from edgegraft.grafting.problem import ALL_PAIRS
from edgegraft.learn.prediction_path import Path, Trial, choose_strengths
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.objective import Objective
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.rank.mean_fields import rank_pairs
from edgegraft.table import Schema
from edgegraft.table.blocks import TableRows

if TYPE_CHECKING:
    from edgegraft.learn.by_likelihood import Refit


@dataclass(frozen=True)
class _Rule:
    """Rows that are held out, and the fit to all of them."""

    folds: int = 5  # parts of the rows, of which one is held out
    many_rows: int = 2000  # from here on one part is held out; of fewer, each in turn
    little: int = 10**7  # rows times squared columns, if that takes little time
    ranked: int = 50  # pairs per column, if there are too many to try all


_RULE = _Rule()


class Prediction(NamedTuple):
    """A model for prediction, and what it was chosen from.

    Attributes
    ----------
    model : PairwiseMRF
        Fitted to all rows.
    penalty, ridge : float
        Of that fit.
    trials : list of Trial
        What held-out rows said of fits to the others.
    converged : bool
        Whether the last fit reached its tolerance.
    refit : Refit or None
        How it was fitted again by likelihood, if whole rows are the aim.
    """

    model: PairwiseMRF
    penalty: float
    ridge: float
    trials: list[Trial]
    converged: bool
    refit: Refit | None = None

    def with_columns_of(self, network: PairwiseMRF) -> Self:
        """Return it with the columns of the network's edges."""
        columns = columns_of_all(network, self.model, network.edge_columns)
        return self._replace(model=self.model.with_edge_columns(columns))

    def tree(self) -> Tree:
        """Return all but the refit in arrays, for :meth:`of_tree`."""
        return {
            "model": {"edges": self.model.edges, "theta": self.model.theta},
            "strengths": [self.penalty, self.ridge],
            "trials": np.array(self.trials, np.float64).reshape(-1, len(Trial._fields)),
            "converged": self.converged,
        }

    @classmethod
    def of_tree(cls, tree: Tree, schema: Schema) -> Self:
        """Return what :meth:`tree` described."""
        trials = [
            Trial(penalty, ridge, score, round(n_edges))
            for penalty, ridge, score, n_edges in tree["trials"].tolist()
        ]
        penalty, ridge = tree["strengths"]
        model = PairwiseMRF(schema, **tree["model"])
        return cls(model, penalty, ridge, trials, tree["converged"])


def fit_for_prediction(
    rows: TableRows,
    plan: Plan | None = None,
    *,
    whole: Objective | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Prediction:
    """Fit the model that predicts held-out rows best, pairs and strengths chosen by them.

    Parameters
    ----------
    rows : TableRows
        Rows in memory, of which fifths are held out at random.
    plan : Plan, optional
        Of it threads, seed and tolerance are used.
    whole : Objective, optional
        The pseudolikelihood of all rows, if `rows` are a sample of them.
    stop : callable, optional
        Asked before every fit of the path; if it returns True, the best so far is taken.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.table import PackedTable
    >>> data = make_chain(5, n_states=3, n_rows=1000, random_state=0)
    >>> found = fit_for_prediction(TableRows(PackedTable.from_codes(data.X.astype(int))))
    >>> {(0, 1), (1, 2), (2, 3), (3, 4)} <= set(map(tuple, found.model.edges.tolist()))
    True
    """
    plan = plan or Plan()
    all_rows = whole or loss_of(merge_copies(rows))
    pairs = candidates(rows, plan.random_state)
    parts = hold_out(rows, np.random.default_rng([plan.random_state, 1]))
    folds = [
        (
            Path(loss_of(fitted, all_rows.features), pairs, plan.tol),
            loss_of(held, all_rows.features),
        )
        for fitted, held in parts
    ]
    best, trials = choose_strengths(folds, stop)
    path = folds[0][0]
    share = path.loss.n_rows / all_rows.n_rows  # strengths fall with the rows as noise does
    penalty, ridge = best.penalty * share**0.5, best.ridge * share
    last = Path(all_rows, pairs, plan.tol, (path.solution.layout, path.solution.theta))
    last.fit(penalty, ridge, fully=True)
    layout = all_rows.layout(last.edges())
    theta = layout.carry(last.solution.theta, last.solution.layout)
    model = PairwiseMRF(rows.schema, layout.edges, all_rows.expand(theta, layout))
    return Prediction(model, penalty, ridge, trials, last.solution.info.converged)


def hold_out(rows: TableRows, rng: np.random.Generator) -> list[tuple[TableRows, TableRows]]:
    """Return pairs of rows to fit and rows to score.

    A row whose weight is a whole number counts as that many rows, each held out or not; otherwise
    a row is held out with its weight.
    """
    weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
    if rows.n_rows < 2 * _RULE.folds or np.count_nonzero(weights) < 2 * _RULE.folds:
        raise DataError(
            f"the table has {rows.n_rows} rows, and a model for prediction cannot be chosen from "
            f"fewer than {2 * _RULE.folds}: use aim='network'"
        )
    if (weights == np.floor(weights)).all():
        owner = np.repeat(np.arange(len(weights)), weights.astype(np.int64))
        each = np.ones(len(owner))
    else:
        owner, each = np.flatnonzero(weights), weights[weights > 0]
    fold = rng.permutation(len(owner)) % _RULE.folds
    few = len(owner) < _RULE.many_rows and len(owner) * len(rows.schema) ** 2 < _RULE.little
    held = [
        np.bincount(owner[fold == k], each[fold == k], len(weights)).astype(np.float64)
        for k in range(_RULE.folds if few else 1)
    ]
    return [(_part(rows, weights - part), _part(rows, part)) for part in held]


def _part(rows: TableRows, weights: Floats) -> TableRows:
    """Return the rows that count."""
    used = np.flatnonzero(weights)
    n_rows = max(1, round(float(weights.sum())))
    return merge_copies(TableRows(rows.table.take(used), weights[used], rows.n_jobs, n_rows))


def merge_copies(rows: TableRows) -> TableRows:
    """Return equal rows as one row of their weight."""
    table = rows.table
    cells = np.ascontiguousarray(table.cells[:, : table.n_rows].T)
    keys = cells.view(np.dtype((np.void, cells.strides[0])))[:, 0]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == table.n_rows:
        return rows
    weights = np.bincount(which.ravel(), rows.weights, len(first))
    order = np.argsort(first)  # as the rows came
    return TableRows(table.take(first[order]), weights[order], rows.n_jobs, rows.n_rows)


def loss_of(rows: TableRows, features: Features | None = None) -> Objective:
    """Return the pseudolikelihood of rows, of the weights of scores if columns are ordered."""
    return featured(Pseudolikelihood(rows, precision="single"), features)


def candidates(rows: TableRows, seed: int) -> Edges:
    """Return all pairs, or those that the data rank highest if all are too many."""
    n = len(rows.schema)
    if n * (n - 1) // 2 <= ALL_PAIRS:
        return all_pairs(n)
    ranked = rank_pairs(PairCounts(rows), np.random.default_rng([seed, 2]), _RULE.ranked * n).edges
    return np.unique(np.sort(ranked, axis=1), axis=0)


def columns_of_all(
    network: PairwiseMRF, model: PairwiseMRF, columns: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return columns of the network's edges as columns of the edges of the model for prediction.

    Edges that only help to predict were not tested: they have no values, and the strength 0. Which
    they are is the column "in_network".
    """
    if model is network:
        return dict(columns)
    n = len(network.names)
    here, there = pair_ids(model.edges, n), pair_ids(network.edges, n)
    _, at, source = np.intersect1d(here, there, return_indices=True)
    out: dict[str, NDArray[Any]] = {"in_network": np.isin(here, there)}
    for name, values in columns.items():
        missing = np.nan if values.dtype.kind == "f" and name != "strength" else 0
        out[name] = np.full(len(here), missing, values.dtype)
        out[name][at] = values[source]
    return out
