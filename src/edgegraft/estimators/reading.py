"""Tables as scikit-learn's users pass them: checked in its own words, then read as any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_weights
from edgegraft.errors import DataError
from edgegraft.ingest.kinds import TableKind, library_of, table_kind
from edgegraft.ingest.memory import SAMPLE_ROWS, Budget
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import open_rows
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import Rows, StoredRows
from edgegraft.table.store import PlaneStore


def as_table(X: Any, estimator: str) -> Any:
    """Return `X` as a table that can be read; arrays are checked as scikit-learn does.

    Parameters
    ----------
    X : table
    estimator : str
        What messages call the estimator.
    """
    arrays = (TableKind.ARRAY, TableKind.OTHER)
    if table_kind(X) not in arrays or isinstance(X, np.ma.MaskedArray):
        return X
    if library_of(X) in ("pandas", "polars", "pyarrow"):
        return X  # refused in their own words
    if isinstance(X, list | tuple):
        # As objects: numbers beside text stay numbers, and every column finds its own type.
        _check_lengths(X)
        X = np.array(X, dtype=object)
    from sklearn.utils.validation import check_array  # slow to load, and files do without

    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")


def _check_lengths(rows: Sequence[Any]) -> None:
    lengths = [len(row) if isinstance(row, list | tuple) else None for row in rows]
    for k, length in enumerate(lengths):
        if length is not None and lengths[0] is not None and length != lengths[0]:
            raise DataError(f"row {k} has {length} cells where row 0 has {lengths[0]}")


class RowsToFit(NamedTuple):
    """Rows as `discover` takes them, and where they come from."""

    rows: PackedTable | Rows
    weights: NDArray[np.float64] | None  # of a table; rows have their own
    sample_rows: int
    store: PlaneStore | None = None  # which they were read through
    budget: Budget | None = None  # if there is a limit

    def source(self, n_fitted: float) -> dict[str, Any]:
        """Return what a model file keeps of the rows; `n_fitted` is the weight of those fitted."""
        described = self.rows if isinstance(self.rows, PackedTable) else self.store
        source: dict[str, Any] = {"rows": self.rows.n_rows}
        if described is not None:
            source["missing"] = described.n_missing.tolist()
        if not isinstance(self.rows, PackedTable):
            source["sample"] = self.sample_rows  # on which edges were tested
            if n_fitted < self.rows.weight:
                source["fitted"] = "the sample"  # interrupted before all rows were used
        if self.weights is not None:
            source["weight"] = float(self.weights.sum())
        return source


@contextmanager
def rows_to_fit(
    X: Any, schema: Schema | None, options: ReadOptions, weights: ArrayLike | None = None
) -> Iterator[RowsToFit]:
    """Open rows as `discover` takes them; see :func:`edgegraft.ingest.rows.open_rows`."""
    with open_rows(X, schema, options) as given:
        if given.remote is not None:
            if weights is not None:
                raise DataError("rows on a cluster have no sample_weight: repeat rows instead")
            yield RowsToFit(given.remote, None, SAMPLE_ROWS)
            return
        table, store, budget = given.table, given.store, given.budget
        if table is not None:
            checked = None if weights is None else check_weights(weights, table.n_rows)
            yield RowsToFit(table, checked, SAMPLE_ROWS, store, budget)
            return
        assert store is not None
        assert budget is not None
        checked = None if weights is None else check_weights(weights, store.n_rows)
        rows = StoredRows(store, checked, budget.n_jobs, budget.kept_bytes)
        yield RowsToFit(rows, None, budget.sample_rows, store, budget)
