"""Rows that do not fit in memory: read once to a store of codes, which is found again.

A store's name is a hash of the files' paths, sizes, times of change and first bytes, and of every
option that changes what is read. The folder is kept below a size: the stores that were not used for
longest go first. A store is whole or absent; what a killed process left half-written is removed by
the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replacing
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs
from edgegraft.errors import Argument, DiskFullError, FileFormatError, MemoryBudgetError
from edgegraft.ingest.column_kinds import settled_schema
from edgegraft.ingest.files import FilesSource, FileState, find_files
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.kinds import TableKind, table_kind
from edgegraft.ingest.options import ReadOptions, enough, read_size
from edgegraft.ingest.rows import Budget, OpenRows, read_table
from edgegraft.scale.store import FORMAT, DiskStore, StoreWriter, block_rows, write_store
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import SAMPLE_ROWS, StoredRows

#: Bytes that stores may take together on disk, by default.
CACHE_SIZE = 32 << 30
_SUFFIX = ".rows"
_LOOKED_AT = 4  # blocks whose rows decide what whole numbers of few values are
_ABANDONED = 3600.0  # seconds without a write, after which nobody writes any more


@dataclass(frozen=True)
class Share:
    """Bytes of memory that the parts of a fit take."""

    #: The interpreter, its libraries and compiled code, and one batch of a reader.
    base: int = 500 << 20
    threads: int = 2  # set aside whatever their number: rows must not depend on it
    thread: int = 250 << 20  # a block with its codes, residuals and sums
    reserved: int = base + threads * thread  # for all but rows
    cell: int = 24  # per sampled cell: its codes, bit planes, residuals and what tests make of them
    least_rows: int = 10_000  # of a sample


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
    return base / "edgegraft" / "rows"


def open_rows(
    X: Any, schema: Schema | None, options: ReadOptions, weights: ArrayLike | None
) -> OpenRows:
    """Return the rows of a table within ``max_memory``; the plug-in of rows on disk.

    Rows that fit there after all come in memory.
    """
    limit = read_size(options.max_memory or 0)
    check_limit(limit)
    if isinstance(X, PackedTable):
        return _in_memory(X, schema, limit, weights)
    size = CACHE_SIZE if options.cache_size is None else read_size(options.cache_size)
    folder = options.cache_dir
    if folder is None and table_kind(X) is not TableKind.PATH:
        folder = gettempdir()  # the store of what has no files is not kept
    store = open_store(X, schema=schema, folder=folder, max_bytes=size, options=options)
    try:
        n_jobs = resolve_jobs(options.n_jobs)
        budget = share_out(limit, store.n_rows, store.n_variables, n_jobs, options.sample_rows)
        rows = StoredRows(store, weights, budget.n_jobs, budget.kept_bytes)
        if budget.whole:
            return OpenRows(store.table(), rows.weights, SAMPLE_ROWS, store, budget)
        return OpenRows(rows, None, budget.sample_rows, store, budget)
    except BaseException:
        store.close()
        raise


def _in_memory(
    X: PackedTable, schema: Schema | None, limit: int, weights: ArrayLike | None
) -> OpenRows:
    """Return a packed table, which is learned from in memory or not at all."""
    needed = needed_for_all(X.n_rows, X.n_variables)
    if needed > limit:
        raise MemoryBudgetError(
            f"a packed table is learned from in memory, and {X.n_rows:,} rows of {X.n_variables:,} "
            f"columns may take {enough(needed)}: allow that (",
            Argument("max_memory"),
            ") or give the file or frame that it was packed from",
        )
    table = read_table(X, schema)
    return OpenRows(table, None if weights is None else check_weights(weights, table.n_rows))


def check_limit(limit: int) -> None:
    """Refuse a limit that no rows fit, before any are read."""
    if limit < Share.reserved:
        raise MemoryBudgetError(
            f"{limit / 2**30:.2f} GiB are not enough for the library and its working memory: "
            f"allow at least {enough(Share.reserved)} (",
            Argument("max_memory"),
            ") and some room for rows",
        )


def needed_for_all(n_rows: int, n_variables: int) -> int:
    """Return the smallest limit within which all rows are learned from in memory."""
    return Share.reserved + Share.cell * n_variables * n_rows


def share_out(
    limit: int, n_rows: int, n_variables: int, n_jobs: int, sample_rows: int | None = None
) -> Budget:
    """Return what the parts of a fit may take of `limit` bytes.

    How rows are learned from depends on the limit and on the rows alone. More than two threads
    get what is left for them. A fit that is resumed must have the same sample again: `sample_rows`
    are its rows, 0 if it had all rows in memory.
    """
    room = limit - Share.reserved
    needed = Share.cell * n_variables * min(n_rows, Share.least_rows)
    if room < 2 * needed:
        raise MemoryBudgetError(
            f"{limit / 2**30:.2f} GiB are not enough for {n_variables:,} columns: allow at least "
            f"{enough(Share.reserved + 2 * needed)} (",
            Argument("max_memory"),
            ")",
        )
    for_all = needed_for_all(n_rows, n_variables)
    whole = limit >= for_all
    if sample_rows is None:
        sample_rows = min(SAMPLE_ROWS, room // 2 // (Share.cell * n_variables))
    else:
        whole = sample_rows == 0
    spare = room // 4
    threads = min(n_jobs, Share.threads + spare // Share.thread)
    kept = spare - max(0, threads - Share.threads) * Share.thread
    return Budget(limit, for_all, whole, sample_rows, kept, threads)


def open_store(
    X: Any,
    *,
    schema: Schema | None = None,
    folder: str | PathLike[str] | None = None,
    max_bytes: int | None = CACHE_SIZE,
    options: ReadOptions | None = None,
) -> DiskStore:
    r"""Return the store of a table that need not fit in memory.

    `X` is whatever :func:`edgegraft.ingest.pack` takes. Stores of files are kept in `folder`, by
    default :func:`cache_folder`, and found again as long as the files are the same; all
    stores of the folder take at most `max_bytes`. A store of anything else goes when the store is
    closed. Also refused: a file that changes while it is read, rows beyond `max_bytes`, a full
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
                write_store(source, schema, options, findings, writer)
            _shrink(where, path, max_bytes)
            found = DiskStore(path, keep=files is not None)
    for warning in Findings(**found.notes).warnings():
        warnings.warn(warning, stacklevel=2)
    if schema is None:
        _settle(found, options)
    return found


def _settle(store: DiskStore, options: ReadOptions) -> None:
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


def _found(path: Path) -> DiskStore | None:
    """Return the store at a path if there is a whole one, and note that it was used."""
    if not path.exists():
        return None
    try:
        store = DiskStore(path)
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
    except DiskFullError as error:
        remedy = (
            "; the store of a table takes a byte for every cell; free some space, or name another "
            "folder (",
            Argument("cache_dir"),
            ", or the environment variable EDGEGRAFT_CACHE)",
        )
        raise DiskFullError.at(folder, error, *remedy) from error


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
