"""From a frame on a cluster to packed partitions that its workers hold, under one schema.

    source -> opened -> survey -> tree of merges -> schema -> partition packed

Every step is a task whose result the scheduler can compute again from the source, which is what
it does for partitions whose worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from edgegraft.errors import DataError, DataTypeError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.partition import OpenPart, merge, pack_part
from edgegraft.table import Schema
from edgegraft.table.blocks import TableRows

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


def close_part(part: OpenPart, schema: str, options: ReadOptions) -> TableRows | None:
    """Return an open partition packed under the schema of all of them; None without rows."""
    table = part.close(_read_schema(schema), options)
    return None if table is None else TableRows(table)


def pack_rows(source: Any, schema: str, options: ReadOptions) -> TableRows | None:
    """Return a partition packed under a schema that was known beforehand; None without rows."""
    table = pack_part(source, _read_schema(schema), options)
    return None if table is None else TableRows(table)


@lru_cache(maxsize=16)
def _read_schema(text: str) -> Schema:
    """Return a schema from its JSON; the partitions of a worker share one."""
    return Schema.from_json(text)
