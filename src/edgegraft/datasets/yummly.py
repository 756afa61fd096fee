"""Recipes and their ingredients: Yummly, from the Kaggle competition "What's Cooking".

The published ``train.json`` is a list of 39,774 recipes, each with ``id``, ``cuisine`` and a list
of ``ingredients``.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.datasets.source import Dataset, PathName, fetch, read_content, require_content
from edgegraft.errors import FileFormatError
from edgegraft.table import Schema

_URL = (
    "https://raw.githubusercontent.com/jielulovesdessert/What-is-cooking/"
    "c33094b6233d47380ed8941f24cf399ecd6b4025/train.json.zip"
)
#: Fingerprint of the table of the 489 ingredients that are in at least 150 recipes.
_CONTENT = "ed6aa1b9b90df0e70c520cc90b2c44206c9b7d7ab809542ec75a93c2edf69845"
_CONTENT_MIN_RECIPES = 150


class _Recipe(NamedTuple):
    number: int
    cuisine: str
    ingredients: frozenset[str]


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
        Whether to require the published recipes.

    Returns
    -------
    Dataset
        One binary variable per ingredient, the most frequent first, ties by name.
        ``extras`` has ``cuisine`` and ``recipe_id`` of each row.

    Raises
    ------
    FileFormatError
        If the file is malformed, or is not the published one.
    MissingExtraError
        If the download needs pooch and it is not installed.
    """
    source = fetch(_URL) if path is None else Path(path)
    recipes = _read(source)
    if verify:
        require_content(source, _CONTENT, *_tabulate(recipes, _CONTENT_MIN_RECIPES))
    X, names = _tabulate(recipes, min_recipes)
    return Dataset(
        X=X.astype(np.int16),
        names=names,
        schema=Schema.from_states([2] * len(names), names),
        extras={
            "cuisine": np.array([recipe.cuisine for recipe in recipes]),
            "recipe_id": np.array([recipe.number for recipe in recipes], np.int64),
        },
    )


def _tabulate(
    recipes: list[_Recipe], min_recipes: int
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    count = Counter(name for recipe in recipes for name in recipe.ingredients)
    kept = sorted((-times, name) for name, times in count.items() if times >= min_recipes)
    names = tuple(name for _, name in kept)
    column = {name: k for k, name in enumerate(names)}
    X = np.zeros((len(recipes), len(names)), np.uint8)
    for row, recipe in enumerate(recipes):
        X[row, [column[name] for name in recipe.ingredients if name in column]] = 1
    return X, names


def _read(path: Path) -> list[_Recipe]:
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
            return _Recipe(key, cuisine, frozenset(listed))
    raise FileFormatError(
        f"{path}: recipe {number} does not have an id, a cuisine and a list of ingredients"
    )
