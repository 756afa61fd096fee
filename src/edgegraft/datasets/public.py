"""Readers of public data: Jester, Yummly and the binary density-estimation datasets (DEBD).

Jester dataset 1, part 1 (Goldberg et al., "Eigentaste", 2001) has one row per user, 24,983 in
total: the number of rated jokes, then 100 ratings from -10 to 10, with 99 for a joke that was not
rated.

Yummly (the Kaggle competition "What's Cooking") is a list of 39,774 recipes, each with ``id``,
``cuisine`` and a list of ``ingredients``.

The published form of DEBD dataset NAME is ``NAME.train.data``, ``NAME.valid.data`` and
``NAME.test.data``: one row per line, with cells 0 or 1, separated by commas. The file
``debd.sha256``, in this folder, has the fingerprints of their decoded content.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.datasets.source import Dataset, PathName, fetch, read_content, require_content
from edgegraft.errors import FileFormatError, import_extra
from edgegraft.table import Schema

_JESTER_URL = (
    "https://raw.githubusercontent.com/negi-soumya/eigentaste/"
    "0877aa8b2b16531cc806a77bae606ad2b8ee5122/jester-data-1.zip"
)
_JESTER = "53b07cbdb73690cbdb2932be96e507894b0a80d085892e40897050e024c2e428"
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
        Whether to require the published ratings; anything else is a FileFormatError.

    Returns
    -------
    Dataset
        Variables ``joke1`` to ``joke100``; -1 is a joke that the user did not rate. ``extras``
        has ``complete_rows``, the rows without a missing cell.

    Notes
    -----
    The authors ask users to cite K. Goldberg, T. Roeder, D. Gupta and C. Perkins, "Eigentaste: A
    constant time collaborative filtering algorithm", Information Retrieval 4 (2001).
    """
    if states < 1:
        raise ValueError(f"states must be at least 1, found {states}")
    source = fetch(_JESTER_URL) if path is None else Path(path)
    content = read_content(source, (".xls", ".csv"), ".xls")
    if source.suffix.lower() == ".csv":
        lines = content.decode("ascii", "replace").splitlines()
        rows: list[list[Any]] = [line.split(",") for line in lines]
    else:
        rows = _xls_rows(source, content)
    ratings = np.array([_decode(source, *row) for row in enumerate(rows, 1)], np.int16)
    ratings = ratings.reshape(-1, _JOKES)
    if verify:
        require_content(source, _JESTER, ratings)
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


def _xls_rows(path: Path, content: bytes) -> list[list[float]]:
    xlrd = import_extra("xlrd", "datasets", "reading an .xls file")
    try:
        book = xlrd.open_workbook(file_contents=content, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        raise FileFormatError(f"{path}: {error}") from error
    sheet = book.sheet_by_index(0)
    return [sheet.row_values(number) for number in range(sheet.nrows)]


def _decode(path: Path, number: int, row: list[Any]) -> NDArray[np.int16]:
    try:
        if len(row) != _JOKES + 1:
            raise ValueError(f"{len(row)} cells, expected {_JOKES + 1}")
        cells = np.array(row, np.float64)
        ratings, rated = cells[1:], cells[1:] != _NOT_RATED
        wrong = np.flatnonzero(rated & ~(np.abs(ratings) <= 10))
        if len(wrong):
            found = f"joke {wrong[0] + 1} is rated {ratings[wrong[0]]}"
            raise ValueError(f"{found}, expected -10 to 10, or 99 for none")
        if cells[0] != rated.sum():
            raise ValueError(f"{rated.sum()} ratings, but the first cell says {cells[0]:g}")
    except ValueError as error:
        raise FileFormatError(f"{path}, line {number}: {error}") from error
    return np.where(rated, np.rint(ratings * 100), _MISSING).astype(np.int16)


_YUMMLY_URL = (
    "https://raw.githubusercontent.com/jielulovesdessert/What-is-cooking/"
    "c33094b6233d47380ed8941f24cf399ecd6b4025/train.json.zip"
)
#: Fingerprint of the table of the 489 ingredients that are in at least 150 recipes.
_YUMMLY = "ed6aa1b9b90df0e70c520cc90b2c44206c9b7d7ab809542ec75a93c2edf69845"
_YUMMLY_MIN_RECIPES = 150


_Recipe = tuple[int, str, frozenset[str]]  # number, cuisine and ingredients


def load_yummly(
    path: PathName | None = None, min_recipes: int = 150, *, verify: bool = True
) -> Dataset:
    """Read the Yummly recipes as a binary table of ingredients.

    Parameters
    ----------
    path : path, optional
        ``train.json``, or a zip that contains it. Downloaded when not given.
    min_recipes : int, default 150
        Ingredients in fewer recipes are omitted; 150 leaves 489.
    verify : bool, default True
        Whether to require the published recipes; anything else is a FileFormatError.

    Returns
    -------
    Dataset
        One binary variable per ingredient, the most frequent first, ties by name.
        ``extras`` has ``cuisine`` and ``recipe_id`` of each row.
    """
    source = fetch(_YUMMLY_URL) if path is None else Path(path)
    recipes = _read_recipes(source)
    if verify:
        require_content(source, _YUMMLY, *_tabulate(recipes, _YUMMLY_MIN_RECIPES))
    X, names = _tabulate(recipes, min_recipes)
    numbers, cuisines, _ = zip(*recipes, strict=True) if recipes else ((), (), ())
    return Dataset(
        X=X.astype(np.int16),
        names=names,
        schema=Schema.from_states([2] * len(names), names),
        extras={
            "cuisine": np.array(cuisines, str),
            "recipe_id": np.array(numbers, np.int64),
        },
    )


def _tabulate(
    recipes: list[_Recipe], min_recipes: int
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    count = Counter(name for _, _, ingredients in recipes for name in ingredients)
    kept = sorted((-times, name) for name, times in count.items() if times >= min_recipes)
    names = tuple(name for _, name in kept)
    column = {name: k for k, name in enumerate(names)}
    X = np.zeros((len(recipes), len(names)), np.uint8)
    for row, (_, _, ingredients) in enumerate(recipes):
        X[row, [column[name] for name in ingredients if name in column]] = 1
    return X, names


def _read_recipes(path: Path) -> list[_Recipe]:
    try:
        entries = json.loads(read_content(path, (".json",), ".json").decode("utf-8"))
    except json.JSONDecodeError as error:
        raise FileFormatError(f"{path}, line {error.lineno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file: {error}") from error
    if not isinstance(entries, list):
        raise FileFormatError(f"{path}: expected a list of recipes")
    return [_recipe(path, number, entry) for number, entry in enumerate(entries, start=1)]


def _recipe(path: Path, number: int, entry: object) -> _Recipe:
    match entry:
        case {"id": int(key), "cuisine": str(cuisine), "ingredients": [*listed]} if all(
            isinstance(name, str) for name in listed
        ):
            return key, cuisine, frozenset(listed)
    raise FileFormatError(
        f"{path}: recipe {number} does not have an id, a cuisine and a list of ingredients"
    )


_DEBD_URL = (
    "https://raw.githubusercontent.com/UCLA-StarAI/Density-Estimation-Datasets/"
    "37d53c1a8ba4/datasets/{name}/{name}.{split}.data"
)
_DEBD = Path(__file__).with_name("debd.sha256")
_SPLITS = ("train", "valid", "test")

#: Data sets whose row order is not fixed: the fingerprint is of the sorted rows.
_ROWS_SORTED = {("msweb", "train")}


def load_debd(name: str, path: PathName | None = None, *, verify: bool = True) -> Dataset:
    """Read one of the binary datasets for the comparison of density estimators.

    Parameters
    ----------
    name : str
        For instance "nltcs", "plants", "baudio", "jester", "dna", "msweb", "pumsb_star" or
        "mushrooms". Others are read from local files, without verification if they are unknown.
    path : path, optional
        Folder with the three files of the dataset. Downloaded when not given.
    verify : bool, default True
        Whether to require the published rows; anything else is a FileFormatError.

    Returns
    -------
    Dataset
        Binary variables ``x0``, ``x1``, ...; the rows of train, valid and test in that order;
        ``splits`` has their slices.

    Notes
    -----
    The repository asks users to cite Lowd and Davis (2010), Van Haaren and Davis (2012), Bekker
    et al. (2015) and Larochelle and Murray (2011).
    """
    content = {name: digest for digest, name in map(str.split, _DEBD.read_text().splitlines())}
    if path is None and f"{name}.train" not in content:
        available = [key.removesuffix(".train") for key in content if key.endswith(".train")]
        raise ValueError(
            f"'{name}' cannot be downloaded, because it could not be verified: give its folder as "
            f"path, or take one of {', '.join(available)}"
        )
    parts: list[NDArray[np.uint8]] = []
    for split in _SPLITS:
        url, file = _DEBD_URL.format(name=name, split=split), f"{name}.{split}.data"
        source = fetch(url) if path is None else Path(path) / file
        rows = _read_bits(source)
        if verify and f"{name}.{split}" in content:
            fixed = rows[np.lexsort(rows.T)] if (name, split) in _ROWS_SORTED else rows
            require_content(source, content[f"{name}.{split}"], fixed)
        if parts and rows.shape[1] != parts[0].shape[1]:
            raise FileFormatError(
                f"{source}: {rows.shape[1]} columns, but train has {parts[0].shape[1]}"
            )
        parts.append(rows)
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    schema = Schema.from_states([2] * parts[0].shape[1])
    return Dataset(
        X=np.concatenate(parts).astype(np.int16),
        names=schema.names,
        schema=schema,
        splits={split: slice(ends[k], ends[k + 1]) for k, split in enumerate(_SPLITS)},
    )


def _read_bits(path: Path) -> NDArray[np.uint8]:
    lines = path.read_bytes().splitlines() or [b""]
    n_columns = lines[0].count(b",") + 1
    for number, line in enumerate(lines, start=1):
        whole = len(line) == 2 * n_columns - 1
        if not whole or line[::2].strip(b"01") or line[1::2].strip(b","):
            texts = line.decode("ascii", "replace").split(",")
            fault = f"{len(texts)} cells, expected {n_columns}"
            if len(texts) == n_columns:
                other = next(cell for cell in texts if cell not in ("0", "1"))
                fault = f"cell {other!r}, expected 0 or 1"
            raise FileFormatError(f"{path}, line {number}: {fault}")
    cells = np.frombuffer(b"".join(line[::2] for line in lines), np.uint8)
    return cells.reshape(-1, n_columns) - np.uint8(ord("0"))
