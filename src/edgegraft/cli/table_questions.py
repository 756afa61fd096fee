"""What a model says of the rows of a file: how likely they are, and what is missing in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from edgegraft.cli.console import say
from edgegraft.cli.row_files import write_blocks
from edgegraft.cli.row_weights import read_weights
from edgegraft.cli.wording import cell, counted
from edgegraft.errors import DataError
from edgegraft.ingest import pack
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.parquet_out import write_parquet
from edgegraft.ingest.wording import listing
from edgegraft.model import PairwiseMRF
from edgegraft.table import Variable

Codes = NDArray[np.int64]
Block = Mapping[str, list[Any]]
_SHOWN = 15


@dataclass(frozen=True)
class Reading:
    """A file, and how it is to be read."""

    path: Path
    missing: tuple[str, ...]
    unseen: Literal["error", "missing"]
    delimiter: str | None
    header: bool
    encoding: str
    weights: str | None = None

    def codes(self, model: PairwiseMRF) -> Codes:
        """Return the model's columns as codes; other columns of the file are left alone."""
        if self.header:
            self._check_names(model.names)
        table = pack(
            self.path,
            schema=model.schema,
            columns=model.names if self.header else None,
            drop=None if self.header or self.weights is None else [self.weights],
            missing_values=self.missing,
            unseen=self.unseen,
            delimiter=self.delimiter,
            header=self.header,
            encoding=self.encoding,
        )
        return table.codes().astype(np.int64)

    def row_weights(self) -> NDArray[np.float64] | None:
        """Return the row weights, where a column of them was named."""
        if self.weights is None:
            return None
        return read_weights(self.path, self.weights, self._options(self.missing))

    def _check_names(self, wanted: Sequence[str]) -> None:
        names, _ = self.blocks()
        absent = [name for name in wanted if name not in set(names)]
        if absent:
            raise DataError(
                f"'{self.path}' lacks {counted(len(absent), 'column')} of the model: "
                f"{listing(absent)}; it has {listing(names)}"
            )

    def blocks(self) -> tuple[list[str], Iterator[Block]]:
        """Return the names of all columns of the file, and its cells, those of text as they are."""
        options = self._options()
        with open_source(self.path, options) as source:
            names = list(source.names)
        return names, self._cells(options, names)

    def _options(self, missing: tuple[str, ...] = ()) -> ReadOptions:
        return ReadOptions(
            missing_values=missing,
            delimiter=self.delimiter,
            header=self.header,
            encoding=self.encoding,
        )

    def _cells(self, options: ReadOptions, names: list[str]) -> Iterator[Block]:
        with open_source(self.path, options) as source:
            for batch in source.batches(names):
                yield batch.to_pydict()


def complete(
    model: PairwiseMRF, reading: Reading, method: Literal["map", "draw"], seed: int
) -> tuple[list[str], Iterator[Block], int]:
    """Return the file's columns, its rows with the missing cells filled, and how many those are."""
    before = reading.codes(model)
    names, blocks = reading.blocks()
    after = model.impute(codes=before, method=method, random_state=seed)
    cells = {}
    for i, variable in enumerate(model.schema):
        rows = np.flatnonzero(before[:, i] < 0)
        found = after.column(i).take(rows).to_pylist()
        if len(rows):
            name = variable.name if reading.header else names[i]
            cells[name] = dict(zip(rows.tolist(), _values(variable, found), strict=True))
    return names, _patched(blocks, cells), int((before < 0).sum())


def _values(variable: Variable, found: list[Any]) -> list[Any]:
    """Return labels as what a cell of the column holds: a number for an interval."""
    if not variable.binned:
        return found
    from edgegraft.ingest.labels import middles

    middle = dict(zip(variable.categories, middles(variable).tolist(), strict=True))
    return [middle[label] for label in found]


def _patched(blocks: Iterator[Block], cells: Mapping[str, Mapping[int, Any]]) -> Iterator[Block]:
    done = 0
    for block in blocks:
        out = dict(block)
        n_rows = len(next(iter(out.values())))
        for name, values in cells.items():
            out[name] = [values.get(done + r, cell) for r, cell in enumerate(block[name])]
        done += n_rows
        yield out


class Scores(NamedTuple):
    """Log-pseudolikelihoods in nats."""

    names: tuple[str, ...]
    rows: NDArray[np.float64]  # the sum over the known cells of each row
    variables: NDArray[np.float64]  # the mean over the known cells of each column; nan if none
    weights: NDArray[np.float64]  # of the rows; what is a mean is a weighted one

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
        """Of the rows."""
        return float(np.average(self.rows, weights=self.weights))

    @property
    def standard_error(self) -> float | None:
        """Of the mean, a row of weight 2 being two rows; None of a single row."""
        n = float(self.weights.sum())
        squares = float(self.weights @ np.square(self.rows - self.mean))
        return float(np.sqrt(squares / (n - 1) / n)) if n > 1 else None


def scores(model: PairwiseMRF, reading: Reading) -> Scores:
    """Return how well a model predicts the known cells of a file."""
    weights = reading.row_weights()
    cells = model.pseudo_log_likelihood(codes=reading.codes(model), per_variable=True)
    weights = np.ones(len(cells)) if weights is None else weights
    known = ~np.isnan(cells)
    told = np.where(known, cells, 0.0)
    sums, counts = weights @ told, weights @ known
    means = np.where(counts, sums / np.where(counts, counts, 1.0), np.nan)
    return Scores(model.names, told.sum(axis=1), means, weights)


def write_scores(path: Path, found: Scores) -> None:
    """Write one score a row."""
    column = {"log_pseudolikelihood": found.rows.tolist()}
    if path.suffix.lower() == ".parquet":
        write_parquet(path, column)
    else:
        write_blocks(path, list(column), [column])


def show_scores(console: Console, found: Scores) -> None:
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
