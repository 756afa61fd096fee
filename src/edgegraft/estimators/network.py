"""How a discovery becomes fitted attributes, and how sure its edges are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from edgegraft.config import Plan
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs
from edgegraft.errors import ConvergenceWarning, DataError
from edgegraft.estimators.parameters import make_seed
from edgegraft.estimators.reading import as_table
from edgegraft.estimators.row_methods import RowMethods
from edgegraft.estimators.writing import Kind
from edgegraft.ingest.kinds import column_labels
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import read_table
from edgegraft.learn import Discovery, StopReason, discover
from edgegraft.learn.bootstrap import bootstrap
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import Rows


class NetworkEstimator(RowMethods):
    """What the estimators share; each says in `fit` how its plan comes about."""

    def bootstrap(
        self,
        X: Any,
        n: int = 200,
        *,
        sample_weight: ArrayLike | None = None,
        level: float = 0.95,
        random_state: Any = 0,
    ) -> dict[str, NDArray[Any]]:
        """Return how sure the edges are: the fit repeated on rows drawn again.

        Thin over :func:`edgegraft.learn.bootstrap`, which says what frequencies and intervals
        mean.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit, which the estimator does not keep, and their weights. The fit is
            made again from them, and refused where it is not the same.
        n : int, default 200
            Replicates.
        level : float, default 0.95
            Of the intervals.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        dict of str to array
            ``first`` and ``second`` (names), ``frequency``, ``strength``, ``mean_strength``,
            ``lower`` and ``upper``: the edges of the network, then other pairs that some
            replicates have, whose strengths are NaN.
        """
        check_is_fitted(self)
        plan = self._plan
        _, table = self._read(X, self.schema_, resolve_jobs(plan.n_jobs))
        weights = None if sample_weight is None else check_weights(sample_weight, table.n_rows)
        found = discover(table, plan, weights=weights)
        timed = plan.max_time is not None or self.reason_ == StopReason.INTERRUPTED
        if not timed and found.model != self.model_:
            raise DataError(
                "these rows and weights do not give the model of the fit: pass the table, and "
                "the sample_weight, that were fitted"
            )
        sure = bootstrap(
            found,
            table,
            n,
            weights=weights,
            fdr=plan.fdr,
            level=level,
            n_jobs=plan.n_jobs,
            random_state=make_seed(random_state),
        )
        names = np.array(self.schema_.names, object)
        columns = ("frequency", "strength", "mean_strength", "lower", "upper")
        return {
            "first": names[sure.edges[:, 0]],
            "second": names[sure.edges[:, 1]],
            **{name: getattr(sure, name) for name in columns},
        }

    def _read(self, X: Any, schema: Schema | None, n_jobs: int) -> tuple[Any, PackedTable]:
        """Return what was given, and it packed."""
        X = as_table(X, type(self).__name__)
        table = read_table(X, schema, ReadOptions(n_jobs=n_jobs), stacklevel=4)
        return X, table

    def _take(self, found: Discovery, plan: Plan, X: Any, table: PackedTable | Rows) -> None:
        """Set the fitted attributes, all of them at the end of a fit or none."""
        growth, tests = found.search, found.tests
        strengths = found.model.edge_strengths()
        order = np.argsort(-strengths, kind="stable")
        self.schema_ = table.schema
        self.n_features_in_ = len(table.schema)
        labels = column_labels(X)
        if labels is None and not isinstance(X, np.ndarray):
            labels = list(table.schema.names)
        if labels and all(isinstance(label, str) for label in labels):
            self.feature_names_in_ = np.array(labels, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._kind, self._plan = Kind.of(X), plan
        self.model_ = found.model
        self.edges_ = found.model.edges[order]
        self.edge_strengths_ = strengths[order]
        self.edge_table_ = _edge_table(found)
        self.trace_ = growth.trace()
        self.certificate_ = found.certificate
        self.n_tables_ = growth.n_tables
        self.n_iter_ = growth.n_activations
        self.converged_ = found.converged
        self.penalty_ = found.penalty
        self.ridge_ = found.ridge
        self.max_tests_ = plan.test_limit
        self.reason_ = str(growth.reason)
        if growth.interrupted:
            warnings.warn(
                f"the fit was interrupted after {growth.n_activations:,} steps of the search with "
                f"{len(tests.edges):,} edges: the model is that of the edges found so far",
                ConvergenceWarning,
                stacklevel=3,
            )


def _edge_table(found: Discovery) -> dict[str, NDArray[Any]]:
    """Return all edges that the search ended with as columns, strongest first."""
    tests, names = found.tests, np.array(found.model.names, object)
    order = np.argsort(-found.search_strengths, kind="stable")
    columns = {
        "first": names[tests.edges[:, 0]],
        "second": names[tests.edges[:, 1]],
        "strength": found.search_strengths,
        "statistic": tests.statistic,
        "dof": tests.dof,
        "p_value": tests.p_value,
        "q_value": tests.q_value,
        "kept": found.kept,
    }
    return {name: values[order] for name, values in columns.items()}
