"""Joke ratings: Jester dataset 1, part 1 (Goldberg et al., "Eigentaste", 2001).

The published file has one row per user, 24,983 in total: the number of rated jokes, then 100
ratings from -10 to 10, with 99 for a joke that was not rated.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegraft.datasets.source import Dataset, PathName, fetch, read_content, require_content
from edgegraft.errors import FileFormatError, MissingExtraError
from edgegraft.table import Schema

_URL = (
    "https://raw.githubusercontent.com/negi-soumya/eigentaste/"
    "0877aa8b2b16531cc806a77bae606ad2b8ee5122/jester-data-1.zip"
)
_CONTENT = "53b07cbdb73690cbdb2932be96e507894b0a80d085892e40897050e024c2e428"
_JOKES = 100
_NOT_RATED = 99.0
#: Value of a joke without a rating, in the array that identifies the data.
_MISSING = np.int16(-32768)


def load_jester(path: PathName | None = None, states: int = 5, *, verify: bool = True) -> Dataset:
    """Read the Jester joke ratings, binned into intervals of equal width.

    Parameters
    ----------
    path : path, optional
        ``jester-data-1.zip``, the ``.xls`` in it, or a ``.csv`` of the same rows. Downloaded when
        not given.
    states : int, default 5
        Number of intervals of [-10, 10]; a rating ``r`` is in state
        ``min(states - 1, floor((r + 10) * states / 20))``.
    verify : bool, default True
        Whether to require the published ratings.

    Returns
    -------
    Dataset
        Variables ``joke1`` to ``joke100``; -1 is a joke that the user did not rate. ``extras``
        has ``complete_rows``, the rows without a missing cell.

    Raises
    ------
    FileFormatError
        If the file is malformed, or is not the published one.
    MissingExtraError
        If the download needs pooch, or the ``.xls`` xlrd, and it is not installed.

    Notes
    -----
    The authors ask users to cite K. Goldberg, T. Roeder, D. Gupta and C. Perkins, "Eigentaste: A
    constant time collaborative filtering algorithm", Information Retrieval 4 (2001).
    """
    if states < 1:
        raise ValueError(f"states must be at least 1, found {states}")
    source = fetch(_URL) if path is None else Path(path)
    ratings = _hundredths(source, _rows(source))
    if verify:
        require_content(source, _CONTENT, ratings)
    rated = ratings != _MISSING
    # Integers, so that rounding does not affect a rating on the border of two intervals.
    state = np.minimum((ratings.astype(np.int64) + 1000) * states // 2000, states - 1)
    names = tuple(f"joke{k + 1}" for k in range(_JOKES))
    return Dataset(
        X=np.where(rated, state, -1).astype(np.int16),
        names=names,
        schema=Schema.from_states([states] * _JOKES, names),
        extras={"complete_rows": np.flatnonzero(rated.all(axis=1))},
    )


def _rows(path: Path) -> Iterable[list[float]]:
    content = read_content(path, (".xls", ".csv"), ".xls")
    if path.suffix.lower() != ".csv":
        return _xls_rows(path, content)
    return _csv_rows(path, content.decode("ascii", "replace"))


def _csv_rows(path: Path, text: str) -> Iterator[list[float]]:
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            yield [float(cell) for cell in line.split(",")]
        except ValueError as error:
            raise FileFormatError(f"{path}, line {number}: {error}") from error


def _xls_rows(path: Path, content: bytes) -> list[list[float]]:
    try:
        import xlrd
    except ModuleNotFoundError as error:
        raise MissingExtraError("xlrd", "datasets", "reading an .xls file") from error
    try:
        book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        raise FileFormatError(f"{path}: {error}") from error
    sheet = book.sheet_by_index(0)
    return [sheet.row_values(number) for number in range(sheet.nrows)]


def _hundredths(path: Path, rows: Iterable[list[float]]) -> NDArray[np.int16]:
    decoded = [_decode(f"{path}, line {number}", row) for number, row in enumerate(rows, start=1)]
    return np.array(decoded, np.int16).reshape(-1, _JOKES)


def _decode(where: str, row: list[float]) -> NDArray[np.int16]:
    if len(row) != _JOKES + 1:
        raise FileFormatError(f"{where}: {len(row)} cells, expected {_JOKES + 1}")
    try:
        cells = np.array(row, np.float64)
    except ValueError as error:
        raise FileFormatError(f"{where}: {error}") from error
    ratings, rated = cells[1:], cells[1:] != _NOT_RATED
    wrong = rated & ~(np.abs(ratings) <= 10)
    if wrong.any():
        joke = int(np.argmax(wrong))
        fault = f"joke {joke + 1} is rated {ratings[joke]}, expected -10 to 10, or 99 for none"
        raise FileFormatError(f"{where}: {fault}")
    if cells[0] != rated.sum():
        fault = f"{rated.sum()} ratings, but the first cell says {cells[0]:g}"
        raise FileFormatError(f"{where}: {fault}")
    return np.where(rated, np.rint(ratings * 100), _MISSING).astype(np.int16)
