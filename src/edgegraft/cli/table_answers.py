"""Rows of a file under a model: how well they are predicted, and their missing cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.console import Console

from edgegraft.cli.console import cell, say, show_table
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import DataError, counted, listing
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import read_codes, read_weights
from edgegraft.io.exports import as_text
from edgegraft.model import PairwiseMRF
from edgegraft.study.predictability import predictability
from edgegraft.table.arrow import labels

_SHOWN = 40


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
) -> tuple[dict[str, list[Any]], int, str | None]:
    """Return the columns of a file with their missing cells filled, how many, and how.

    The last is None unless cells were filled by an approximation.
    """
    before = _codes(model, path, reading)
    rng = np.random.default_rng(seed)
    after = model.complete(before, method=method, random_state=rng)
    table = labels(model.schema, after.codes, rng if method == "draw" else None)
    with open_source(path, reading) as source:
        source.select(source.names)
        batches = list(source.batches(source.names))
        columns = {
            name: [cell for batch in batches for cell in batch.column(k).to_pylist()]
            for k, name in enumerate(source.names)
        }
    for i, name in enumerate(model.names if reading.header else source.names):
        filled = table.column(i).to_pylist()
        for row in np.flatnonzero(before[:, i] < 0).tolist():
            columns[name][row] = as_text(filled[row]) if source.from_text else filled[row]
    return columns, int((before < 0).sum()), after.approximation


class RowScores(NamedTuple):
    """How well a model predicts cells, beside a guess that knows only how common answers are."""

    names: tuple[str, ...]
    rows: Floats  # log-pseudolikelihoods: sums over the known cells of each row, in nats
    baseline: float  # mean of the same for the guess
    columns: dict[str, Floats]  # of `predictability`: accuracy, usual, nats, entropy, explained
    weights: Floats  # row weights; all means are weighted

    def summary(self) -> dict[str, Any]:
        """Return the scores for programs."""
        columns = {
            "mean_log_probability": -self.columns["nats"],
            "baseline_log_probability": -self.columns["entropy"],
            "explained": self.columns["explained"],
            "accuracy": self.columns["accuracy"],
            "baseline_accuracy": self.columns["usual"],
        }
        by_variable = {
            name: {key: _number(values[i]) for key, values in columns.items()}
            for i, name in enumerate(self.names)
        }
        return {
            "rows": len(self.rows),
            "mean_log_pseudolikelihood": self.mean,
            "standard_error": self.standard_error,
            "baseline": self.baseline,
            "by_variable": by_variable,
        }

    @property
    def mean(self) -> float:
        """Weighted mean of the rows."""
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
    weights = np.ones(len(codes)) if weights is None else weights
    columns = predictability(model, codes, weights)
    known = weights @ (codes >= 0) / weights.sum()
    baseline = -float(known @ np.nan_to_num(columns["entropy"]))
    rows = model.pseudo_log_likelihood(codes=codes)
    return RowScores(model.names, rows, baseline, columns, weights)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def show_scores(console: Console, found: RowScores) -> None:
    """Show the variables, those predicted best first, and the mean of the rows."""
    accuracy, usual, nats, entropy, explained = (
        found.columns[name] for name in ("accuracy", "usual", "nats", "entropy", "explained")
    )
    known = np.flatnonzero(~np.isnan(nats))
    order = known[np.argsort(-np.nan_to_num(explained[known], nan=-1.0), kind="stable")]
    rows = [
        [
            cell(found.names[i]),
            f"{accuracy[i]:.1%}",
            f"{usual[i]:.1%}",
            f"{nats[i]:.3f}",
            f"{entropy[i]:.3f}",
            "" if np.isnan(explained[i]) else f"{explained[i].round(3) + 0.0:.1%}",
        ]
        for i in order[:_SHOWN]
    ]
    heads = ["variable", ">accuracy", ">commonest", ">nats", ">entropy", ">explained"]
    show_table(console, "Each variable, predicted from the others", heads, rows)
    say(
        console,
        "Accuracy compares with the share of the commonest category, nats with the entropy; "
        "explained is the share of the entropy that the other variables explain.",
    )
    if len(order) > _SHOWN:
        say(console, f"... and {len(order) - _SHOWN:,} variables predicted worse; --json has all.")
    error = found.standard_error
    spread = "" if error is None else f" (standard error {error:.2g})"
    say(
        console,
        f"Mean log-pseudolikelihood of {counted(len(found.rows), 'row')}: "
        f"[bold]{found.mean:.4f}[/] nats{spread}, against {found.baseline:.4f} for the "
        "frequencies of these rows alone; nearer to zero is better.",
    )
