"""Attacks on files, runs and processes, counted; `make test-hostile` writes docs/reliability.md.

    python -m tests.hostile.campaign [--size 100] [--only NAME ...] [--write docs/reliability.md]

An attack tries something `n` times with one seed and returns a Count. *Survived* is the right
answer, *refused* an error of the library that leaves nothing behind, *lost* anything else: a crash,
another answer, a damaged or half-written file, more than `LIMIT` seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import edgegraft as eg
from edgegraft.errors import FileFormatError
from edgegraft.learn import Plan, discover
from edgegraft.learn.discovery import resume_discovery
from edgegraft.scale.disk import open_store
from edgegraft.scale.store import DiskStore
from edgegraft.table import PackedTable
from tests.hostile import chosen_files, processes, writers
from tests.hostile.writers import codes_of

LIMIT = 10.0  # seconds for one damaged file
TOKENS = [b"0", b"-1", b"1e308", b"99999999999", b"null", b"[]", b"{}", b"true", b'"x"', b"NaN"]


class Count(NamedTuple):
    """What came of an attack."""

    tried: int
    survived: int
    refused: int
    lost: int


def count(outcomes: list[str]) -> Count:
    return Count(len(outcomes), *(outcomes.count(k) for k in ("survived", "refused", "lost")))


# Files


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return a file with bits flipped, a part cut off, zeroed or moved, or a token replaced."""
    out, at = bytearray(content), chance.randrange(len(content))
    other, kind = chance.randrange(len(content)), chance.randrange(5)
    if kind == 0:
        out[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del out[at:]
    elif kind == 2:
        out[at : at + 64] = bytes(64)
    elif kind == 3:
        out[at : at + 8], out[other : other + 8] = out[other : other + 8], out[at : at + 8]
    else:
        place = at % min(len(out), 2000)  # in the header
        out[place : place + 1] = chance.choice(TOKENS)
    return bytes(out)


def fuzz(path: Path, read: Callable[[Path], bytes], n: int) -> Count:
    """Damage a file `n` times and read it; what is read must be what was written."""
    whole, expected, chance, outcomes = path.read_bytes(), read(path), random.Random(0), []
    for _ in range(n):
        path.write_bytes(damage(whole, chance))  # also what a resumed run has written
        began = time.perf_counter()
        try:
            outcome = "survived" if read(path) == expected else "lost"
        except FileFormatError:
            outcome = "refused"
        except Exception:  # noqa: BLE001 - this is what is counted
            outcome = "lost"
        outcomes.append("lost" if time.perf_counter() - began > LIMIT else outcome)
    path.write_bytes(whole)
    return count(outcomes)


def model_files(folder: Path, n: int) -> Count:
    path = folder / "m.edgegraft"
    discover(PackedTable.from_codes(codes_of())).model.save(path)
    return fuzz(path, lambda p: eg.load(p).theta.tobytes(), n)


def packed_tables(folder: Path, n: int) -> Count:
    path = folder / "t.packed"
    PackedTable.from_codes(codes_of()).save(path)
    return fuzz(path, lambda p: PackedTable.open(p).codes().tobytes(), n)


def stores(folder: Path, n: int) -> Count:
    np.savetxt(folder / "rows.csv", codes_of(), "%d", ",", header="a,b,c,d,e,f,g,h", comments="")
    with open_store(folder / "rows.csv", folder=folder) as store:
        path = store.path

    def read(p: Path) -> bytes:
        with DiskStore(p) as found:
            return found.table().codes().tobytes()

    return fuzz(path, read, n)


def checkpoints(folder: Path, n: int) -> Count:
    path, table = folder / "run.checkpoint", PackedTable.from_codes(codes_of())
    discover(table, checkpoint=path)

    def read(p: Path) -> bytes:
        return resume_discovery(p, table).model.theta.tobytes()

    return fuzz(path, read, n)


def threads_and_forks(folder: Path, n: int) -> Count:
    """Fit in several threads at once, and in forks of a process that has fitted."""
    table = PackedTable.from_codes(codes_of())
    expected, found = discover(table).model.theta.tobytes(), []

    def work() -> None:
        found.append(discover(table, Plan(n_jobs=2)).model.theta.tobytes())

    outcomes = []
    for _ in range(max(1, n // 8)):
        found.clear()
        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        outcomes += ["survived" if theta == expected else "lost" for theta in found]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            child = os.fork()
        if not child:
            os._exit(discover(table, Plan(n_jobs=1)).model.theta.tobytes() != expected)
        outcomes.append("lost" if os.waitpid(child, 0)[1] else "survived")
    return count(outcomes)


ATTACKS: dict[str, tuple[str, Callable[[Path, int], Count]]] = {
    "model-files": ("damaged model files", model_files),
    "packed-tables": ("damaged packed tables", packed_tables),
    "stores": ("damaged stores of rows", stores),
    "checkpoints": ("damaged checkpoints, then resumed", checkpoints),
    "full-disk": (
        "disk full while a model, a table, a store, a checkpoint, a page, a picture, rows or "
        "another format is written: the error names the file",
        lambda folder, n: count(writers.fill_disk(folder, n)),
    ),
    "special-files": (
        "writing to pipes, sockets, devices, folders and links to them",
        lambda folder, n: count(writers.replace_special_files(folder)),
    ),
    "links": (
        "writing through links to private files, which stay links and private",
        lambda folder, n: count(writers.replace_linked_files(folder)),
    ),
    "bombs": (
        "small files that become large: lines, cells, rows, blank lines and quotes, compressed, "
        "and spreadsheets; read within 16 MB",
        lambda folder, n: count(chosen_files.bombs(folder)),
    ),
    "genotypes": (
        "VCF files that are cut or damaged in a line, an index that counts more variants, and "
        "damaged .fam and .bim files",
        lambda folder, n: count(chosen_files.genotypes(folder, n)),
    ),
    "threads-and-forks": ("fits in four threads at once, and in forks", threads_and_forks),
    "kills": (
        f"SIGKILL up to three times, then resumed ({', '.join(processes.RUNS)})",
        lambda folder, n: count(processes.kill_runs(folder, max(1, n // 100))),
    ),
    "short-lives": (
        "SIGKILL in every life of a run, each a third of the work, until one ends (in memory, "
        "ordered, bootstrap, prediction)",
        lambda folder, n: count(processes.live_shortly(folder, max(1, n // 100))),
    ),
    "interrupts": (
        "Ctrl-C at random moments",
        lambda folder, n: count(processes.interrupt_runs(folder, max(1, n // 20))),
    ),
    "stages": (
        f"Ctrl-C, once or twice, in each stage ({', '.join(processes.STAGES)})",
        lambda folder, n: count(processes.interrupt_stages(folder, max(1, n // 100))),
    ),
    "two-processes": (
        "two processes with one store and one output",
        lambda folder, n: count(processes.share_files(folder, max(1, n // 40))),
    ),
    "workers": (
        "loss of two of three workers of a cluster, or of its scheduler, then resumed",
        lambda folder, n: count(processes.lose_machines(folder, max(2, n // 25))),
    ),
}


def page(found: dict[str, Count], size: int, before: str = "") -> str:
    """Return docs/reliability.md; attacks that were not run keep the rows of the page before."""
    rows = {match[1]: match[0] for match in re.finditer(r"^\|.*--only ([\w-]+)` \|$", before, re.M)}
    for name, c in found.items():
        rows[name] = (
            f"| {ATTACKS[name][0]} | {c.tried:,} | {c.survived:,} | {c.refused:,} | {c.lost:,} | "
            f"`python -m tests.hostile.campaign --size {size} --only {name}` |"
        )
    text = (Path(__file__).parent / "reliability.txt").read_text()
    return text.format(lines="\n".join(rows[name] for name in ATTACKS if name in rows))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--only", nargs="*", choices=ATTACKS, default=list(ATTACKS))
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    found = {}
    for name in given.only:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = ATTACKS[name][1](Path(folder), given.size)
        sys.stdout.write(f"{name}: {found[name]}\n")
        sys.stdout.flush()
    if given.write:
        before = given.write.read_text() if given.write.exists() else ""
        given.write.write_text(page(found, given.size, before))
    return int(any(c.lost for c in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
