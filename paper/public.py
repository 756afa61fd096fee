"""Public tables of the paper: Jester's joke ratings and Yummly's recipes.

A folder may contain the small copies ``jester5.npz`` and ``yummly489.npz`` (states as bytes, 255
for a missing cell), or the published files under their own names. The default folder is that of the
environment variable EDGEGRAFT_DATA; without it, the readers of :mod:`edgegraft.datasets` download
the published files once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegraft.datasets import load_jester, load_yummly
from edgegraft.errors import FileFormatError
from edgegraft.table import Schema
from paper.networks import Case, split

_FILES = {
    "jester": ("jester5.npz", "jester-data-1.zip", "jester-data-1.xls", "jester-data-1.csv"),
    "yummly": ("yummly489.npz", "train.json.zip", "train.json"),
}
_STATES = {"jester": 5, "yummly": 2}
_MISSING = 255
N_RECIPES = 10_000
HELD_OUT = 10  # one row in ten is held out
Codes = NDArray[np.int16]


def require_data(names: Iterable[str], folder: Path | None) -> None:
    """Raise before any work if the given folder lacks the data."""
    if folder is not None and not folder.is_dir():
        raise NotADirectoryError(f"there is no folder '{folder}' to take the data from")
    for name in sorted(names):
        _find(name, folder)


def _find(name: str, folder: Path | None) -> Path | None:
    """Return the file to read, or None if it has to be downloaded."""
    named = os.environ.get("EDGEGRAFT_DATA") if folder is None else folder
    found = [] if named is None else [Path(named) / file for file in _FILES[name]]
    for path in found:
        if path.is_file():
            return path
    if folder is None:
        return None
    raise FileNotFoundError(
        f"the folder '{folder}' has no {name} data: put one of {', '.join(_FILES[name])} there, "
        "give another folder with --data, or omit --data to download the published file"
    )


@lru_cache(maxsize=1)
def read_codes(name: str, folder: Path | None) -> Codes:
    """Return the states of a public table, -1 for a missing cell."""
    path = _find(name, folder)
    if path is None or path.suffix != ".npz":
        load = load_jester if name == "jester" else load_yummly
        return load(path).X
    try:
        with np.load(path, allow_pickle=False) as file:
            states: NDArray[np.generic] = file["X"]
    except (ValueError, KeyError, OSError) as error:
        raise FileFormatError(f"{path}: {error}") from error
    codes: Codes = states.astype(np.int16)
    codes[states == _MISSING] = -1
    if codes.ndim != 2 or codes.max(initial=0) >= _STATES[name]:
        raise FileFormatError(f"{path}: not the {name} table of {_STATES[name]} states")
    return codes


def jester(folder: Path | None, *, complete: bool, n_variables: int, n_rows: int) -> Case:
    """Return training rows and held-out complete rows; the latter do not depend on `complete`.

    A tenth of the users who rated every joke are held out. With `complete`, the training rows are
    the other users who rated every joke; otherwise all other users, including those with missing
    ratings.
    """
    codes = read_codes("jester", folder)[:n_rows, :n_variables]
    rng = np.random.default_rng(0)
    known = rng.permutation(np.flatnonzero((codes >= 0).all(axis=1)))
    held_out = known[: max(1, len(known) // HELD_OUT)]
    kept = known if complete else np.arange(len(codes))
    return _case(codes, np.setdiff1d(kept, held_out), held_out, _STATES["jester"])


def yummly(folder: Path | None, *, n_variables: int, n_rows: int) -> Case:
    """Return a sample of the recipes, a tenth of them held out."""
    codes = read_codes("yummly", folder)[:, :n_variables]
    rng = np.random.default_rng(0)
    sample = np.sort(rng.choice(len(codes), min(n_rows, len(codes)), replace=False))
    shuffled = rng.permutation(sample)
    n_test = len(sample) // HELD_OUT
    return _case(codes, shuffled[n_test:], shuffled[:n_test], _STATES["yummly"])


def _case(codes: Codes, train: NDArray[np.int64], test: NDArray[np.int64], n_states: int) -> Case:
    schema = Schema.from_states([n_states] * codes.shape[1])
    first, second = split(codes[np.concatenate((train, test))], schema, len(train))
    return Case(first, second)
