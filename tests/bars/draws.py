"""Draws of tables: rows of known models, of hard cases, of real tables, and changes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.hard.cases import Data

import edgegraft
from edgegraft import datasets
from tests.bars.measures import Table, pairs
from tests.conftest import SHARED

Draw = Callable[[int, Path], Table]


def known(make: Callable[..., Any], *sizes: Any, **options: Any) -> Draw:
    """Return a draw of rows of a model of the generators."""

    def draw(seed: int, folder: Path) -> Table:
        made = make(*sizes, random_state=seed, **options)
        return Table(made.X.astype(np.int64), pairs(made.edges), truth=made.model)

    return draw


def scale_free(n: int, n_states: int, n_rows: int, **options: Any) -> Draw:
    return known(datasets.make_scale_free, n, n_states, n_rows, **options)


def chain(n_states: Any, n_rows: int) -> Draw:
    return known(datasets.make_chain, 8, n_states=n_states, n_rows=n_rows, edge_scale=0.8)


def hard(draw: Callable[[np.random.Generator], Data]) -> Draw:
    """Return a draw of a hard case of the benchmarks."""
    return lambda seed, folder: Table(*draw(np.random.default_rng(1000 + seed))[:3])


def kinds(make: Callable[..., Any], *sizes: Any, at: int) -> Draw:
    """Return a draw of the benchmarks of kinds; the seed is argument `at`."""

    def draw(seed: int, folder: Path) -> Table:
        edges, rows = make(*sizes[:at], seed, *sizes[at:])[:2]
        return Table(rows, edges)

    return draw


# Draws of tables made from others


def with_test(draw: Draw, n_rows: int) -> Draw:
    """Return the first rows for the fit, the others for a test."""

    def split(seed: int, folder: Path) -> Table:
        table = draw(seed, folder)
        whole = edgegraft.pack(table.X)
        codes = whole.codes()
        train = edgegraft.PackedTable.from_codes(codes[:n_rows], whole.schema)
        return table._replace(X=train, truth=None, test=codes[n_rows:])

    return split


def with_holes(draw: Draw, share: float) -> Draw:
    def drawn(seed: int, folder: Path) -> Table:
        table = draw(seed, folder)
        holes = np.random.default_rng(seed).random(table.X.shape) < share
        return table._replace(X=np.where(holes, np.nan, table.X))

    return drawn


def with_frequencies(draw: Draw) -> Draw:
    """Return a random number of copies of every row, as weights."""

    def drawn(seed: int, folder: Path) -> Table:
        table = draw(seed, folder)
        rows, counts = np.unique(table.X, axis=0, return_counts=True)
        return table._replace(X=rows, weights=counts.astype(float))

    return drawn


def with_selection(draw: Draw) -> Draw:
    """Return the rows that a survey reached, which depends on column 0, with inverse chances."""

    def drawn(seed: int, folder: Path) -> Table:
        table = draw(seed, folder)
        chance = np.where(table.X[:, 0] == 0, 0.2, 0.8)
        reached = np.random.default_rng(seed).random(len(chance)) < chance
        return table._replace(X=table.X[reached], weights=1 / chance[reached])

    return drawn


def on_disk(draw: Draw) -> Draw:
    def drawn(seed: int, folder: Path) -> Table:
        table, path = draw(seed, folder), folder / f"rows-{seed}.parquet"
        letters = np.array(["low", "mid", "top"], object)
        frame = pd.DataFrame({f"x{i}": letters[column] for i, column in enumerate(table.X.T)})
        frame.to_parquet(path, row_group_size=4096)
        return table._replace(X=path, truth=None)

    return drawn


def recorded(name: str, n_rows: int) -> Draw:
    """Return rows of a real table for a fit and a test, shuffled by the seed."""

    def draw(seed: int, folder: Path) -> Table:
        path = SHARED / name
        if not path.is_file():
            pytest.skip(f"{name} is not in the folder of real data (../shared/data)")
        if path.suffix == ".npz":
            with np.load(path) as file:
                whole = edgegraft.PackedTable.from_codes(file["train"].astype(np.int64))
        else:
            whole = edgegraft.pack(pd.read_csv(path, na_values="?"))
        codes = np.random.default_rng(seed).permutation(whole.codes())
        train = edgegraft.PackedTable.from_codes(codes[:n_rows], whole.schema)
        return Table(train, test=codes[n_rows:])

    return draw


# Draws of their own


def copying(seed: int, folder: Path) -> Table:
    """Draw a few columns of three states, each agreeing with the one before in most rows."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, (1000, 6))
    for i in range(1, 6):
        rows[:, i] = np.where(rng.random(1000) < 0.5, rows[:, i - 1], rows[:, i])
    return Table(rows, {(i - 1, i) for i in range(1, 6)})


def counts(seed: int, folder: Path) -> Table:
    """Draw chains of four columns of counts, the mean of each depending on the one before."""
    rng = np.random.default_rng(seed)
    rows = rng.poisson(2.0, (800, 12))
    for i in range(12):
        if i % 4:
            rows[:, i] = rng.poisson(1.0 + 0.6 * rows[:, i - 1])
    return Table(rows, {(i - 1, i) for i in range(12) if i % 4})


def questionnaire(seed: int, folder: Path) -> Table:
    """Draw text, numbers, ordered categories and truth values, with missing cells."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(1200) < 0.4
    age = rng.integers(18, 60, 1200) + 30 * smoker
    frame = pd.DataFrame(
        {
            "smoker": np.where(smoker, "yes", "no"),
            "cough": np.where(rng.random(1200) < 0.8, smoker, rng.random(1200) < 0.5).astype(int),
            "age": age,
            "weight": np.round(60 + 20 * rng.random(1200) + 10 * smoker, 2),
            "level": pd.Categorical(
                np.where(age > 50, "high", rng.choice(["low", "mid"], 1200)),
                ["low", "mid", "high", "never"],
                ordered=True,
            ),
            "flag": rng.random(1200) < 0.3,
            "rating": rng.integers(1, 6, 1200).astype(float),
        }
    )
    frame.loc[rng.random(1200) < 0.1, "rating"] = np.nan
    frame.loc[rng.random(1200) < 0.1, "smoker"] = None
    return Table(frame, {(0, 1), (0, 2), (0, 3), (2, 4)})


def many_states(seed: int, folder: Path) -> Table:
    """Draw columns of more than 16 and of more than 64 states, which are stored as codes."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 70, 6000)
    second = np.where(rng.random(6000) < 0.7, first // 4, rng.integers(0, 18, 6000))
    third = np.where(rng.random(6000) < 0.6, second % 2, rng.integers(0, 2, 6000))
    rows = np.stack([first, second, third, rng.integers(0, 3, 6000)], axis=1)
    return Table(rows, {(0, 1), (1, 2)})


def wide(seed: int, folder: Path) -> Table:
    """Draw more columns than have all their pairs ranked, in chains of four."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (300, 2004))
    for i in range(2004):
        if i % 4:
            rows[:, i] = rows[:, i - 1] ^ (rng.random(300) < 0.2)
    return Table(rows, {(i - 1, i) for i in range(2004) if i % 4})
