"""Tables split into groups: one schema and one set of features for all of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.coordinates import state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.survey_design import weigh
from edgegraft.core.checks import check_weights
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import Argument, DataError, EncodingWarning, listing
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import read_labels, read_table
from edgegraft.table import PackedTable

MIN_ROWS = 20  # of a group, to be compared


@dataclass(frozen=True)
class GroupRows:
    """Rows of several groups."""

    table: PackedTable  # without the columns that name groups and clusters
    names: tuple[str, ...]  # of the groups
    groups: Integers  # the group of each row
    weights: Floats
    sampling: bool  # whether the weights are those of a sample
    clusters: Integers | None  # of each row; rows of a cluster are not independent

    def of(self, g: int) -> Integers:
        """Return the rows of a group."""
        return np.flatnonzero(self.groups == g)

    def part(self, g: int) -> tuple[PackedTable, Floats]:
        """Return the table of a group and the weights of its rows."""
        rows = self.of(g)
        return self.table.take(rows), self.weights[rows]


def read_groups(
    X: Any,
    groups: str | ArrayLike,
    *,
    weights: ArrayLike | None,
    clusters: str | ArrayLike | None,
    options: ReadOptions,
) -> GroupRows:
    """Read a table whose groups and clusters are columns of it, or arrays beside it.

    Rows without a group, or without a cluster, are left out with a warning.
    """
    named = [name for name in (groups, clusters) if isinstance(name, str)]
    group = label_codes(X, groups, options)
    cluster = None if clusters is None else label_codes(X, clusters, options)
    table = _read(X, named, options)
    for what, codes in (("groups", group[0]), ("clusters", cluster and cluster[0])):
        if codes is not None and len(codes) != table.n_rows:
            raise DataError(
                Argument(what),
                f" has {len(codes):,} values where the table has {table.n_rows:,} rows",
            )
    given = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
    kept = (given > 0) & (group[0] >= 0)
    if cluster is not None:
        kept &= cluster[0] >= 0
    lost = int((given > 0).sum() - kept.sum())
    if lost:
        warnings.warn(
            f"{lost:,} of {table.n_rows:,} rows have no group or no cluster: they are left out",
            EncodingWarning,
            stacklevel=3,
        )
    if len(table.schema) < 2:
        raise DataError(f"comparing needs two columns, found {len(table.schema)}")
    used, place = np.unique(group[0][kept], return_inverse=True)
    names = tuple(group[1][k] for k in used)
    _check_sizes(names, place)
    found = weigh(given[kept])
    where = None if cluster is None else np.unique(cluster[0][kept], return_inverse=True)[1]
    whole = table if kept.all() else table.take(kept)
    return GroupRows(whole, names, place.astype(np.int64), found.weights, found.sampling, where)


def features_of(table: PackedTable, weights: Floats) -> Features:
    """Return the features of all rows together, so that a weight means the same in every group."""
    if not table.schema.scored:
        return Features.plain(table.schema)
    return Features.of(table.schema, np.concatenate(state_weights(table, weights)))


def _read(X: Any, named: list[str], options: ReadOptions) -> PackedTable:
    """Return the table without the columns that name groups and clusters."""
    if isinstance(X, PackedTable):
        columns = [name for name in X.schema.names if name not in named]
        at = [X.schema.index(name) for name in columns]
        cells = X.cells[at][:, : X.n_rows]
        return PackedTable.from_columns(X.schema.select(columns), cells, X.n_rows)
    return read_table(X, None, replace(options, drop=[*(options.drop or ()), *named]), stacklevel=4)


def label_codes(X: Any, given: str | ArrayLike, options: ReadOptions) -> tuple[Integers, list[str]]:
    """Return the codes of rows, -1 if they are missing, and the names of the codes."""
    if isinstance(given, str):
        cells = np.empty(len(labels := read_labels(X, given, options)), object)
        cells[:] = labels
    else:
        cells = np.asarray(given, object).ravel()
    missing = np.array([cell is None or cell != cell for cell in cells.tolist()], bool)
    known = sorted(set(cells[~missing].tolist()), key=lambda cell: (type(cell).__name__, cell))
    place = {label: k for k, label in enumerate(known)}
    codes = [-1 if out else place[cell] for cell, out in zip(cells, missing, strict=True)]
    return np.array(codes, np.int64), list(map(str, known))


def _check_sizes(names: tuple[str, ...], codes: Integers) -> None:
    if len(names) < 2:
        raise DataError(f"rows have {len(names)} groups: comparing needs two or more")
    sizes = np.bincount(codes, minlength=len(names))
    if sizes.min() < MIN_ROWS:
        small = [
            f"{name} ({size})" for name, size in zip(names, sizes, strict=True) if size < MIN_ROWS
        ]
        raise DataError(
            f"groups of fewer than {MIN_ROWS} rows cannot be compared: {listing(small)}; merge "
            "them with others or leave their rows out"
        )
