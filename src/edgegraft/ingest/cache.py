"""Rows that were read once and are found again: stores of bit planes, and rows beside a checkpoint.

A store's name is a hash of the files' paths, sizes, times of change and first bytes, and of every
option that changes what is read. The folder is kept below a size: the stores that were not used for
longest go first. A store is whole or absent; what a killed process left half-written is removed by
the next one.

Rows in memory that took a while to read are kept in a file beside a checkpoint, under the same
hash: a resumed run does not read them again. A file of another key, a damaged one or none means
that the rows are read; nothing else depends on it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.atomic import replacing
from edgegraft.core.container import ContainerFormat, ContainerReader, write_container
from edgegraft.core.types import Floats
from edgegraft.errors import Argument, DiskFullError, FileFormatError
from edgegraft.ingest.column_kinds import settled_schema
from edgegraft.ingest.encoder import store_source
from edgegraft.ingest.files import FilesSource, FileState, find_files
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.kinds import TableKind, table_kind
from edgegraft.ingest.options import ReadOptions
from edgegraft.table import PackedTable, Schema
from edgegraft.table.store import FORMAT, PlaneStore, StoreWriter, block_rows

#: Bytes that stores may take together on disk, by default.
CACHE_SIZE = 32 << 30
_SUFFIX = ".planes"
_LOOKED_AT = 4  # blocks whose rows decide what whole numbers of few values are
_ABANDONED = 3600.0  # seconds without a write, after which nobody writes any more
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def cache_folder() -> Path:
    """Return where stores are kept: the folder that EDGEGRAFT_CACHE names, or the user's cache."""
    given = os.environ.get("EDGEGRAFT_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home())
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "edgegraft" / "planes"


def open_store(
    X: Any,
    *,
    schema: Schema | None = None,
    folder: str | PathLike[str] | None = None,
    max_bytes: int | None = CACHE_SIZE,
    options: ReadOptions | None = None,
) -> PlaneStore:
    r"""Return the bit planes of a table that need not fit in memory.

    `X` is whatever :func:`edgegraft.ingest.pack` takes. Planes of files are kept in `folder`, by
    default that of :func:`cache_folder`, and found again as long as the files are the same; all
    stores of the folder take at most `max_bytes`. Planes of anything else go when the store is
    closed. Also refused: a file that changes while it is read, planes beyond `max_bytes`, a full
    disk. Nothing is left behind.
    """
    options = options or ReadOptions()
    where = cache_folder() if folder is None else Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    _clear(where)
    files = find_files(fspath(X)) if table_kind(X) is TableKind.PATH else None
    with open_source(X, options) if files is None else FilesSource(files, options) as source:
        name = uuid4().hex
        if isinstance(source, FilesSource):
            name = key_of(source.states, schema, options)
        path = where / (name + _SUFFIX)
        found = _found(path)
        if found is None:
            findings, n_columns = Findings(), len(options.choose(source.names, source.named))
            with _roomy(where), replacing(path) as file:
                writer = StoreWriter(file, block_rows(n_columns), max_bytes)
                stored = store_source(source, schema, options, findings, writer)
                writer.finish(*stored, source=source.where, notes=asdict(findings))
            _shrink(where, path, max_bytes)
            found = PlaneStore(path, keep=files is not None)
    for warning in Findings(**found.notes).warnings():
        warnings.warn(warning, stacklevel=2)
    if schema is None:
        _settle(found, options)
    return found


def _settle(store: PlaneStore, options: ReadOptions) -> None:
    """Decide what the whole numbers of few values are, by rows of some blocks."""
    chosen = np.unique(np.linspace(0, len(store.starts) - 2, _LOOKED_AT).astype(int))
    blocks = [partial(store.block, k) for k in chosen.tolist()]
    try:
        store.schema = settled_schema(store.schema, blocks, options)
    except BaseException:
        store.close()
        raise


def key_of(states: list[FileState], schema: Schema | None, options: ReadOptions) -> str:
    """Return a hash of files as they are, and of all that changes how they are read."""
    described = json.dumps(
        [
            [FORMAT.name, FORMAT.version],
            states,
            None if schema is None else schema.to_json(),
            {name: _plain(value) for name, value in options.of_cells().items()},
        ]
    )
    return hashlib.sha256(described.encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    """Return an option as JSON can hold it; 0 and "0" stay different."""
    if isinstance(value, dict):
        return sorted((name, int(count)) for name, count in value.items())
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    return [repr(item) for item in value] if isinstance(value, list | tuple) else repr(value)


def _found(path: Path) -> PlaneStore | None:
    """Return the store at a path if there is a whole one, and note that it was used."""
    if not path.exists():
        return None
    try:
        store = PlaneStore(path)
    except FileFormatError:
        path.unlink(missing_ok=True)
        return None
    with suppress(OSError):
        os.utime(path)
    return store


@contextmanager
def _roomy(folder: Path) -> Iterator[None]:
    """Report a full disk with what to do about it."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        full = DiskFullError(
            f"the disk of '{folder}' is full: bit planes take about a bit for every cell and "
            "state; free some space, or name another folder (",
            Argument("cache_dir"),
            ", or the environment variable EDGEGRAFT_CACHE). Nothing was left behind",
        )
        full.errno = error.errno
        raise full from error


def _clear(folder: Path) -> None:
    """Remove what a process that was killed left half-written."""
    for path in folder.glob(f".*{_SUFFIX}.*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()


def _shrink(folder: Path, but: Path, max_bytes: int | None) -> None:
    """Remove the stores not used for longest until the others take at most `max_bytes`."""
    stores = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            stat = path.stat()
            stores.append((stat.st_mtime_ns, stat.st_size, path))
    total = sum(size for _, size, _ in stores)
    for _, size, path in sorted(stores):
        if max_bytes is None or total <= max_bytes:
            break
        if path != but:
            with suppress(OSError):
                path.unlink()
                total -= size


ROWS_FORMAT = ContainerFormat(
    "edgegraft-rows", 1, "file of rows", "learn with a checkpoint", "delete it", checksum="crc32"
)


class KeptRows(NamedTuple):
    """A table, its row weights, and the warnings that reading it gave."""

    table: PackedTable
    weights: Floats | None
    notes: list[str]

    def write(self, path: Path, key: str) -> None:
        """Keep the rows."""
        table = self.table
        content = {"key": key, "notes": self.notes, "n_rows": table.n_rows}
        content["schema"] = table.schema.to_json()
        arrays: dict[str, NDArray[Any]] = {"cells": table.cells}
        if self.weights is not None:
            arrays["weights"] = self.weights
        write_container(path, ROWS_FORMAT, content, arrays)

    @classmethod
    def find(cls, path: Path, key: str) -> KeptRows | None:
        """Return the rows that were kept under a key; None if there are none."""
        try:
            with ContainerReader(path, ROWS_FORMAT) as reader:
                if reader.content.get("key") != key:
                    return None
                schema = reader.field("schema", Schema.from_json)
                table = PackedTable(schema, reader.read("cells"), reader.field("n_rows", int))
                weights = reader.read("weights") if "weights" in reader.names else None
                return cls(table, weights, reader.field("notes", list))
        except (FileFormatError, OSError):
            return None
