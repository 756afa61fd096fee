"""From a frame on a cluster to packed partitions that its workers hold, under one schema.

    source -> opened -> survey -> tree of merges -> schema -> partition packed

Every step is a task whose result the scheduler can compute again from the source, which is what
it does for partitions whose worker is lost. A partition is read once. Its cells have provisional
codes until the schema is settled; closing it is one look-up per cell. Merging is associative, and
its result depends on the order of the partitions alone, so surveys can be merged in a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import Argument, DataError, DataTypeError, listing
from edgegraft.ingest.binning import assign_bins
from edgegraft.ingest.cells import read_number
from edgegraft.ingest.column_kinds import Observed
from edgegraft.ingest.columns import ClosedColumn, OpenColumn
from edgegraft.ingest.decide import decide
from edgegraft.ingest.encoder import encode_source, read_open
from edgegraft.ingest.findings import Findings, Problems
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.table.arrow import LabelKind
from edgegraft.table.blocks import TableRows
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema, Variable

if TYPE_CHECKING:
    from distributed import Client, Future

_FAN_IN = 8  # surveys merged by one task


def as_sources(partitions: Any) -> list[Any]:
    """Return the partitions of a Dask frame or array, or of a sequence, one by one."""
    library = type(partitions).__module__.partition(".")[0]
    if library == "dask" and hasattr(partitions, "to_delayed"):
        if getattr(partitions, "ndim", 2) != 2:
            raise DataTypeError("a Dask Series is one column: pass a frame")
        blocks = partitions.to_delayed()
        if hasattr(blocks, "reshape"):  # of an array
            if blocks.shape[1] != 1:
                raise DataError(
                    f"the array is cut into {blocks.shape[1]} blocks of columns: join them first "
                    "with array.rechunk({1: -1})"
                )
            blocks = blocks.ravel()
        sources = list(blocks)
    elif isinstance(partitions, str | bytes) or not isinstance(partitions, Iterable):
        raise DataTypeError(
            f"cannot take partitions from {type(partitions).__name__}: pass a Dask frame, or a "
            "list of futures, delayed values, tables or paths that the workers can read"
        )
    else:
        sources = list(partitions)
    if not sources:
        raise DataError("there are no partitions")
    return sources


def computed(client: Client, sources: Sequence[Any]) -> list[Any]:
    """Return the sources, with futures in place of delayed values."""
    from dask.delayed import Delayed

    delayed = {k: source for k, source in enumerate(sources) if isinstance(source, Delayed)}
    # In one call: a graph per partition would be sent with every one of them.
    futures = dict(zip(delayed, client.compute(list(delayed.values())), strict=True))
    return [futures.get(k, source) for k, source in enumerate(sources)]


def on_each(
    client: Client, work: Callable[..., Any], parts: Iterable[Any], *arguments: Any
) -> list[Future]:
    """Return the futures of ``work(part, *arguments)``."""
    # Not client.map: a list of frames or paths among the arguments is a partition, not a task.
    return [client.submit(work, part, *arguments, pure=False) for part in parts]


def survey_of(client: Client, opened: Sequence[Future]) -> Future:
    """Return the labels of all open partitions together."""
    level = on_each(client, OpenPart.survey, opened)
    while len(level) > 1:
        parts = [level[first : first + _FAN_IN] for first in range(0, len(level), _FAN_IN)]
        level = on_each(client, merge, parts)
    return level[0]


@lru_cache(maxsize=16)
def _read_schema(text: str) -> Schema:
    """Return a schema from its JSON; the partitions of a worker share one."""
    return Schema.from_json(text)


_NO_TYPE = "null"  # of a column without one value


#: What is known of every column of some parts, in the order of the first; nothing without rows.
Survey = tuple[Observed, ...]


@dataclass(frozen=True, eq=False)
class OpenPart:
    """A part whose cells have provisional codes."""

    columns: tuple[OpenColumn, ...]
    n_rows: int

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(column.buffer.nbytes for column in self.columns)

    def survey(self) -> Survey:
        """Return the labels of every column, and how often each occurs."""
        return tuple(column.observed() for column in self.columns)

    def close(self, schema_json: str, options: ReadOptions) -> TableRows | None:
        """Return the part packed under the schema of all parts; None without rows."""
        if not self.n_rows:
            return None
        schema = _read_schema(schema_json)
        at = {column.name: column for column in self.columns}
        columns = (
            at[own.name].buffer.finish(_codes_of(at[own.name], own, options), own.n_states)
            for own in schema
        )
        return TableRows(PackedTable.from_columns(schema, columns, self.n_rows))


def open_part(X: Any, options: ReadOptions) -> OpenPart:
    """Read a part of a table once."""
    if _is_empty(X):
        return OpenPart((), 0)
    with open_source(X, options) as source:
        columns, n_rows = read_open(source, options)
    overflowed = [column.name for column in columns if column.overflowed]
    if overflowed:
        raise DataError(
            f"columns {listing(overflowed)} have more distinct numbers in one partition than can "
            "be gathered: give bins by a schema, which pack(sample).schema of some rows has, as "
            "schema="
        )
    return OpenPart(tuple(columns) if n_rows else (), n_rows)


def pack_part(X: Any, schema_json: str, options: ReadOptions) -> TableRows | None:
    """Return a part packed under a schema that is known beforehand; None without rows."""
    if _is_empty(X):
        return None
    with open_source(X, options) as source:
        return TableRows(encode_source(source, _read_schema(schema_json), options, Findings()))


def merge(surveys: Sequence[Survey]) -> Survey:
    """Return what the parts of several surveys are together, in their order.

    Parts with different columns, or columns whose types do not go together, are refused.
    """
    filled = [survey for survey in surveys if survey]
    if not filled:
        return ()
    of_name: dict[str, list[Observed]] = {column.name: [] for column in filled[0]}
    for survey in filled:
        found = {column.name: column for column in survey}
        if found.keys() != of_name.keys():
            odd = sorted(found.keys() ^ of_name.keys())
            raise DataError(f"partitions differ in their columns: only some have {listing(odd)}")
        for name, column in found.items():
            of_name[name].append(column)
    return tuple(map(_merge_columns, of_name.values()))


def settle(survey: Survey, options: ReadOptions, findings: Findings) -> Schema:
    """Return the schema of a whole table from the survey of all its parts."""
    if not survey:
        raise DataError("the partitions have no rows")
    problems, variables = Problems(), []
    for column in survey:
        # A copy: text is read in place, and a survey may be settled again.
        found = decide(replace(column), options, findings, problems)
        variables += [] if found is None else [found[0]]
        if found is not None and found[0].n_states > options.max_states:
            with problems.noted(column.name):
                raise DataError(
                    f"column '{column.name}' has {found[0].n_states:,} categories in all "
                    f"partitions together, more than {options.max_states}, such as "
                    f"{listing(column.labels, 3)}: leave it out with ",
                    Argument("drop", [column.name]),
                    " or merge categories first",
                )
    problems.raise_all()
    return Schema(variables)


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
        labels = map(float, part.labels) if kind is LabelKind.FLOAT else part.labels
        for label, row in zip(labels, rows, strict=True):
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


def _codes_of(column: OpenColumn, variable: Variable, options: ReadOptions) -> NDArray[np.uint16]:
    if variable.edges is not None:
        read = [read_number(label) if column.from_text else label for label in column.labels]
        return assign_bins(np.array(read, np.float64), variable.edges)
    closed = ClosedColumn(variable, options, column.from_text)
    return np.array([closed.code_of(label) for label in column.labels], np.uint16)
