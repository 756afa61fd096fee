"""What a model says about the rows of a file: how likely they are, and their missing cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from edgegraft.cli.console import say
from edgegraft.cli.formatting import cell, counted
from edgegraft.core.text import listing
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import DataError
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.row_weights import read_weights
from edgegraft.ingest.rows import read_codes
from edgegraft.model import PairwiseMRF
from edgegraft.table import Variable
from edgegraft.table.decode import middles

Block = Mapping[str, list[Any]]
_SHOWN = 15


class Completed(NamedTuple):
    """The rows of a file with their missing cells filled."""

    names: list[str]
    blocks: Iterator[Block]
    n_filled: int
    approximation: str | None


def _codes(
    model: PairwiseMRF, path: Path, reading: ReadOptions, weights: str | None = None
) -> Integers:
    """Return the model's columns of a file as codes; other columns of the file are left alone."""
    if not reading.header:
        drop = None if weights is None else [weights]
        return read_codes(path, model.schema, replace(reading, drop=drop))
    with open_source(path, reading) as source:
        names = list(source.names)
    absent = [name for name in model.names if name not in set(names)]
    if absent:
        raise DataError(
            f"'{path}' lacks {counted(len(absent), 'column')} of the model: {listing(absent)}; "
            f"it has {listing(names)}"
        )
    return read_codes(path, model.schema, replace(reading, columns=model.names))


def complete(
    model: PairwiseMRF,
    path: Path,
    reading: ReadOptions,
    method: Literal["map", "draw"],
    seed: int,
) -> Completed:
    """Fill the missing cells of a file."""
    before = _codes(model, path, reading)
    with open_source(path, reading) as source:
        names = list(source.names)
    after = model.complete(before, method=method, random_state=seed)
    labels = model.schema.decode(after.codes)
    cells = {}
    for i, variable in enumerate(model.schema):
        rows = np.flatnonzero(before[:, i] < 0)
        if len(rows):
            filled = _cells(variable, labels.column(i).take(rows).to_pylist())
            name = variable.name if reading.header else names[i]
            cells[name] = dict(zip(rows.tolist(), filled, strict=True))
    n_filled = int((before < 0).sum())
    return Completed(names, _filled(path, reading, names, cells), n_filled, after.approximation)


def _cells(variable: Variable, labels: list[Any]) -> list[Any]:
    """Return labels as the cells of their column are: a number for an interval."""
    if not variable.binned:
        return labels
    middle = dict(zip(variable.categories, middles(variable).tolist(), strict=True))
    return [middle[label] for label in labels]


def _filled(
    path: Path, reading: ReadOptions, names: list[str], cells: Mapping[str, Mapping[int, Any]]
) -> Iterator[Block]:
    """Yield the rows of a file, with other values in some cells, by column and row."""
    done = 0
    with open_source(path, replace(reading, missing_values=())) as source:
        for batch in source.batches(names):
            block = batch.to_pydict()
            for name, values in cells.items():
                block[name] = [values.get(done + r, cell) for r, cell in enumerate(block[name])]
            done += batch.num_rows
            yield block


class RowScores(NamedTuple):
    """Log-pseudolikelihoods in nats."""

    names: tuple[str, ...]
    rows: Floats  # sums over the known cells of each row
    variables: Floats  # means over the known cells of each column; nan without any
    weights: Floats  # row weights; all means are weighted

    def summary(self) -> dict[str, Any]:
        """Return the scores for programs."""
        means = {
            name: None if np.isnan(value) else float(value)
            for name, value in zip(self.names, self.variables, strict=True)
        }
        return {
            "rows": len(self.rows),
            "mean_log_pseudolikelihood": self.mean,
            "standard_error": self.standard_error,
            "mean_by_variable": means,
        }

    @property
    def mean(self) -> float:
        """Mean score of the rows."""
        return float(np.average(self.rows, weights=self.weights))

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean, a row of weight 2 being two rows; None for a single row."""
        n = float(self.weights.sum())
        squares = float(self.weights @ np.square(self.rows - self.mean))
        return float(np.sqrt(squares / (n - 1) / n)) if n > 1 else None


def scores(
    model: PairwiseMRF, path: Path, reading: ReadOptions, weights_column: str | None = None
) -> RowScores:
    """Return how well a model predicts the known cells of a file."""
    weights = None
    if weights_column is not None:
        weights = read_weights(path, weights_column, reading)
    codes = _codes(model, path, reading, weights_column)
    cells = model.pseudo_log_likelihood(codes=codes, per_variable=True)
    weights = np.ones(len(cells)) if weights is None else weights
    known = ~np.isnan(cells)
    values = np.where(known, cells, 0.0)
    sums, counts = weights @ values, weights @ known
    means = np.where(counts, sums / np.where(counts, counts, 1.0), np.nan)
    return RowScores(model.names, values.sum(axis=1), means, weights)


def show_scores(console: Console, found: RowScores) -> None:
    """Show the mean, and the variables that the rest predicts worst."""
    table = Table(title="Variables predicted worst", title_justify="left")
    table.add_column("variable")
    table.add_column("mean log p(cell | rest)", justify="right")
    known = np.flatnonzero(~np.isnan(found.variables))
    for i in known[np.argsort(found.variables[known], kind="stable")][:_SHOWN]:
        table.add_row(cell(found.names[i]), f"{found.variables[i]:.4f}")
    console.print(table, highlight=False)
    error = found.standard_error
    spread = "" if error is None else f" (standard error {error:.2g})"
    say(
        console,
        f"Mean log-pseudolikelihood of {counted(len(found.rows), 'row')}: "
        f"[bold]{found.mean:.4f}[/] nats{spread}; nearer to zero is better.",
    )
