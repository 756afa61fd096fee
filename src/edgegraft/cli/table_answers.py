"""Rows of a file under a model: how well they are predicted, and their missing cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

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

Json = dict[str, Any]
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
) -> tuple[dict[str, Any], int, str | None]:
    """Return the columns of a file with their missing cells filled, how many, and how.

    The last is None unless cells were filled by an approximation.
    """
    before = _codes(model, path, reading)
    rng = np.random.default_rng(seed)
    after = model.complete(before, method=method, random_state=rng)
    table = labels(model.schema, after.codes, rng if method == "draw" else None)
    with open_source(path, reading) as source:
        rows = source.read_all()
    columns: dict[str, Any] = dict(zip(rows.column_names, rows.columns, strict=True))
    for i, name in enumerate(model.names if reading.header else source.names):
        gaps = np.flatnonzero(before[:, i] < 0)
        if len(gaps):
            columns[name] = columns[name].to_pylist()
            filled = table.column(i).take(gaps).to_pylist()
            for row, value in zip(gaps.tolist(), filled, strict=True):
                columns[name][row] = as_text(value) if source.from_text else value
    return columns, int((before < 0).sum()), after.approximation


def scores(
    model: PairwiseMRF, path: Path, reading: ReadOptions, weights_column: str | None = None
) -> tuple[Floats, Json]:
    """Return how well a model predicts the known cells of a file: of each row, and all together.

    Rows have log-pseudolikelihoods, sums over their known cells in nats; all means are weighted.
    Beside them stands a guess that knows only how common answers are.
    """
    weights = None
    if weights_column is not None:
        weights = read_weights(path, weights_column, reading)
    codes = _codes(model, path, reading, weights_column)
    weights = np.ones(len(codes)) if weights is None else weights
    found = predictability(model, codes, weights)
    known = weights @ (codes >= 0) / weights.sum()
    rows = model.pseudo_log_likelihood(codes=codes)
    mean, n = float(np.average(rows, weights=weights)), float(weights.sum())
    squares = float(weights @ np.square(rows - mean))
    columns = {
        "mean_log_probability": -found["nats"],
        "baseline_log_probability": -found["entropy"],
        "explained": found["explained"],
        "accuracy": found["accuracy"],
        "baseline_accuracy": found["usual"],
        "r2": found["r2"],
    }
    return rows, {
        "rows": len(rows),
        "mean_log_pseudolikelihood": mean,
        # A row of weight 2 is two rows; there is none of a single row.
        "standard_error": float(np.sqrt(squares / (n - 1) / n)) if n > 1 else None,
        "baseline": -float(known @ np.nan_to_num(found["entropy"])),
        "by_variable": {
            name: {
                key: float(values[i]) if np.isfinite(values[i]) else None
                for key, values in columns.items()
            }
            for i, name in enumerate(model.names)
        },
    }


def show_scores(console: Console, found: Json) -> None:
    """Show the variables, those predicted best first, and the mean of the rows."""
    known = [
        (-1.0 if own["explained"] is None else own["explained"], name, own)
        for name, own in found["by_variable"].items()
        if own["mean_log_probability"] is not None
    ]
    known.sort(key=lambda item: -item[0])
    rows = [
        [
            cell(name),
            f"{own['accuracy']:.1%}",
            f"{own['baseline_accuracy']:.1%}",
            f"{-own['mean_log_probability']:.3f}",
            f"{-own['baseline_log_probability']:.3f}",
            *(
                "" if own[share] is None else f"{round(own[share], 3) + 0.0:.1%}"
                for share in ("explained", "r2")
            ),
        ]
        for _, name, own in known[:_SHOWN]
    ]
    heads = ["variable", ">accuracy", ">commonest", ">nats", ">entropy", ">explained", ">R²"]
    show_table(console, "Each variable, predicted from the others", heads, rows)
    say(
        console,
        "Accuracy compares with the share of the commonest category, nats with the entropy; "
        "explained is the share of the entropy that the other variables explain, R² that of the "
        "variance (numbers, ordered and two-valued columns).",
    )
    if len(known) > _SHOWN:
        say(console, f"... and {len(known) - _SHOWN:,} variables predicted worse; --json has all.")
    error = found["standard_error"]
    spread = "" if error is None else f" (standard error {error:.2g})"
    say(
        console,
        f"Mean log-pseudolikelihood of {counted(found['rows'], 'row')}: "
        f"[bold]{found['mean_log_pseudolikelihood']:.4f}[/] nats{spread}, against "
        f"{found['baseline']:.4f} for the frequencies of these rows alone; nearer to zero is "
        "better.",
    )
