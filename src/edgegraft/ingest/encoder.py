"""The one encoder: batches of a source in, codes under a schema out.

    read the batches -> decide about each column -> read again those that must be binned first

Every table goes this way: into memory, into a store on disk, or as one part of a table whose other
parts lie elsewhere. All columns that cannot be used are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from edgegraft.errors import Argument, DataError, DataTypeError, listing
from edgegraft.ingest.binning import RowSample
from edgegraft.ingest.cells import Place, numbers_of
from edgegraft.ingest.code_buffer import BytesOrCodes, CodeBuffer, Codes
from edgegraft.ingest.columns import BinnedColumn, ClosedColumn, OpenColumn
from edgegraft.ingest.decide import decide_or_note, decide_sampled
from edgegraft.ingest.findings import Findings, Problems
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source, watched
from edgegraft.table.arrow import check_type, plain_type
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema, Variable
from edgegraft.table.store import MISSING, StoredColumn, StoreWriter


class Encoder:
    """Some columns of a source on their way from batches to codes.

    `variables` are those of the columns whose categories are known. A `writer` receives blocks of
    rows, which otherwise stay in memory.
    """

    def __init__(
        self,
        source: Source,
        names: Sequence[str],
        variables: dict[str, Variable],
        options: ReadOptions,
        writer: StoreWriter | None = None,
    ) -> None:
        self.names = list(names)
        self.columns = [_empty_column(source, name, variables.get(name), options) for name in names]
        self.n_rows = 0
        self._n_written = 0
        self._writer = writer
        if writer is not None:
            writer.begin(names)

    def append(self, batch: pa.RecordBatch, place: Place) -> None:
        """Receive a batch, whose rows messages call by `place`; refuse all bad columns together."""
        problems = Problems()
        for name, column, array in zip(self.names, self.columns, batch.columns, strict=True):
            try:
                column.append(array, place)
            except DataError as error:
                problems.add(name, error)
        problems.raise_all()
        self.n_rows += batch.num_rows
        if self._writer is not None:
            while self.n_rows - self._n_written >= self._writer.rows:
                self._write(self._writer, self._writer.rows)

    def finish(self) -> None:
        """Write the last block, if the rows go to a store."""
        if self._writer is not None and self.n_rows > self._n_written:
            self._write(self._writer, self.n_rows - self._n_written)

    def _write(self, writer: StoreWriter, rows: int) -> None:
        writer.add(
            [
                # Of a column that is to be read again, nothing is kept.
                np.full(rows, MISSING, np.uint16)
                if isinstance(column, OpenColumn) and column.overflowed
                else column.buffer.take(rows)
                for column in self.columns
            ]
        )
        self._n_written += rows


def _empty_column(
    source: Source, name: str, variable: Variable | None, options: ReadOptions
) -> OpenColumn | ClosedColumn | BinnedColumn:
    if variable is None:
        dtype = plain_type(source.fields.field(name).type)
        return OpenColumn(name, dtype, options, source.from_text)
    known = BinnedColumn if variable.binned else ClosedColumn
    return known(variable, options, source.from_text)


def encode_source(
    source: Source, schema: Schema | None, options: ReadOptions, findings: Findings
) -> PackedTable:
    """Return the packed table of a source, under `schema` or one that is learned."""
    reading = _Reading(source, options, findings)
    schema, names = reading.encode(schema)

    def columns() -> Iterator[BytesOrCodes]:
        for name in names:
            column = reading.encoded.pop(name)  # its buffer is released once it is in the table
            yield column.buffer.finish(column.recode, column.variable.n_states)

    return PackedTable.from_columns(schema, columns(), reading.n_rows)


def store_source(
    source: Source,
    schema: Schema | None,
    options: ReadOptions,
    findings: Findings,
    writer: StoreWriter,
) -> tuple[Schema, int, dict[str, StoredColumn]]:
    """Write the rows of a source to a store; return its schema, rows, and columns by name."""
    reading = _Reading(source, options, findings, writer)
    schema, names = reading.encode(schema)
    stored = {}
    for place, name in enumerate(names):
        variable, buffer, recode = reading.encoded[name]
        final = np.arange(variable.n_states, dtype=np.uint16) if recode is None else recode
        known = buffer.counts(len(final))[final != MISSING].sum()
        stored[name] = StoredColumn(place, final, reading.n_rows - int(known))
    return schema, reading.n_rows, stored


def open_encoder(source: Source, options: ReadOptions) -> Encoder:
    """Return an encoder that has read all of a source, whose categories are still open."""
    reading = _Reading(source, options, Findings())
    names = options.choose(source.names, source.named)
    reading.select(names)
    return reading.read(names, {})


class _Encoded(NamedTuple):
    """A column that has been read and decided about."""

    variable: Variable
    buffer: CodeBuffer
    recode: Codes | None  # final code of every provisional one; None if they are final


class _Reading:
    """The passes over one source, and what has been decided so far."""

    def __init__(
        self,
        source: Source,
        options: ReadOptions,
        findings: Findings,
        writer: StoreWriter | None = None,
    ) -> None:
        self.encoded: dict[str, _Encoded] = {}
        self.n_rows = 0
        self._source = source
        self._options = options
        self._findings = findings
        self._problems = Problems()
        self._writer = writer

    def encode(self, schema: Schema | None) -> tuple[Schema, list[str]]:
        """Read all columns; return the schema, given or learned, and the names in its order."""
        source = self._source
        names = self._options.choose(source.names, source.named)
        variables = {} if schema is None else _match(schema, names, source.named)
        self.select(names)
        again: dict[str, str] = {}  # columns of very many numbers, and their types
        for group in source.groups(names) if self._writer is None else [names]:
            encoder = self.read(group, variables)
            self.n_rows = encoder.n_rows
            if not self.n_rows:
                raise DataError(f"{source.where} has no rows")
            for name, column in zip(group, encoder.columns, strict=True):
                if not isinstance(column, OpenColumn):
                    self.encoded[name] = _Encoded(column.variable, column.buffer, None)
                elif column.overflowed:
                    again[name] = column.dtype
                elif found := decide_or_note(
                    column.observed(), self._options, self._findings, self._problems
                ):
                    self.encoded[name] = _Encoded(found[0], column.buffer, found[1])
        if again:
            self._encode_again(again)
        self._problems.raise_all()
        if schema is None:
            return Schema(self.encoded[name].variable for name in names), names
        at = {variable.name: name for name, variable in variables.items()}
        return schema, [at[name] for name in schema.names]

    def select(self, names: Sequence[str]) -> None:
        """Select the columns that are wanted, refusing those that have no categories."""
        self._source.select(names)
        for name in names:
            try:
                check_type(name, self._source.fields.field(name).type)
            except DataTypeError as error:
                self._problems.add(name, error)
        self._problems.raise_all()

    def read(self, names: Sequence[str], variables: dict[str, Variable]) -> Encoder:
        """Read some columns once."""
        source = self._source
        encoder = Encoder(source, names, variables, self._options, self._writer)
        for batch in watched(source, names, self._options.on_rows):
            encoder.append(batch, source.place(encoder.n_rows))
        encoder.finish()
        return encoder

    def _encode_again(self, dtypes: dict[str, str]) -> None:
        """Bin columns that have more distinct numbers than there are codes.

        Their bins need the whole column: one reading takes a sample of rows and the extremes, the
        edges follow, and another reading (or the sample itself, if it is everything) is encoded.
        Quantiles are exact for tables of up to 2**20 rows; beyond that they are those of a fixed
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
            try:
                found = decide_sampled(name, dtypes[name], sample, options, self._findings)
                variables[name] = found
            except DataError as error:
                self._problems.add(name, error)
        self._problems.raise_all()
        encoder = Encoder(source, names, variables, options, self._writer)
        batches: Iterable[pa.RecordBatch] = (
            [sample.batch()] if sample.complete else source.batches(names)
        )
        for batch in batches:
            encoder.append(batch, source.place(encoder.n_rows))
        encoder.finish()
        for name, column in zip(names, encoder.columns, strict=True):
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
