"""Commands that ask a model: ``query``, ``sample`` and ``infer``.

Answers name their engine and whether they are exact, in text as in JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from edgegraft.cli import options as opt
from edgegraft.cli.console import cell, give, results, say, say_approximation, show_table, wrote
from edgegraft.cli.files import working
from edgegraft.errors import ModelError, counted

if TYPE_CHECKING:
    from edgegraft.model import NodeMarginals, PairwiseMRF

Json = dict[str, Any]


def query(
    model: opt.ModelFile,
    given: opt.Given = None,
    of: Annotated[
        list[str] | None,
        typer.Option("--of", help="Variables to ask for, separated by commas; all by default."),
    ] = None,
    likeliest: Annotated[
        bool,
        typer.Option("--likeliest", help="The most probable joint state instead of probabilities."),
    ] = False,
    engine: opt.Engine = "auto",
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Ask how probable categories are, given others."""
    with working(model) as console:
        from edgegraft.cli.summary import shares_of
        from edgegraft.cli.typed_evidence import parse_given, parse_variables
        from edgegraft.model import load, read_details

        known, details = load(model), read_details(model).details
        evidence = parse_given(known.schema, given or [])
        asked = parse_variables(known.schema, of or [], "--of")
        wanted = asked or [name for name in known.names if name not in evidence]
        if likeliest:
            found = ask_state(known, evidence, wanted, engine)
        else:
            found = ask_marginals(known, evidence, wanted, engine, seed)
            found["shares"] = details.get("shares")
        if as_json:
            give(found)
            say_approximation(console, found["approximation"])
            return
        out, exact = results(console), found["exact"]
        _show_state(out, found) if likeliest else _show_marginals(out, found)
        trust = "exact" if exact else f"an approximation ({escape(found['approximation'])})"
        by = "The state is" if likeliest else f"Answered by the engine '{found['engine']}':"
        say(out, f"{by} {trust}.")
        if not likeliest and shares_of(details):
            say(out, escape(shares_of(details)))


def ask_marginals(
    model: PairwiseMRF, given: Mapping[str, Any], of: Sequence[str], engine: str, seed: int
) -> Json:
    """Return the probabilities of the categories of variables, with evidence and without."""
    from edgegraft.model.evidence import with_evidence

    found = model.marginals(given, engine=engine, random_state=seed)
    found = with_evidence(found, model.schema, given)
    before = model.marginals(engine=engine, random_state=seed) if given else found
    return {
        "given": dict(given),
        # Lists, because categories need not be text.
        "probabilities": {
            name: [
                {"category": category, "probability": p, "without_evidence": q}
                for category, p, q in zip(
                    model.schema[name].categories,
                    found.array(name).tolist(),
                    before.array(name).tolist(),
                    strict=True,
                )
            ]
            for name in of
        },
        "numbers": _numbers(found, before, [name for name in of if name not in given]),
        "engine": found.engine.name,
        "exact": found.engine.exact,
        "approximation": found.approximation,
        "converged": bool(found.info.converged),
    }


def _numbers(found: NodeMarginals, before: NodeMarginals, of: Sequence[str]) -> Json:
    """Return mean and quantiles of the columns of numbers."""
    from edgegraft.table.numbers import numbers_of

    out = {}
    for name in of:
        if numbers_of(found.schema[name]) is not None:
            low, median, high = found.quantiles(name).tolist()
            out[name] = {
                "mean": found.mean(name),
                "quantile_05": low,
                "median": median,
                "quantile_95": high,
                "mean_without_evidence": before.mean(name),
            }
    return out


def ask_state(model: PairwiseMRF, given: Mapping[str, Any], of: Sequence[str], engine: str) -> Json:
    """Return the likeliest state, as far as it was asked for."""
    found = model.map(given, engine=engine)
    return {
        "given": dict(given),
        "state": {name: found[name] for name in of},
        "exact": found.exact,
        "approximation": found.approximation,
    }


def plain_number(value: float) -> str:
    """Return a number in about four digits, without an exponent if it has few.

    >>> [plain_number(x) for x in (12743.6, 0.03187, 1.25e-7, 3e9, -250)]
    ['12,744', '0.03187', '1.25e-07', '3e+09', '-250']
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"


def _show_marginals(console: Console, found: Json) -> None:
    states = [
        (name if k == 0 else "", state)
        for name, states in found["probabilities"].items()
        for k, state in enumerate(states)
    ]
    before = [state["without_evidence"] for _, state in states]
    chance = [state["probability"] for _, state in states]
    columns: list[tuple[str, list[Any]]] = [
        ("variable", [name for name, _ in states]),
        ("category", [str(state["category"]) for _, state in states]),
        ("probability", chance),
    ]
    if found["given"]:
        change = [p - q for p, q in zip(chance, before, strict=True)]
        columns += [("without evidence", before), ("change", change)]
    last = {k - 1 for k, (name, _) in enumerate(states) if name}
    show_table(console, _title("Probabilities", found["given"]), columns, last)
    if found["numbers"]:
        heads = ["mean", "5%", "median", "95%", "mean without evidence"]
        numbers = {
            name: [Text(plain_number(value), justify="right") for value in values.values()]
            for name, values in found["numbers"].items()
        }
        columns = [("variable", list(numbers))]
        for k, head in enumerate(heads if found["given"] else heads[:4]):
            columns.append((head, [values[k] for values in numbers.values()]))
        show_table(console, _title("Numbers", found["given"]), columns)


def _show_state(console: Console, found: Json) -> None:
    state = found["state"]
    title = _title("Likeliest joint state", found["given"])
    show_table(
        console, title, [("variable", list(state)), ("category", list(map(str, state.values())))]
    )
    say(console, "(All variables together; each alone may prefer another category.)")


def _title(what: str, given: Mapping[str, Any]) -> str:
    evidence = ", ".join(f"{cell(name)} = {cell(label)}" for name, label in given.items())
    return f"{what}, given {evidence}" if evidence else what


def sample(
    model: opt.ModelFile,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="Number of rows.")] = 10,
    given: opt.Given = None,
    output: Annotated[
        Path | None, opt.output(help="A .csv, .tsv (also .gz) or .parquet file; stdout by default.")
    ] = None,
    engine: Annotated[
        Literal["auto", "exact", "gibbs"], typer.Option(help="The engine that draws.")
    ] = "auto",
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Draw rows from a model.

    Columns of numbers get numbers that are drawn within their levels.
    """
    with working(model, rows=output, force=force, quiet=quiet) as console:
        from numpy.random import default_rng

        from edgegraft.cli.typed_evidence import parse_given
        from edgegraft.ingest.output import write_rows
        from edgegraft.model import load
        from edgegraft.table.arrow import labels

        known, rng = load(model), default_rng(seed)
        drawn = known.draw(
            rows,
            parse_given(known.schema, given or []),
            engine=engine,
            random_state=rng,
            n_jobs=jobs,
        )
        write_rows(output, labels(known.schema, drawn.codes, rng))
        say_approximation(console, drawn.approximation)
        if output is not None:
            wrote(console, counted(rows, "row"), output)


def infer(
    file: Annotated[Path, typer.Argument(help="A UAI model file (.uai, may be gzipped).")],
    task: Annotated[
        opt.UaiTask,
        typer.Option(case_sensitive=False, help="log10 Z, marginals or the most probable state."),
    ],
    evidence: Annotated[
        Path | None, typer.Option(help="A UAI evidence file.", show_default=False)
    ] = None,
    engine: opt.Engine = "auto",
) -> None:
    """Answer a task of the UAI competitions, in their format."""
    with working(file, evidence) as console:
        from edgegraft.io import model_from_uai, read_evidence

        observed = {} if evidence is None else read_evidence(evidence)
        text, approximation = answer_task(model_from_uai(file), task, observed, engine)
        sys.stdout.write(text)
        say_approximation(console, approximation)


def answer_task(
    model: PairwiseMRF, task: opt.UaiTask, evidence: Mapping[int, int], engine: str
) -> tuple[str, str | None]:
    """Return the answer in the competition's format, and how it was approximated if it was."""
    from edgegraft.io import format_map, format_mar, format_pr
    from edgegraft.model.evidence import with_evidence

    given = _named(model, evidence)
    if task == "PR":
        log_z = model.log_partition(given, engine=engine)
        return format_pr(float(log_z)), log_z.approximation
    if task == "MAP":
        state = model.map(given, engine=engine)
        return format_map(state.codes), state.approximation
    found = model.marginals(given, engine=engine)
    found = with_evidence(found, model.schema, given)
    return format_mar([found.array(name) for name in model.names]), found.approximation


def _named(model: PairwiseMRF, evidence: Mapping[int, int]) -> dict[str, int]:
    given = {}
    for i, code in evidence.items():
        if not 0 <= i < model.n_variables:
            raise ModelError(
                f"the evidence names variable {i}: the model has 0 to {model.n_variables - 1}"
            )
        given[model.names[i]] = code
    return given
