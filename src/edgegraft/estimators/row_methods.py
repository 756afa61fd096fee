"""What a fitted estimator answers about rows; thin over the model's own questions."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, check_scalar, validate_data

from edgegraft.core.checks import check_weights
from edgegraft.core.types import Floats
from edgegraft.errors import DataError, ModelError
from edgegraft.estimators.parameters import Parameters
from edgegraft.ingest.kinds import TableKind, column_labels, table_kind

if TYPE_CHECKING:
    from edgegraft.ingest.output import OutputForm
    from edgegraft.model import PairwiseMRF
    from edgegraft.table import Schema


class RowMethods(Parameters):
    """Questions about rows, answered by ``model_`` in the caller's own kind of table."""

    model_: PairwiseMRF
    schema_: Schema
    n_features_in_: int
    _kind: OutputForm

    def score_samples(self, X: Any) -> Floats:
        """Return the log pseudolikelihood of each row, in nats.

        That is the sum over the columns of ``log p(cell | the row's other known cells)``. A missing
        cell has no term of its own, and is summed over in the terms of the others, as by
        :meth:`predict_proba`.
        """
        codes = self._codes(X)
        return self.model_.pseudo_log_likelihood(codes=codes)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log pseudolikelihood of a row, weighted if asked: higher is better."""
        rows = self.score_samples(X)
        if sample_weight is None:
            return float(rows.mean())
        return float(np.average(rows, weights=check_weights(sample_weight, len(rows))))

    def predict_proba(self, X: Any, target: str | int | None = None) -> Floats:
        """Return the probabilities of a column's categories given the other cells of each row.

        Missing cells are summed over: exactly, or by 200 Gibbs draws per row if too much is missing
        of a dense network for that (a standard error of at most .035 if the draws mix well).

        Parameters
        ----------
        X : table of the fitted columns
            The target's own cells play no part, and the column may be absent. If the columns have
            names, those that are absent are missing.
        target : str or int, optional
            Name or position of the column. By default all columns, their probabilities side by
            side in the order of ``schema_``.

        Returns
        -------
        array of float, shape (n_rows, number of categories)
            In the order of ``schema_[target].categories``.
        """
        check_is_fitted(self)
        names = self.schema_.names
        if target is None:
            codes = self._codes(X)
            parts = [self.model_.predict_proba(target=name, codes=codes) for name in names]
            return np.hstack(parts)
        name = self._column(target)
        return self.model_.predict_proba(target=name, codes=self._codes(X, name))

    def predict(
        self, X: Any, target: str | int | None = None, *, quantiles: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return what the other cells of each row say of a column: one value per row.

        Of a column of numbers (or of levels that are numbers) the conditional mean; of others the
        likeliest category. Missing neighbours are treated as by :meth:`predict_proba`.

        Parameters
        ----------
        X : table of the fitted columns
            As for :meth:`predict_proba`.
        target : str or int, optional
            Name or position of the column. By default all columns, side by side.
        quantiles : float or array of float, optional
            Quantiles between 0 and 1 of a column of numbers instead of its mean, one column each
            if there are several.
        """
        check_is_fitted(self)
        if target is None:
            codes = self._codes(X)
            parts = [
                self.model_.predict(target=name, codes=codes, quantiles=quantiles)
                for name in self.schema_.names
            ]
            kinds = {part.dtype.kind in "iufb" for part in parts}
            parts = parts if len(kinds) == 1 else [part.astype(object) for part in parts]
            return np.column_stack(parts)
        name = self._column(target)
        return self.model_.predict(target=name, codes=self._codes(X, name), quantiles=quantiles)

    def impute(
        self, X: Any, method: Literal["map", "draw"] = "map", *, random_state: Any = 0
    ) -> Any:
        """Return the table with its missing cells filled in.

        Parameters
        ----------
        X : table of the fitted columns
        method : {"map", "draw"}
            The likeliest joint completion of each row, or one drawn at random given what is known.
        random_state : int, Generator or None
            For draws, and for the approximation where exact completion is not affordable.

        Returns
        -------
        table of the same kind
            Known cells stay as they are. A missing number gets the mean of the numbers in its
            level, or with "draw" a random one of them. Of a file, an Arrow table.
        """
        from edgegraft.ingest.output import fill

        check_is_fitted(self)
        X = self._table(X)
        before = self._codes_of(X)
        rng = np.random.default_rng(random_state)
        after = self.model_.impute_codes(before, method=method, random_state=rng)
        return fill(X, self.schema_, before, after, rng if method == "draw" else None)

    def transform(self, X: Any) -> Any:
        """Return the table with its missing cells filled in, as a step of a pipeline.

        The same as ``impute(X)``, but for ``set_output``, which chooses the kind of frame.
        """
        return self.impute(X)

    def sample(
        self, n_samples: int = 1, *, given: dict[str, Any] | None = None, random_state: Any = None
    ) -> Any:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default 1
        given : dict of name to category, optional
            Evidence that every row agrees with.
        random_state : int, Generator or None

        Returns
        -------
        table of the kind that was fitted
            With its names, categories and types; after fitting a file, an Arrow table. Columns
            of numbers have numbers drawn within their levels.
        """
        check_is_fitted(self)
        check_scalar(n_samples, "n_samples", Integral, min_val=1)
        rng = np.random.default_rng(random_state)
        codes = self.model_.sample_codes(int(n_samples), given, random_state=rng)
        return self._kind.build(self.schema_, codes, rng)

    def _codes(self, X: Any, optional: str | None = None) -> NDArray[np.int64]:
        """Return a table's codes; the column `optional` may be absent and is missing then.

        If one is optional, so are all others of a table with names.
        """
        check_is_fitted(self)
        return self._codes_of(self._table(X), optional)

    def _codes_of(self, X: Any, optional: str | None = None) -> NDArray[np.int64]:
        """Return the codes of what :meth:`_table` returned."""
        from edgegraft.ingest.rows import read_codes

        schema, absent = self.schema_, set[str]()
        if table_kind(X) is TableKind.ARRAY:
            X = np.asanyarray(X)
            if optional is not None and X.shape[1:] == (len(schema) - 1,):
                absent = {optional}
            else:
                validate_data(self, X, reset=False, skip_check_array=True)
        else:
            labels = column_labels(X)
            self._check_names(labels)
            if optional is not None:
                absent = set(schema.names).difference(map(str, labels or schema.names))
        if len(absent) == len(schema):
            raise DataError("the table has none of the fitted columns")
        present = [i for i, name in enumerate(schema.names) if name not in absent]
        own = schema.select(present) if absent else schema
        found = read_codes(X, own, self._read_options(X))
        if not absent:
            return found
        codes = np.full((len(found), len(schema)), -1, np.int64)
        codes[:, present] = found
        return codes

    def _check_names(self, labels: list[Any] | None) -> None:
        """Refuse names where the fit had none, and they are not those it gave the columns."""
        if hasattr(self, "feature_names_in_") or labels is None:
            return
        own = {str(label) for label in self._kind.labels or self.schema_.names}
        if not own & {str(label) for label in labels}:
            raise DataError(
                f"X has column names, but {type(self).__name__} was fitted without: pass the "
                "columns as an array, in the order of the fit"
            )

    def _column(self, target: object) -> str:
        names = self.schema_.names
        if isinstance(target, str) and target in self.schema_:
            return target
        if isinstance(target, int | np.integer) and 0 <= target < len(names):
            return names[int(target)]
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ModelError(
            f"target={target!r} is not a column of the fitted table: give a name ({shown}) or a "
            f"position from 0 to {len(names) - 1}"
        )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that cells are categories, text included, and may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
