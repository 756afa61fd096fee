"""From a frame on a cluster to packed partitions on its workers, under one schema.

    source -> open -> survey -> tree of merges -> schema -> open partition packed and held

A source is read once, and its partition stays where it was opened. The scheduler knows the source
and the steps from it, and takes them again for a partition whose worker is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from edgegraft.contrib.dask import worker as worker
from edgegraft.contrib.dask.watch import Watch
from edgegraft.errors import DataError, DataTypeError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.partition import settle
from edgegraft.ingest.wording import Findings
from edgegraft.table import Schema

if TYPE_CHECKING:
    from distributed import Future

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


class Packing:
    """Partitions on their way to the workers that will hold them.

    Parameters
    ----------
    watch : Watch
    sources : sequence
        Delayed values, futures, tables or paths.
    options : ReadOptions
    """

    def __init__(self, watch: Watch, sources: Sequence[Any], options: ReadOptions) -> None:
        self.watch = watch
        self.sources = sources
        self.options = options

    def learn(self) -> tuple[Schema, Findings, list[Future]]:
        """Open all partitions; return their schema, what to tell of it, and them packed."""
        opened = self._run("open", worker.open_table, range(len(self.sources)))
        self.watch.done(opened, self._open)

        def merge_again(_: int) -> Future:
            # What killed the merging may have taken open partitions along.
            self.watch.done(opened, self._open)
            return self._merge(opened)

        merged = [self._merge(opened)]
        self.watch.done(merged, merge_again)
        findings = Findings()
        schema = settle(merged[0].result(), self.options, findings)
        text = schema.to_json()
        return schema, findings, [self._hold(part, text) for part in opened]

    def apply(self, schema: Schema) -> list[Future]:
        """Return all partitions packed under a schema."""
        chosen = range(len(self.sources))
        return self._run("hold", worker.hold_source, chosen, schema.to_json())

    def again(
        self, k: int, schema: Schema, learned: bool, workers: list[str] | None = None
    ) -> Future:
        """Pack one partition once more, on some workers or any."""
        text = schema.to_json()
        if not learned:
            return self._run("hold", worker.hold_source, [k], text, workers=workers)[0]
        return self._hold(self._open(k, workers), text, workers)

    def _open(self, k: int, workers: list[str] | None = None) -> Future:
        return self._run("open", worker.open_table, [k], workers=workers)[0]

    def _merge(self, opened: Sequence[Future]) -> Future:
        level = [self._submit(worker.survey, part) for part in opened]
        while len(level) > 1:
            level = [
                self._submit(worker.merge_surveys, *level[first : first + _FAN_IN])
                for first in range(0, len(level), _FAN_IN)
            ]
        return level[0]

    def _hold(self, part: Future, schema: str, workers: list[str] | None = None) -> Future:
        return self._submit(worker.hold_open, part, schema, self.options, workers=workers)

    def _run(
        self,
        verb: str,
        function: Any,
        chosen: Iterable[int],
        *arguments: Any,
        workers: list[str] | None = None,
    ) -> list[Future]:
        """Apply a function to sources; those that are yet to be worked out are so on the way."""
        from dask import delayed
        from dask.delayed import Delayed

        futures: dict[int, Future] = {}
        later: dict[int, Any] = {}
        for k in chosen:
            source = self.sources[k]
            if isinstance(source, Delayed):
                name = f"edgegraft-{verb}-{k}-{uuid4().hex}"
                step = delayed(function, pure=False)
                later[k] = step(source, *arguments, self.options, dask_key_name=name)
            else:
                futures[k] = self._submit(
                    function, source, *arguments, self.options, workers=workers
                )
        if later:
            # In one call: a graph for each partition would be sent with every one of them.
            found = self.watch.client.compute(
                list(later.values()), workers=workers, allow_other_workers=workers is not None
            )
            futures |= dict(zip(later, found, strict=True))
        return [futures[k] for k in chosen]

    def _submit(self, function: Any, *arguments: Any, workers: list[str] | None = None) -> Future:
        return self.watch.client.submit(
            function,
            *arguments,
            workers=workers,
            allow_other_workers=workers is not None,
            pure=False,
        )
