"""The one encoder: batches of a source in, codes under a schema out.

    read the batches -> decide about each column -> read again those that must be binned first

Every table goes this way: into memory, into a store on disk, or as one part of a table whose other
parts lie elsewhere. All columns that cannot be used are reported together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from edgegraft.core.threads import physical_memory
from edgegraft.errors import Argument, DataError, MemoryBudgetError, listing
from edgegraft.ingest.binning import RowSample
from edgegraft.ingest.cells import numbers_of
from edgegraft.ingest.column_kinds import check_orders
from edgegraft.ingest.columns import BytesOrCodes, ClosedColumn, CodeBuffer, Codes, OpenColumn
from edgegraft.ingest.decide import decide, decide_sampled
from edgegraft.ingest.findings import Findings, Problems
from edgegraft.ingest.options import ReadOptions, read_size
from edgegraft.ingest.sources import Source, watched
from edgegraft.table.arrow import check_type
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema, Variable


@dataclass(frozen=True)
class MemoryRule:
    """When rows go through a store on disk."""

    large: float = 1 / 8  # of the machine's memory: larger files go through a store unasked
    used: float = 1 / 2  # of the machine's memory, if no limit was given


def memory_for(options: ReadOptions) -> float:
    """Return the bytes that a table may take in memory."""
    if options.max_memory is not None:
        return read_size(options.max_memory)
    memory = physical_memory()
    return math.inf if memory is None else MemoryRule.used * memory


def not_in_memory(where: str) -> MemoryBudgetError:
    """Return the error for a table whose cells do not fit in memory, a byte each."""
    return MemoryBudgetError(
        f"{where} does not fit in memory: learn from it in blocks, within a limit (",
        Argument("max_memory"),
        "), or from fewer columns (",
        Argument("columns"),
        ")",
    )


def encode_source(
    source: Source, schema: Schema | None, options: ReadOptions, findings: Findings
) -> PackedTable:
    """Return the packed table of a source, under `schema` or one that is learned."""
    reading = Reading(source, options, findings)
    schema, names = reading.encode(schema)

    def columns() -> Iterator[BytesOrCodes]:
        for name in names:
            column = reading.encoded.pop(name)  # its buffer is released once it is in the table
            yield column.buffer.finish(column.recode, column.variable.n_states)

    return PackedTable.from_columns(schema, columns(), reading.n_rows)


def read_open(source: Source, options: ReadOptions) -> tuple[list[OpenColumn], int]:
    """Return the columns of a source, whose categories are still open, and the number of rows."""
    reading = Reading(source, options, Findings())
    names = options.choose(source.names, source.named)
    reading.select(names)
    columns = reading.read(names, {}, watched(source, names, options.on_rows))
    return [column for column in columns if isinstance(column, OpenColumn)], reading.n_rows


class _Encoded(NamedTuple):
    """A column that has been read and decided about."""

    variable: Variable
    buffer: CodeBuffer
    recode: Codes | None  # final code of every provisional one; None if they are final


class Reading:
    """The passes over one source, and what has been decided so far.

    Cells stay in memory unless a subclass takes them in :meth:`receive`.
    """

    in_groups = True  # whether columns may be read in groups

    def __init__(self, source: Source, options: ReadOptions, findings: Findings) -> None:
        self.encoded: dict[str, _Encoded] = {}
        self.n_rows = 0
        self._source = source
        self._options = options
        self._findings = findings
        self._problems = Problems()

    def begin(self, names: Sequence[str]) -> None:
        """Note that the rows of some columns come next."""

    def receive(
        self, columns: Sequence[OpenColumn | ClosedColumn], n_rows: int, last: bool
    ) -> None:
        """Note that columns have read `n_rows` rows so far; here their cells must fit in memory."""
        if n_rows * (len(columns) + len(self.encoded)) > memory_for(self._options):
            raise not_in_memory(self._source.where)

    def encode(self, schema: Schema | None) -> tuple[Schema, list[str]]:
        """Read all columns; return the schema, given or learned, and the names in its order."""
        source = self._source
        names = self._options.choose(source.names, source.named)
        variables = {} if schema is None else _match(schema, names, source.named)
        self.select(names)
        again: dict[str, str] = {}  # columns of very many numbers, and their types
        for group in source.groups(names) if self.in_groups else [names]:
            batches = watched(source, group, self._options.on_rows)
            columns = self.read(group, variables, batches)
            if not self.n_rows:
                raise DataError(f"{source.where} has no rows")
            for name, column in zip(group, columns, strict=True):
                if not isinstance(column, OpenColumn):
                    self.encoded[name] = _Encoded(column.variable, column.buffer, None)
                elif column.overflowed:
                    again[name] = column.dtype
                elif found := decide(column, self._options, self._findings, self._problems):
                    self.encoded[name] = _Encoded(found[0], column.buffer, found[1])
        if again:
            self._encode_again(again)
        self._problems.raise_all()
        if schema is None:
            learned = Schema(self.encoded[name].variable for name in names)
            check_orders(learned, self._options)
            return learned, names
        at = {variable.name: name for name, variable in variables.items()}
        return schema, [at[name] for name in schema.names]

    def select(self, names: Sequence[str]) -> None:
        """Select the columns that are wanted, refusing those that have no categories."""
        self._source.select(names)
        for name in names:
            with self._problems.noted(name):
                check_type(name, self._source.fields.field(name).type)
        self._problems.raise_all()

    def read(
        self,
        names: Sequence[str],
        variables: dict[str, Variable],
        batches: Iterable[pa.RecordBatch],
    ) -> list[OpenColumn | ClosedColumn]:
        """Return columns that have read all batches, those of `variables` under their codes.

        All columns that cannot be used are refused together.
        """
        source, options = self._source, self._options
        columns: list[OpenColumn | ClosedColumn] = [
            ClosedColumn(variables[name], options, source.from_text)
            if name in variables
            else OpenColumn(name, source.fields.field(name).type, options, source.from_text)
            for name in names
        ]
        self.begin(names)
        n_rows = 0
        for batch in batches:
            problems, place = Problems(), source.place(n_rows)
            for name, column, array in zip(names, columns, batch.columns, strict=True):
                with problems.noted(name):
                    column.append(array, place)
            problems.raise_all()
            n_rows += batch.num_rows
            self.receive(columns, n_rows, last=False)
        self.receive(columns, n_rows, last=True)
        self.n_rows = n_rows
        return columns

    def _encode_again(self, dtypes: dict[str, str]) -> None:
        """Bin columns that have more distinct numbers than there are codes.

        Their bins need the whole column: one reading takes a sample of rows and the extremes, the
        edges follow, and another reading (or the sample itself, if it is everything) is encoded.
        Quantiles are exact for tables of up to 2**20 rows; beyond that they are of a fixed
        uniform sample of 2**20 rows, which is an approximation. Uniform bins always use the exact
        smallest and largest value.
        """
        source, options, names = self._source, self._options, list(dtypes)
        sample = RowSample(names)
        first_row = 0
        for batch in source.batches(names):
            place = source.place(first_row)
            numbers = [
                numbers_of(name, array, options, source.from_text, place)
                for name, array in zip(names, batch.columns, strict=True)
            ]
            sample.offer(first_row, dict(zip(names, numbers, strict=True)))
            first_row += batch.num_rows
        variables: dict[str, Variable] = {}
        for name in names:
            with self._problems.noted(name):
                found = decide_sampled(name, dtypes[name], sample, options, self._findings)
                variables[name] = found
        self._problems.raise_all()
        batches = [sample.batch()] if sample.complete else source.batches(names)
        for name, column in zip(names, self.read(names, variables, batches), strict=True):
            self.encoded[name] = _Encoded(variables[name], column.buffer, None)


def _match(schema: Schema, names: Sequence[str], named: bool) -> dict[str, Variable]:
    """Return the variable of every column: by name, or by position if there are no names."""
    if not named:
        if len(names) != len(schema):
            raise DataError(
                f"the table has {len(names)} columns without names where the schema has "
                f"{len(schema)} variables"
            )
        return dict(zip(names, schema, strict=True))
    absent = [name for name in schema.names if name not in set(names)]
    if absent:
        raise DataError(f"the table lacks columns of the schema: {listing(absent)}")
    extra = [name for name in names if name not in schema]
    if extra:
        raise DataError(
            f"the table has columns that the schema does not know: {listing(extra)}; leave them "
            "out with ",
            Argument("drop", extra),
            ", or take the schema's alone with columns=schema.names",
        )
    return {name: schema[name] for name in names}
