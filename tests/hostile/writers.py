"""Everything that the library writes, and attacks on the places that it is written to."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from edgegraft.cli.learn_commands import SETTINGS, Request
from edgegraft.cli.model_commands import save_picture
from edgegraft.datasets import make_scale_free
from edgegraft.ingest import pack
from edgegraft.ingest.output import write_rows
from edgegraft.io import export, write_evidence
from edgegraft.learn import discover
from edgegraft.report import plot_network, write_report
from edgegraft.scale.disk import open_store
from edgegraft.table import PackedTable
from edgegraft.table.arrow import labels

Writer = Callable[[Path], object]


def codes_of(n_rows: int = 400) -> np.ndarray:
    return make_scale_free(8, 3, n_rows, random_state=0).X.astype(int)


@cache
def writers() -> dict[str, Writer]:
    """Return what writes a file at a path, by the name of the file."""
    table = PackedTable.from_codes(codes_of())
    model = discover(table).model
    rows = labels(table.schema, table.codes())
    settings = {setting.name: setting.default for setting in SETTINGS}
    request = Request(data="rows.csv", output="m", settings=settings)
    axes = plot_network(model)
    kinds = ("csv", "parquet", "gexf", "graphml", "uai")
    return {
        "m.edgegraft": model.save,
        "rows.packed": table.save,
        "run.checkpoint": lambda path: discover(table, checkpoint=path),
        "run.json": lambda path: request.write(path.with_suffix("")),
        "m.html": lambda path: write_report(path, model),
        "m.evid": lambda path: write_evidence(path, {0: 1}),
        **{f"m.{kind}": partial(export, model, format=kind) for kind in kinds},
        **{f"m.{kind}.gz": partial(export, model, format=kind) for kind in kinds[2:]},
        **{
            f"rows.{kind}": lambda path: write_rows(path, rows)
            for kind in ("csv", "tsv.gz", "parquet")
        },
        **{f"m.{kind}": lambda path: save_picture(axes, path) for kind in ("png", "svg", "pdf")},
    }


def readers_that_write(folder: Path) -> dict[str, Writer]:
    """Return what writes a file of its own while it reads, by its name; the path is a folder."""
    rows = pa.table({f"c{k}": column for k, column in enumerate(codes_of().T)})
    write_rows(folder / "rows.csv", rows)
    return {
        "store of files": lambda path: open_store(folder / "rows.csv", folder=path).close(),
        "store of a stream": lambda path: open_store(rows.to_reader(), folder=path).close(),
        "copy of a stream": lambda path: pack(rows.to_reader()),
    }


@contextmanager
def small_files(limit: int) -> Iterator[None]:
    """Limit the size of files, which stands for a disk without room."""
    before, previous = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, previous)


def fill_disk(folder: Path, n: int) -> list[str]:
    """Let each writer have no room: refused by an error that names the file, and nothing left."""
    chance, outcomes, out = random.Random(0), [], folder / "out"
    out.mkdir()
    tries = [(name, out / name, write) for name, write in writers().items()]
    tries += [(name, out, write) for name, write in readers_that_write(folder).items()]
    for k in range(max(n, len(tries))):
        name, path, write = tries[k % len(tries)]
        try:
            with small_files(chance.randrange(1, 5)):
                write(path)
            outcome = "lost"
        except OSError as error:
            place = "numeric.arrow" if name == "copy of a stream" else str(path)
            outcome = "refused" if f"{place}' is full" in str(error) else "lost"
        outcomes.append("lost" if any(out.iterdir()) else outcome)
    return outcomes


def special_files(folder: Path) -> dict[str, Path]:
    """Return files that are not regular ones, by their kind."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket"))
    (folder / "link to a pipe").symlink_to(folder / "pipe")
    (folder / "folder").mkdir()
    names = ["pipe", "socket", "link to a pipe", "folder"]
    with suppress(PermissionError):  # never one of the machine's: a fault would replace it
        os.mknod(folder / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        names.append("device")
    return {name: folder / name for name in names}


def replace_special_files(folder: Path) -> list[str]:
    """Write to what is no regular file: refused by name, and still what it was."""
    outcomes = []
    for path in special_files(folder).values():
        before = path.lstat()
        for name, write in writers().items():
            if name == "run.json":  # whose suffix is given by the writer
                continue
            try:
                write(path)
                outcome = "lost"
            except (FileExistsError, IsADirectoryError) as error:
                outcome = "refused" if str(path) in str(error) else "lost"
            after = path.lstat()
            same = (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
            outcomes.append(outcome if same else "lost")
    return outcomes


def replace_linked_files(folder: Path) -> list[str]:
    """Write through links to private files: the file is replaced, the link and the mode stay."""
    outcomes = []
    for name, write in writers().items():
        (folder / "far").mkdir(exist_ok=True)
        there, link = folder / "far" / name, folder / name
        there.write_bytes(b"")
        there.chmod(0o640)
        link.symlink_to(there)
        write(link)
        kept = link.is_symlink() and stat.S_IMODE(there.stat().st_mode) == 0o640
        outcomes.append("survived" if kept and there.stat().st_size else "lost")
    return outcomes
