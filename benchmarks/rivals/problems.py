"""The data: training rows, held-out rows and, if known, the true graph.

Columns are coded by the states that occur in the training rows. Constant columns, and held-out rows
with a state that does not occur in the training rows, are omitted for all tools (the file records
how many). Generators: the last 1,000 rows are held out. Yummly and Jester: 1,000 rows drawn with
the seed. Binary sets: the published training and test rows, independent of the seed; the validation
rows are not used, because each tool chooses its settings from the training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.outcome import Codes

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"
HELD_OUT = 1000


class Problem(NamedTuple):
    """Training rows, held-out rows, the numbers of states, and the true edges or None."""

    train: Codes
    test: Codes
    states: NDArray[np.int64]
    truth: NDArray[np.int64] | None
    dropped_columns: int = 0
    dropped_rows: int = 0


class Source(NamedTuple):
    """A function from a seed to raw rows: train, test, true edges or None."""

    title: str
    draw: Callable[[int], tuple[Codes, Codes, NDArray[np.int64] | None]]
    seeded: bool = True


def generated(n: int, n_states: int, n_rows: int, **options: Any) -> Callable[[int], Any]:
    def draw(seed: int) -> tuple[Codes, Codes, NDArray[np.int64]]:
        from edgegraft.datasets import make_scale_free

        data = make_scale_free(n, n_states, n_rows + HELD_OUT, random_state=seed, **options)
        return data.X[:n_rows], data.X[n_rows:], data.edges

    return draw


def split(rows: Codes, seed: int) -> tuple[Codes, Codes, None]:
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows[order[HELD_OUT:]], rows[order[:HELD_OUT]], None


def yummly(seed: int) -> tuple[Codes, Codes, None]:
    with np.load(FOLDER / "yummly489.npz") as file:
        return split(file["X"][file["sample10000"]], seed)


def jester(seed: int) -> tuple[Codes, Codes, None]:
    with np.load(FOLDER / "jester5.npz") as file:
        return split(file["X"][file["complete_rows"]], seed)


def binary(name: str) -> Callable[[int], Any]:
    def draw(seed: int) -> tuple[Codes, Codes, None]:
        with np.load(FOLDER / "debd" / f"{name}.npz") as file:
            return file["train"], file["test"], None

    return draw


DEBD = ("nltcs", "plants", "baudio", "jester", "dna", "mushrooms", "pumsb_star", "msweb")
SOURCES = {
    "scale-free-30": Source("Generator, 30 variables, 5 states, N=3,000", generated(30, 5, 3000)),
    "scale-free-100": Source(
        "Generator, 100 variables, 5 states, N=10,000", generated(100, 5, 10_000)
    ),
    "scale-free-200": Source(
        "Generator, 200 variables, 5 states, N=19,000", generated(200, 5, 19_000)
    ),
    "ising-200": Source(
        "Ising model, 200 variables, N=10,000", generated(200, 2, 10_000, couplings="ising")
    ),
    "yummly": Source("Yummly, 489 ingredients, N=9,000", yummly),
    "jester": Source("Jester, 100 jokes, 5 states, N=6,200 (complete rows)", jester),
} | {f"debd-{name}": Source(f"Binary set {name}", binary(name), False) for name in DEBD}


def prepare(name: str, seed: int) -> Problem:
    """Return the problem for a name and a seed."""
    train, test, truth = SOURCES[name].draw(seed)
    return recoded(np.asarray(train), np.asarray(test), truth)


def recoded(train: Codes, test: Codes, truth: NDArray[np.int64] | None) -> Problem:
    """Return the problem coded by the states of the training rows."""
    known = [np.unique(column) for column in train.T]
    kept = np.array([i for i, states in enumerate(known) if len(states) > 1])
    seen = np.ones(len(test), bool)
    for i, states in enumerate(known):
        seen &= np.isin(test[:, i], states)
    codes = [
        np.stack([np.searchsorted(known[i], rows[:, i]) for i in kept], axis=1).astype(np.uint16)
        for rows in (train, test[seen])
    ]
    if truth is not None:
        position = np.full(len(known), -1)
        position[kept] = np.arange(len(kept))
        truth = position[truth]
        truth = truth[(truth >= 0).all(axis=1)]
    sizes = np.array([len(known[i]) for i in kept], np.int64)
    return Problem(*codes, sizes, truth, len(known) - len(kept), int((~seen).sum()))


def write(problem: Problem, path: Path) -> None:
    """Write a problem atomically."""
    arrays = {key: value for key, value in problem._asdict().items() if value is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **arrays)
    unfinished.replace(path)


def read(path: Path) -> Problem:
    """Read a problem."""
    with np.load(path) as file:
        stored = {key: file[key] for key in file.files}
    counts = {key: int(stored.pop(key)) for key in ("dropped_columns", "dropped_rows")}
    return Problem(**({"truth": None} | stored), **counts)
