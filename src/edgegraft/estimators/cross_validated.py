"""`GraftedMRFCV`: the penalty, and the ridge, that predict held-out rows best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, check_cv
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)

from edgegraft.config import ModelOptions, Plan
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import SettingError
from edgegraft.estimators.network import NetworkEstimator
from edgegraft.estimators.parameters import constraints_of, plan_of
from edgegraft.ingest.rows import OpenRows
from edgegraft.learn import discover, penalty_grid
from edgegraft.learn.selection.held_out import Scores, Split, score_grid
from edgegraft.learn.selection.levels import falling
from edgegraft.table import Schema

_LEVEL = Interval(Real, 0, None, closed="left")


@dataclass(kw_only=True, eq=False, repr=False)
class GraftedMRFCV(NetworkEstimator, ModelOptions):
    """A :class:`GraftedMRF` whose penalty is chosen by cross-validated pseudolikelihood.

    Choose this if the model is to predict, sample or impute. The network that predicts best has
    edges too weak to be significant; if you want the network itself,
    :class:`GraftedMRF` controls the share of false edges, and needs no folds.

    Parameters
    ----------
    penalties : int or array of float, default 10
        The grid, or how many penalties from the largest useful one down to half of what chance
        passes.
    ridges : float, "auto" or array of them
        Weights of the squared norms to try; "auto" weighs as ten rows do.
    cv : int, splitter or iterable of (train, test) rows, default 5
        With a number, rows are shuffled into that many folds.
    fdr : float or None, default None
        False discovery rate of a cut after the last fit; folds are scored without it.
    strategy : {"best-choice", "first-hit", "exhaustive"}
        Of whole edges: single features cannot start from another fit.
    objective, inference, group_weight, penalize_nodes, refit, relaxed, selectivity, \
reservoir_size, max_tests, hub_threshold, max_edges, max_time, max_tables, priority, tol, schema, \
drop, bins, kinds, order, missing_values, max_numeric_states, max_categories, unseen, n_jobs, \
random_state
        As of :class:`GraftedMRF`. Budgets of time and tables are those of a fold's whole grid,
        and then of the last fit.

    Attributes
    ----------
    cv_results_ : dict of str to array
        One entry per point of the grid: ``penalty``, ``ridge``, ``mean_test_score`` (mean log
        pseudolikelihood of a held-out row), ``std_test_score``, ``rank_test_score``,
        ``mean_edges`` and ``split0_test_score``, ... Columns of a data frame.
    penalty_, ridge_ : float
        Penalty and ridge of the best mean score; the larger penalty if several are best.
    edges_, edge_strengths_, edge_table_, model_, trace_, certificate_, n_tables_, n_iter_, \
converged_, reason_, schema_, n_features_in_, feature_names_in_
        As of :class:`GraftedMRF`: of the last fit, to all rows.

    Notes
    -----
    Folds share the categories of all rows, so that a rare one may be absent from some. Within a
    fold every penalty starts from the fit of the one before. Ctrl-C while folds are scored raises
    KeyboardInterrupt and leaves the estimator as it was; during the last fit it does what it does
    in :class:`GraftedMRF`.

    Examples
    --------
    >>> from edgegraft import GraftedMRFCV
    >>> from edgegraft.datasets import make_chain
    >>> rows = make_chain(5, n_states=3, n_rows=600, random_state=0).X
    >>> network = GraftedMRFCV(penalties=4, cv=3, random_state=0).fit(rows)
    >>> {(0, 1), (1, 2), (2, 3), (3, 4)} <= set(map(tuple, network.edges_.tolist()))
    True
    >>> len(network.cv_results_["mean_test_score"])
    4
    """

    penalties: int | ArrayLike = 10
    ridges: Any = "auto"
    cv: Any = 5
    fdr: float | None = None
    schema: Schema | None = None
    random_state: Any = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, **params: Any
    ) -> Self:
        """Score the grid on held-out rows, and fit its best point to all rows.

        Parameters
        ----------
        X : table
            As of :meth:`GraftedMRF.fit`.
        y : ignored
        sample_weight : array of float, shape (n_rows,), optional
            A row of weight 2 counts as two rows, in fits and in scores.
        **params
            For the ``split`` method of `cv`, such as ``groups``. If scikit-learn's metadata
            routing is enabled, those that the splitter requests.

        Returns
        -------
        GraftedMRFCV
            Itself.
        """
        self._validate_params()
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            params = routed.splitter.split
        given = None
        if not isinstance(self.penalties, Integral):
            given = _grid("penalties", self.penalties)
        ridges = self._ridges()
        plan = plan_of(self, penalty=0.0)
        X, table = self._read(X, self.schema, resolve_jobs(plan.n_jobs))
        weights = None if sample_weight is None else check_weights(sample_weight, table.n_rows)
        splits = self._splits(table.n_rows, plan, params)
        penalties = given
        if penalties is None:
            penalties = penalty_grid(table, plan, int(self.penalties), weights=weights)  # type: ignore[arg-type]
        scores = score_grid(table, plan, penalties, ridges, splits, weights)
        # The first of equals: penalties fall, so it is the sparser model.
        r, p = np.unravel_index(scores.values.mean(axis=2).argmax(), scores.values.shape[:2])
        best = replace(plan, penalty=float(penalties[p]), ridge=ridges[r])
        rows = OpenRows(table, weights)
        self._take(discover(table, best, weights=weights), X, rows)
        self.cv_results_ = _results(scores, penalties, ridges)
        return self

    def _ridges(self) -> list[Any]:
        if isinstance(self.ridges, str):
            return [self.ridges]
        if isinstance(self.ridges, Real):
            return [float(self.ridges)]
        values = [value for value in np.asarray(self.ridges, object).ravel() if value != "auto"]
        found = _grid("ridges", values)[::-1].tolist() if values else []
        return found + (["auto"] if len(values) < len(np.ravel(self.ridges)) else [])

    def _splits(self, n_rows: int, plan: Plan, params: dict[str, Any]) -> list[Split]:
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            cv = KFold(int(cv), shuffle=True, random_state=plan.random_state)
        rows = np.empty((n_rows, 1))
        return [
            (_as_rows(train, n_rows), _as_rows(test, n_rows))
            for train, test in check_cv(cv).split(rows, **params)
        ]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what scikit-learn routes: weights to the fit, the rest to the splitter."""
        to_splitter = MethodMapping().add(caller="fit", callee="split")
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(splitter=check_cv(self.cv), method_mapping=to_splitter)
        )


GraftedMRFCV._parameter_constraints = constraints_of(GraftedMRFCV) | {
    "strategy": [StrOptions({"best-choice", "first-hit", "exhaustive"})],
    "penalties": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "ridges": [StrOptions({"auto"}), _LEVEL, "array-like"],
    "cv": ["cv_object"],
}


def _grid(parameter: str, values: Any) -> Floats:
    """Return the levels of one side of the grid, each once, the largest first."""
    if np.ndim(values) != 1 or not len(values):
        raise SettingError(parameter, f"must hold levels in one dimension, found {values!r}")
    return np.unique(falling(parameter, values))[::-1]


def _as_rows(rows: ArrayLike, n_rows: int) -> Integers:
    """Return the rows of a fold, which may be given as a mask."""
    return np.asarray(np.arange(n_rows)[np.asarray(rows)], np.int64)


def _results(scores: Scores, penalties: Floats, ridges: list[Any]) -> dict[str, Any]:
    n_ridges, n_penalties, n_folds = scores.values.shape
    by_fold = scores.values.reshape(-1, n_folds)
    mean = by_fold.mean(axis=1)
    return {
        "penalty": np.tile(penalties, n_ridges),
        "ridge": np.repeat(np.array(ridges, object), n_penalties),
        "mean_test_score": mean,
        "std_test_score": by_fold.std(axis=1),
        "rank_test_score": 1 + (mean[:, None] < mean[None, :]).sum(axis=1),
        "mean_edges": scores.n_edges.reshape(-1, n_folds).mean(axis=1),
    } | {f"split{k}_test_score": by_fold[:, k] for k in range(n_folds)}
