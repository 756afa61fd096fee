"""One part of a table that lies in several places, packed before the whole's categories are known.

    open a part -> survey it -> merge the surveys -> settle the schema -> close the part under it

A part is read once. Its cells have provisional codes until the schema is settled; closing it is
one look-up per cell. Merging is associative, and its result depends on the order of the parts
alone, so surveys can be merged in a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import Argument, DataError, listing
from edgegraft.ingest.binning import assign_bins
from edgegraft.ingest.cells import read_number
from edgegraft.ingest.column_kinds import Observed
from edgegraft.ingest.columns import ClosedColumn, OpenColumn
from edgegraft.ingest.decide import decide
from edgegraft.ingest.encoder import encode_source, open_encoder
from edgegraft.ingest.findings import Findings, Problems
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.table.arrow_types import LabelKind
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema, Variable

_NO_TYPE = "null"  # of a column without one value


@dataclass(frozen=True)
class Survey:
    """What is known of every column of some parts."""

    columns: tuple[Observed, ...]  # in the order of the first part; none without rows
    n_rows: int


@dataclass(frozen=True, eq=False)
class OpenPart:
    """A part whose cells have provisional codes."""

    columns: tuple[OpenColumn, ...]
    n_rows: int

    @property
    def nbytes(self) -> int:
        """Bytes of the codes so far."""
        return sum(column.buffer.nbytes for column in self.columns)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes

    def survey(self) -> Survey:
        """Return the labels of every column, and how often each occurs."""
        return Survey(tuple(column.observed() for column in self.columns), self.n_rows)

    def close(self, schema: Schema, options: ReadOptions) -> PackedTable | None:
        """Return the part packed under a schema that knows all its labels; None without rows."""
        if not self.n_rows:
            return None
        at = {column.name: column for column in self.columns}
        columns = []
        for variable in schema:
            column = at[variable.name]
            codes = _codes_of(column, variable, options)
            columns.append(column.buffer.finish(codes, variable.n_states))
        return PackedTable.from_columns(schema, columns, self.n_rows)


def open_part(X: Any, options: ReadOptions) -> OpenPart:
    """Read a part of a table once."""
    if _is_empty(X):
        return OpenPart((), 0)
    with open_source(X, options) as source:
        encoder = open_encoder(source, options)
    columns = tuple(column for column in encoder.columns if isinstance(column, OpenColumn))
    overflowed = [column.name for column in columns if column.overflowed]
    if overflowed:
        raise DataError(
            f"columns {listing(overflowed)} have more distinct numbers in one partition than can "
            "be gathered: give bins by a schema, which pack(sample).schema of some rows has, as "
            "schema="
        )
    return OpenPart(columns if encoder.n_rows else (), encoder.n_rows)


def pack_part(X: Any, schema: Schema, options: ReadOptions) -> PackedTable | None:
    """Return a part packed under a schema that is known beforehand; None without rows."""
    if _is_empty(X):
        return None
    with open_source(X, options) as source:
        return encode_source(source, schema, options, Findings())


def merge(surveys: Sequence[Survey]) -> Survey:
    """Return what the parts of several surveys are together, in their order.

    Parts with different columns, or columns whose types do not go together, are refused.
    """
    filled = [survey for survey in surveys if survey.n_rows]
    if not filled:
        return Survey((), 0)
    names = [column.name for column in filled[0].columns]
    of_name: dict[str, list[Observed]] = {name: [] for name in names}
    for survey in filled:
        found = {column.name: column for column in survey.columns}
        if found.keys() != of_name.keys():
            odd = sorted(found.keys() ^ of_name.keys())
            raise DataError(f"partitions differ in their columns: only some have {listing(odd)}")
        for name, column in found.items():
            of_name[name].append(column)
    n_rows = sum(survey.n_rows for survey in filled)
    return Survey(tuple(_merge_columns(of_name[name]) for name in names), n_rows)


def settle(survey: Survey, options: ReadOptions, findings: Findings) -> Schema:
    """Return the schema of a whole table from the survey of all its parts."""
    if not survey.n_rows:
        raise DataError("the partitions have no rows")
    problems = Problems()
    variables = []
    for column in survey.columns:
        if not column.counts.any():
            problems.empty.append(column.name)
            continue
        try:
            variables.append(_settle(column, options, findings))
        except DataError as error:
            problems.add(column.name, error)
    problems.raise_all()
    return Schema(variables)


def _settle(column: Observed, options: ReadOptions, findings: Findings) -> Variable:
    # `decide` reads text in place, and a survey may be settled again.
    variable, _ = decide(replace(column), options, findings)
    if variable.n_states > options.max_states:
        raise DataError(
            f"column '{column.name}' has {variable.n_states:,} categories in all partitions "
            f"together, more than {options.max_states}, such as {listing(column.labels, 3)}: "
            "leave it out with ",
            Argument("drop", [column.name]),
            " or merge categories first",
        )
    return variable


def _is_empty(X: Any) -> bool:
    """Return whether a table in memory has no rows; of a file that is an error."""
    shape = getattr(X, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2 and shape[0] == 0


def _merge_columns(parts: Sequence[Observed]) -> Observed:
    """Return one column of several parts: labels in order of appearance, counts added."""
    typed = [part for part in parts if part.dtype != _NO_TYPE or part.counts.any()]
    if not typed:
        return parts[0]
    kind, dtype = _common_type(typed)
    first = typed[0]
    if first.ordered and any(part.labels != first.labels for part in typed):
        raise DataError(
            f"column '{first.name}' has ordered categories that differ between partitions: "
            "declare the same everywhere, or give schema="
        )
    place: dict[Any, int] = {}
    first_rows: list[str] = []
    for part in typed:
        rows = part.first_rows or [""] * len(part.labels)
        for label, row in zip(_read_as(kind, part.labels), rows, strict=True):
            if label not in place:
                place[label] = len(place)
                first_rows.append(row)
    counts = np.zeros(len(place), np.int64)
    for part in typed:
        np.add.at(counts, [place[label] for label in part.labels], part.counts)
    return replace(
        first, kind=kind, dtype=dtype, labels=list(place), counts=counts, first_rows=first_rows
    )


def _common_type(parts: Sequence[Observed]) -> tuple[LabelKind, str]:
    """Return the type that holds the labels of all parts."""
    first = parts[0]
    kinds = {part.kind for part in parts}
    same = all(
        (part.dtype, part.ordered, part.from_text) == (first.dtype, first.ordered, first.from_text)
        for part in parts
    )
    if same:
        return first.kind, first.dtype
    if kinds <= {LabelKind.INT, LabelKind.FLOAT} and not any(
        p.declared or p.from_text for p in parts
    ):
        # Whole numbers with a missing cell are floats to many a library.
        return (LabelKind.FLOAT, "double") if LabelKind.FLOAT in kinds else (LabelKind.INT, "int64")
    found = sorted({part.dtype for part in parts})
    raise DataError(
        f"column '{first.name}' has different types in different partitions ({listing(found)}): "
        "convert it to one of them first, or give schema="
    )


def _read_as(kind: LabelKind, labels: Iterable[Any]) -> list[Any]:
    return [float(label) for label in labels] if kind is LabelKind.FLOAT else list(labels)


def _codes_of(column: OpenColumn, variable: Variable, options: ReadOptions) -> NDArray[np.uint16]:
    """Return the final code of every provisional one."""
    if variable.edges is not None:
        read = [read_number(label) if column.from_text else label for label in column.labels]
        return assign_bins(np.array(read, np.float64), variable.edges)
    closed = ClosedColumn(variable, options, column.from_text)
    return np.array([closed.code_of(label) for label in column.labels], np.uint16)
