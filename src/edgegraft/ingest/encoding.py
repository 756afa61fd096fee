"""The passes over a source: learn or apply categories, then bin what was left."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from edgegraft.core.text import listing
from edgegraft.errors import Argument, DataError
from edgegraft.ingest.arrays import IntegerArraySource, pack_narrow
from edgegraft.ingest.columns import BinnedColumn, ClosedColumn, OpenColumn
from edgegraft.ingest.continuous import pack_continuous
from edgegraft.ingest.decide import all_missing, decide
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.passes import PassWatch
from edgegraft.ingest.sources import Source
from edgegraft.ingest.wording import Findings
from edgegraft.table.arrow_types import check_type, plain_type
from edgegraft.table.builder import PackedColumn
from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema, Variable

__all__ = ["encode_columns", "encode_source"]


def encode_source(
    source: Source, schema: Schema | None, options: ReadOptions, findings: Findings
) -> PackedTable:
    """Return the packed table of a source, under `schema` or one that is learned."""
    schema, columns = encode_columns(source, schema, options, findings)
    return PackedTable.from_columns(schema, columns, columns[0].n_rows)


def encode_columns(
    source: Source, schema: Schema | None, options: ReadOptions, findings: Findings
) -> tuple[Schema, list[PackedColumn]]:
    """Return the schema, given or learned, and the columns of a source in its order."""
    names = options.choose(source.names, source.named)
    variables = {} if schema is None else _match(schema, names, source.named)
    source.select(names)
    for name in names:
        check_type(name, source.fields.field(name).type)
    packed = _pack_columns(source, names, variables, options, findings)
    if schema is None:
        schema = Schema(packed[name][0] for name in names)
        order = names
    else:
        at = {variable.name: name for name, variable in variables.items()}
        order = [at[name] for name in schema.names]
    return schema, [packed[name][1] for name in order]


def _match(schema: Schema, names: Sequence[str], named: bool) -> dict[str, Variable]:
    """Return the variable of every column: by name, or by position where there are no names."""
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


def _pack_columns(
    source: Source,
    names: Sequence[str],
    variables: dict[str, Variable],
    options: ReadOptions,
    findings: Findings,
) -> dict[str, tuple[Variable, PackedColumn]]:
    packed: dict[str, tuple[Variable, PackedColumn]] = {}
    rest = list(names)
    if isinstance(source, IntegerArraySource) and options.spool is None:
        narrow = source.narrow(names)
        for name, variable, column in pack_narrow(source, narrow, variables, options, findings):
            packed[name] = variable, column
        rest = [name for name in names if name not in packed]
    if rest:
        packed.update(_pack_batches(source, rest, variables, options, findings))
    return packed


def _pack_batches(
    source: Source,
    names: Sequence[str],
    variables: dict[str, Variable],
    options: ReadOptions,
    findings: Findings,
) -> dict[str, tuple[Variable, PackedColumn]]:
    """Read every column once, and those of very many numbers again."""
    columns = [
        _column(
            name, source.fields.field(name).type, variables.get(name), source.from_text, options
        )
        for name in names
    ]
    first_row = 0
    watch = PassWatch(source, options.on_rows)
    for batch in source.batches(names):
        for column, array in zip(columns, batch.columns, strict=True):
            column.append(array, source.row(first_row))
        first_row += batch.num_rows
        watch.tell(first_row)
    if not first_row:
        raise DataError(f"{source.where} has no rows")
    empty = [c.name for c in columns if isinstance(c, OpenColumn) and c.empty]
    if empty:
        raise all_missing(empty)
    packed: dict[str, tuple[Variable, PackedColumn]] = {}
    again: dict[str, str] = {}
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, ClosedColumn | BinnedColumn):
            packed[name] = column.variable, column.finish()
        elif column.overflowed:
            again[name] = column.dtype
        else:
            packed[name] = _settle(column, options, findings)
    for name, variable, finished in pack_continuous(source, again, options, findings):
        packed[name] = variable, finished
    return packed


def _column(
    name: str,
    dtype: pa.DataType,
    variable: Variable | None,
    from_text: bool,
    options: ReadOptions,
) -> OpenColumn | ClosedColumn | BinnedColumn:
    if variable is None:
        return OpenColumn(name, plain_type(dtype), options, from_text)
    kind = BinnedColumn if variable.binned else ClosedColumn
    return kind(variable, options, from_text)


def _settle(
    column: OpenColumn, options: ReadOptions, findings: Findings
) -> tuple[Variable, PackedColumn]:
    """Decide about a column that has been read, and finish it under its final codes."""
    variable, final = decide(column.observed(), options, findings)
    return variable, column.builder.finish(final, variable.n_states)
