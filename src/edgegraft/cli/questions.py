"""Commands that ask a model: ``query``, ``sample`` and ``infer``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from edgegraft.cli.console import give, refuse_overwriting, reported, require_files, say, warned
from edgegraft.cli.options import AsJson, Engine, Force, Given, Jobs, Model, Quiet, Seed
from edgegraft.cli.tasks import EngineName, Sampler, Task
from edgegraft.cli.wording import counted


def query(
    model: Model,
    given: Given = None,
    of: Annotated[
        list[str] | None,
        typer.Option("--of", help="Variables to ask for, by commas, or repeat. All by default."),
    ] = None,
    likeliest: Annotated[
        bool, typer.Option("--likeliest", help="The likeliest joint state, not probabilities.")
    ] = False,
    engine: Engine = EngineName.AUTO,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Ask how probable categories are, given others."""
    with reported() as console, warned(console):
        require_files(model)
        from edgegraft.cli.answers import ask_marginals, ask_state, show_marginals, show_state
        from edgegraft.cli.evidence import parse_given, parse_variables
        from edgegraft.model import load

        known = load(model)
        evidence = parse_given(known.schema, given or [])
        asked = parse_variables(known.schema, of or [], "--of")
        wanted = asked or [name for name in known.names if name not in evidence]
        if likeliest:
            state = ask_state(known, evidence, wanted, engine.value)
            give(state) if as_json else show_state(console, state)
        else:
            found = ask_marginals(known, evidence, wanted, engine.value, seed)
            give(found) if as_json else show_marginals(console, found)


def sample(
    model: Model,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many.")] = 10,
    given: Given = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .csv, .tsv (also .gz) or .parquet file; stdout by default."
        ),
    ] = None,
    engine: Annotated[Sampler, typer.Option(help="How to draw.")] = Sampler.AUTO,
    seed: Seed = 0,
    jobs: Jobs = -1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Draw rows from a model; binned columns get the middle of their bin."""
    with reported(quiet) as console, warned(console):
        require_files(model)
        refuse_overwriting(output, force, (model,))
        from edgegraft.cli.evidence import parse_given
        from edgegraft.cli.row_files import check_format, write_rows
        from edgegraft.ingest.labels import labels
        from edgegraft.model import load

        check_format(output)
        known = load(model)
        codes = known.sample_codes(
            rows,
            parse_given(known.schema, given or []),
            engine=engine.value,
            random_state=seed,
            n_jobs=jobs,
        )
        write_rows(output, labels(known.schema, codes))
        if output is not None:
            say(console, f"{counted(rows, 'row')} in [bold]{escape(str(output))}[/].")


def infer(
    file: Annotated[Path, typer.Argument(help="A UAI model file (.uai, may be gzipped).")],
    task: Annotated[
        Task, typer.Option(case_sensitive=False, help="log10 Z, marginals or likeliest state.")
    ],
    evidence: Annotated[
        Path | None, typer.Option(help="A UAI evidence file.", show_default=False)
    ] = None,
    engine: Engine = EngineName.AUTO,
) -> None:
    """Answer a task of the UAI competitions, in their format, on stdout."""
    with reported() as console, warned(console):
        require_files(file, evidence)
        from edgegraft.cli.infer import answer
        from edgegraft.io import model_from_uai, read_evidence

        observed = {} if evidence is None else read_evidence(evidence)
        sys.stdout.write(answer(model_from_uai(file), task, observed, engine.value))
