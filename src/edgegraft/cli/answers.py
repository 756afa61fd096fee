"""What commands about rows and networks compute, show and write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console

from edgegraft import report
from edgegraft.cli.console import SCREEN, cell, say, show_table, wrote
from edgegraft.cli.model_commands import save_picture
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import DataError, counted, listing
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.output import as_text, write_rows
from edgegraft.ingest.rows import read_codes, read_weights
from edgegraft.model import PairwiseMRF, read_details
from edgegraft.study import Comparison, NetworkReading, PowerPlan
from edgegraft.study.columns import plain_columns
from edgegraft.study.predictability import predictability
from edgegraft.table.arrow import labels

Json = dict[str, Any]
Columns = dict[str, Any]
_ENDS = ["first", "second"]
_HEADS = {"r2": "R²", "p_value": "p-value", "q_value": "q-value", "usual": "commonest"}
_SCORES = (  # head, key and sign of a score
    ("accuracy", "accuracy", 1),
    ("commonest", "baseline_accuracy", 1),
    ("nats", "mean_log_probability", -1),
    ("entropy", "baseline_log_probability", -1),
    ("explained", "explained", 1),
    ("R²", "r2", 1),
)


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
    model: PairwiseMRF, path: Path, reading: ReadOptions, method: Literal["map", "draw"], seed: int
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
    They are compared with a guess that knows only how common answers are.
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
        "baseline_accuracy": found["baseline_accuracy"],
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
    variables = found["by_variable"].items()
    known = [(name, own) for name, own in variables if own["mean_log_probability"] is not None]
    known.sort(key=lambda item: 1.0 if item[1]["explained"] is None else -item[1]["explained"])
    columns: list[tuple[str, list[Any]]] = [
        ("variable", [name for name, _ in known[: SCREEN.rows]])
    ]
    for head, key, sign in _SCORES:
        values = [own[key] for _, own in known[: SCREEN.rows]]
        columns.append((head, [v if v is None else sign * round(v, 4) + 0.0 for v in values]))
    show_table(console, "Each variable, predicted from the others", columns)
    say(
        console,
        "Accuracy compares with the share of the commonest category, nats with the entropy; "
        "explained is the share of the entropy that the other variables explain, R² the share of "
        "the variance (numbers, ordered and two-valued columns).",
    )
    if len(known) > SCREEN.rows:
        say(
            console,
            f"... and {len(known) - SCREEN.rows:,} variables predicted worse; --json has all.",
        )
    error = found["standard_error"]
    spread = "" if error is None else f" (standard error {error:.2g})"
    say(
        console,
        f"Mean log-pseudolikelihood of {counted(found['rows'], 'row')}: "
        f"[bold]{found['mean_log_pseudolikelihood']:.4f}[/] nats{spread}, against "
        f"{found['baseline']:.4f} for the frequencies of these rows alone; nearer to zero is "
        "better.",
    )


def write_answer(
    console: Console,
    table: tuple[Path | None, Columns],
    picture: tuple[Path | None, Callable[[], Any]],
    page: tuple[Path | None, Callable[[Path], None]] = (None, lambda path: None),
) -> None:
    """Write what was asked for of an answer: columns, a picture, a page."""
    if table[0] is not None:
        write_rows(table[0], plain_columns(table[1]))
        wrote(console, "The table", table[0])
    if picture[0] is not None:
        save_picture(picture[1](), picture[0])
        wrote(console, "The picture", picture[0])
    if page[0] is not None:
        page[1](page[0])
        wrote(console, "The report", page[0])


def show_comparison(console: Console, found: Comparison, top: int) -> None:
    """Show a comparison to people."""
    sizes = ", ".join(
        f"{cell(name)} ({counted(size, 'row')})"
        for name, size in zip(found.groups, found.sizes, strict=True)
    )
    say(console, f"Groups: {sizes}")
    by = counted(found.n_permutations, "permutation") if found.n_permutations else "tests of edges"
    say(console, f"[bold]All edges equal in all groups: p = {found.p_value:.3g}[/] (by {by})")
    n = len(found.edges["first"])
    names = [f"effect_{name}" for name in found.groups]
    names += ["difference", "p_value", "q_value", "p_permutation"]
    title = f"Edges that differ: {found.n_different:,} of {n:,} pairs; the clearest first"
    _show(console, title, found.edges, _ENDS, names, np.arange(n)[:top])
    order = np.argsort(found.variables["p_value"], kind="stable")[:top]
    numbers = ["n_edges", "n_different", "p_value", "q_value"]
    _show(console, "Variables", found.variables, ["name"], numbers, order)


def write_compared_page(found: Comparison, source: str, path: Path) -> None:
    """Write a page about groups compared."""
    title = f"{source}: {' and '.join(found.groups)} compared"
    report.write_report(path, found.first_model(), comparison=found, title=title)


def show_reading(console: Console, found: NetworkReading, top: int) -> None:
    """Show what was read to people."""
    variables, edges = found.variables, found.edges
    order = np.argsort(-variables["strength"], kind="stable")
    numbers = [
        "community",
        "n_edges",
        "strength",
        "influence",
        "bridge",
        "accuracy",
        "baseline_accuracy",
    ]
    numbers += ["explained", "r2", "held_accuracy", "held_explained"]
    title = f"{counted(len(order), 'variable')}, the strongest first"
    _show(console, title, variables, ["name"], numbers, order[:top])
    numbers = ["effect", "low", "high", "q_value", "replication_probability"]
    strongest = np.argsort(-np.abs(edges["effect"]), kind="stable")
    title = "Edges, with intervals of 95 %"
    _show(console, title, edges, _ENDS, numbers, strongest[:top])
    for name, share in found.coefficient.items():
        say(
            console,
            f"{share:.0%} of the rows can be dropped and {name} still correlates .7 with its "
            "values for all rows (chance 95 %).",
        )
    if found.absent and len(found.absent["effect_upper_bound"]):
        excluded = found.absent["effect_upper_bound"]
        say(
            console,
            f"{counted(len(excluded), 'pair')} without an edge: the rows exclude effects above "
            f"{np.median(excluded):.2f} for half of them and above {excluded.max():.2f} for all.",
        )


def write_read_page(found: NetworkReading, model: Path, path: Path) -> None:
    """Write a page about a network that was read from a file."""
    title, details = f"The network of {model.name}, read", read_details(model).details
    report.write_report(path, found.model, details=details, reading=found, title=title)


def show_plan(console: Console, found: PowerPlan, top: int) -> None:
    """Show how many rows are needed."""
    total = f"{found.rows:,.0f} rows" if np.isfinite(found.rows) else "No number of rows"
    say(
        console,
        f"[bold]{total}[/] for {found.power:.0%} of {counted(found.n_edges, 'edge')} at a false "
        f"discovery rate of {found.fdr:g} over {counted(found.n_pairs, 'pair')}",
    )
    title = "Expected share of edges found" + (", with intervals of 95 %" if found.now else "")
    first = np.arange(min(SCREEN.rows, len(found.curve["rows"])))
    names = ["rows", "power", "power_low", "power_high", "simulated"]
    _show(console, title, found.curve, [], names, first)
    if found.now is None:
        return
    order = np.argsort(found.edges["rows"], kind="stable")[::-1]
    numbers = ["rows", "power_now", "power_twice", "kept"]
    title = f"Rows needed per edge; the fit had {found.now:,}"
    needed = [rows if np.isfinite(rows) else "never enough" for rows in found.edges["rows"]]
    _show(console, title, found.edges | {"rows": needed}, _ENDS, numbers, order[:top])
    if settled := [f"{cell(a)} -- {cell(b)}" for a, b in found.settled_by_twice()]:
        say(console, f"Not edges yet, but probably with twice the rows: {', '.join(settled)}")


def _show(
    console: Console,
    title: str,
    columns: Columns,
    names: list[str],
    numbers: list[str],
    order: Integers,
) -> None:
    """Show some rows of columns: names of variables, then the numbers that there are."""
    if len(order):
        heads = [("variable", name) for name in names]
        heads += [
            (_HEADS.get(name, name.replace("_", " ")), name) for name in numbers if name in columns
        ]
        show_table(
            console, title, [(head, [columns[name][k] for k in order]) for head, name in heads]
        )
