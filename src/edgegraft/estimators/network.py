"""How a discovery becomes fitted attributes and a file, and how reliable its edges are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from edgegraft.core.checks import check_weights
from edgegraft.core.pairs import find_pairs
from edgegraft.errors import ConvergenceWarning, DataError
from edgegraft.estimators.parameters import make_seed
from edgegraft.estimators.row_methods import RowMethods
from edgegraft.ingest.kinds import column_labels

if TYPE_CHECKING:
    from edgegraft.ingest.rows import OpenRows
    from edgegraft.learn import Discovery

_EFFECTS = ("strength", "weight", "sign", "effect", "effect_low", "effect_high")


class NetworkEstimator(RowMethods):
    """Common part of the estimators; each makes its plan in `fit`."""

    def bootstrap(
        self,
        X: Any,
        n: int = 200,
        *,
        sample_weight: ArrayLike | None = None,
        level: float = 0.95,
        random_state: Any = 0,
    ) -> dict[str, NDArray[Any]]:
        """Return how reliable the edges are: how often rows drawn again keep them.

        Thin over :func:`edgegraft.learn.bootstrap.bootstrap`, where frequencies and intervals are
        defined.

        Parameters
        ----------
        X, sample_weight
            The rows of the fit, which the estimator does not keep, and their weights; others are
            refused.
        n : int, default 200
            Replicates.
        level : float, default 0.95
            Of the intervals.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        dict of str to array
            ``first`` and ``second`` (names), ``frequency``, ``strength`` (size of the effect),
            ``lower`` and ``upper``: the edges of the network in the order of
            ``network_model_.edges``, then
            other pairs that some replicates have, whose strengths are NaN.
        """
        from edgegraft.conditional.coordinates import state_weights
        from edgegraft.conditional.survey_design import weigh
        from edgegraft.ingest.rows import read_table
        from edgegraft.learn.bootstrap import bootstrap

        check_is_fitted(self)
        plan = self._plan
        X = self._table(X)
        options = self._read_options(X, n_jobs=plan.n_jobs or 1)
        table = read_table(X, self.schema_, options, stacklevel=3)
        weights = np.ones(table.n_rows)
        if sample_weight is not None:
            given = check_weights(sample_weight, table.n_rows)
            weights = weigh(given, plan.weights_are).weights
        if not np.allclose(np.concatenate(state_weights(table, weights)), self._state_weights):
            raise DataError(
                "the rows and weights do not give the model of the fit: pass those it was fitted to"
            )
        found = bootstrap(
            self.network_model_,
            table,
            n,
            plan=plan,
            ranking=self._ranking,
            weights=weights,
            level=level,
            n_jobs=plan.n_jobs,
            random_state=make_seed(random_state),
        )
        names = np.array(self.schema_.names, object)
        columns = ("frequency", "strength", "lower", "upper")
        return {
            "first": names[found.edges[:, 0]],
            "second": names[found.edges[:, 1]],
            **{name: getattr(found, name) for name in columns},
        }

    def edges_frame(self, *, kept: bool = True) -> Any:
        """Return the edges with their names, strengths and tests as a frame, strongest first.

        It is of the library whose frame was fitted; after other tables, of pandas if that is
        installed, otherwise of polars, otherwise an Arrow table, with the columns of
        ``edge_table_``.

        Parameters
        ----------
        kept : bool, default True
            The network alone; otherwise all edges that the search ended with, and the columns
            ``search_norm`` and ``kept``.
        """
        from edgegraft.ingest.output import make_frame

        check_is_fitted(self)
        columns = self.edge_table_
        if kept:
            columns = {
                name: values[columns["kept"]]
                for name, values in columns.items()
                if name not in ("search_norm", "kept")
            }
        return make_frame(columns, self._kind.library)

    def save(
        self, path: str | PathLike[str], *, bootstrap: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """Write the model with how it was learned, as ``edgegraft learn`` does.

        The file also has strengths, tests and q-values of the edges, the settings, the
        certificate and the versions used; :func:`edgegraft.read_details` returns them, and
        :func:`edgegraft.load` the model.

        Parameters
        ----------
        path : path
            By convention with the suffix ``.edgegraft``; an existing file is replaced.
        bootstrap : dict, optional
            Returned by :meth:`bootstrap`: the frequencies of the edges are written as well.
        """
        from edgegraft.learn.prediction import columns_of_all

        check_is_fitted(self)
        columns: dict[str, NDArray[Any]] = {}
        if bootstrap is not None:
            columns = {"frequency": bootstrap["frequency"][: len(self.edges_)]}
            columns = columns_of_all(self.network_model_, self.model_, columns)
        self.model_.save(path, details=self._details, edge_columns=columns)

    def _take(self, found: Discovery, X: Any, rows: OpenRows) -> None:
        """Set the fitted attributes, all of them at the end of a fit or none."""
        from edgegraft.counts.information import data_quality
        from edgegraft.ingest.output import OutputForm
        from edgegraft.learn.provenance import details_of

        search, plan, schema = found.search, found.plan, rows.rows.schema
        strengths = found.model.edge_strengths()
        order = np.argsort(-strengths, kind="stable")
        self.schema_ = schema
        self.n_features_in_ = len(schema)
        labels = column_labels(X)
        if labels is None and not isinstance(X, np.ndarray):
            labels = list(schema.names)
        if labels and all(isinstance(label, str) for label in labels):
            self.feature_names_in_ = np.array(labels, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._kind, self._plan, self._ranking = OutputForm.of(X), plan, found.ranking
        self._state_weights = search.objective.state_weights()
        file = {"file": Path(X).name} if isinstance(X, str | PathLike) else {}
        self._details = details_of(found, file | rows.source(search.objective.n_rows))
        if rows.table is not None:
            self._details["data_quality"] = data_quality(rows.table)
        self.model_ = found.final_model
        self.network_model_ = found.model
        self.prediction_ = found.prediction
        self.edges_ = found.model.edges[order]
        self.edge_strengths_ = strengths[order]
        self.edge_table_ = _edge_table(found)
        self.trace_ = search.trace()
        self.certificate_ = found.certificate
        self.copies_ = [list(group) for group in found.copies]
        self.pair_ranking_ = _pair_ranking(found)
        self.n_tables_ = search.n_tables
        self.n_iter_ = search.n_activations
        self.converged_ = found.converged
        self.penalty_ = search.penalty.penalty
        self.ridge_ = found.ridge
        self.reason_ = str(search.reason)
        if search.interrupted:
            warnings.warn(
                f"the fit was interrupted after {search.n_activations:,} steps of the search with "
                f"{len(found.kept):,} edges: the model has the edges found so far",
                ConvergenceWarning,
                stacklevel=3,
            )


def _pair_ranking(found: Discovery) -> dict[str, NDArray[Any]] | None:
    """Return the ranking of all pairs as columns."""
    if found.ranking is None:
        return None
    names = np.array(found.model.names, object)
    first, second = names[found.ranking.pairs[:, 0]], names[found.ranking.pairs[:, 1]]
    columns = {"kept": found.ranking.kept, "score": found.ranking.score}
    return {"first": first, "second": second, **columns}


def _edge_table(found: Discovery) -> dict[str, NDArray[Any]]:
    """Return all edges that the search ended with as columns: those kept, strongest first."""
    tests, model, names = found.tests, found.model, np.array(found.model.names, object)
    at = find_pairs(model.edges, tests.edges, len(names))
    columns = {"first": names[tests.edges[:, 0]], "second": names[tests.edges[:, 1]]}
    for name in _EFFECTS:  # known of those kept
        columns[name] = np.full(len(found.kept), np.nan)
        columns[name][at] = model.edge_columns[name]
    columns["search_norm"] = found.search_norms
    for name in ("statistic", "dof", "p_value", "q_value"):
        columns[name] = getattr(tests, name)
    if tests.groups is not None:
        columns["p_table"] = np.full(len(found.kept), np.nan)
        columns["p_table"][at] = model.edge_columns["p_table"]
        columns |= tests.groups.columns(np.arange(len(tests.edges)))
    columns["kept"] = found.kept
    order = np.lexsort((-found.search_norms, -columns["strength"]))  # NaN comes last
    return {name: values[order] for name, values in columns.items()}
