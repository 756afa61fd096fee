"""The commands ``learn`` and ``resume``, and their request, which is stored with a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgegraft.cli import options as opt
from edgegraft.cli.console import reported
from edgegraft.cli.files import check_outputs, require_folder, require_report, require_table
from edgegraft.config import Plan
from edgegraft.config.declare import NETWORK, RUN
from edgegraft.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.ingest.sources import OnRows

_VERSION = 2
READING = opt.reading(but=["unseen"])
LEARNING = opt.flagged(Plan)
SETTINGS = (*READING, *LEARNING)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to read, how to learn, and where the model goes. Paths are absolute."""

    data: str  # a file, a folder of files or a pattern
    output: str
    settings: dict[str, Any]  # of reading and learning, by name, that have an option
    report: str | None = None
    weights: str | None = None  # a column, which is left out of the model
    strata: str | None = None  # likewise
    clusters: str | None = None
    bootstrap: int = 0  # replicates
    #: Rows of the sample that the search began with, which a resumed run must repeat; 0 for all
    #: rows in memory, None before they are read.
    sample_rows: int | None = None

    def read_options(self, on_rows: OnRows | None = None) -> ReadOptions:
        """Return how the rows are read, without the columns of their weights and design."""
        from edgegraft.core.threads import resolve_jobs
        from edgegraft.ingest.options import ReadOptions

        reading = {setting.name: self.settings[setting.name] for setting in READING}
        excluded = self._excluded()
        if excluded:
            columns = reading["columns"]
            reading["columns"] = columns and [name for name in columns if name not in excluded]
            reading["drop"] = [*(reading["drop"] or ()), *excluded]
        return ReadOptions(
            **reading,
            n_jobs=resolve_jobs(self.settings["n_jobs"]),
            sample_rows=self.sample_rows,
            on_rows=on_rows,
        )

    def check(self) -> None:
        """Refuse settings that are out of bounds, inconsistent or not available here."""
        from edgegraft.core.backend import find_backend
        from edgegraft.grafting.pair_rules import PairRules

        find_backend(self.plan().device)
        PairRules.read(self.settings["rules"], ())
        self.read_options()

    def plan(self) -> Plan:
        """Return the plan of learning; inconsistent settings are refused."""
        return Plan(**{setting.name: self.settings[setting.name] for setting in LEARNING})

    def kept(self) -> dict[str, Any]:
        """Return the settings that a model file has in addition to the plan."""
        reading = {opt.key_of(s): self.settings[s.name] for s in READING if s.cells}
        design = {name: getattr(self, name) for name in ("strata", "clusters")}
        given = {name: column for name, column in design.items() if column is not None}
        return reading | {"weights": self.weights, "bootstrap": self.bootstrap} | given

    def dropped(self) -> dict[str, str]:
        """Return why columns are not in the model."""
        return dict.fromkeys(self.settings["drop"] or [], "left out by --drop") | self._excluded()

    def _excluded(self) -> dict[str, str]:
        """Return the columns that describe the rows and are not in the model, and why."""
        uses = {"weights": "weights of the rows"}
        uses |= {name: f"{name} of the sample" for name in ("strata", "clusters")}
        columns = {getattr(self, name): f"the {use}" for name, use in uses.items()}
        return {name: why for name, why in columns.items() if name is not None}

    @staticmethod
    def path_for(checkpoint: Path) -> Path:
        """Return the path of the request of a checkpoint."""
        return checkpoint.with_name(checkpoint.name + ".json")

    def write(self, checkpoint: Path) -> None:
        """Store the request with a checkpoint."""
        from edgegraft.core.atomic import replace_file

        content = json.dumps({"edgegraft learn": _VERSION, **vars(self)}, indent=2)
        replace_file(self.path_for(checkpoint), content + "\n")

    @classmethod
    def read(cls, checkpoint: Path) -> Request:
        """Return the request that was stored with a checkpoint."""
        path = cls.path_for(checkpoint)
        for file in (checkpoint, path):
            if not file.exists():
                raise FileNotFoundError(
                    f"there is no file '{file}': `edgegraft learn --checkpoint {checkpoint}` "
                    "writes it"
                )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = content.pop("edgegraft learn")
            request = cls(**content)
            if version == _VERSION and set(request.settings) == {own.name for own in SETTINGS}:
                return request
            fault = f"its version is {version!r}, not {_VERSION}"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            fault = f"{error!r:.80}"
        raise FileFormatError(
            f"'{path}' is not what `edgegraft learn --checkpoint` writes: {fault}"
        )


@opt.with_options(SETTINGS)
def learn(
    context: typer.Context,
    data: opt.DataFiles,
    output: Annotated[
        Path | None,
        opt.output(
            help="The model file to write. By default the table's name with .edgegraft, in this "
            "folder.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="A page about the network to write (.html).", show_default=False),
    ] = None,
    weights: opt.Weights = None,
    strata: opt.Strata = None,
    clusters: opt.Clusters = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            rich_help_panel=NETWORK,
            help="Bootstrap replicates, for how often an edge is found again. The table then shows "
            "the share of the replicates that has each edge.",
        ),
    ] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=RUN,
            help="A file to resume from, written as stages end. Its options go to a "
            "second file (.json).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            rich_help_panel=RUN,
            help="Report memory and time that learning would take.",
        ),
    ] = False,
    top: opt.Top = 15,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Learn the network of a table's columns.

    Ctrl-C ends the search early and writes the model of the edges found so far.
    """
    with reported(quiet) as console:
        if context.args:  # a shell has replaced a pattern by files
            raise DataError(
                f"{len(context.args) + 1:,} names were given where one table is learned from: name "
                "the folder of its files, or put their pattern in quotes, such as 'rows/*.csv'"
            )
        files = require_table(data)
        output = _model_of(data) if output is None else output
        request = Request(
            data=str(data.absolute()),
            output=str(output.absolute()),
            report=None if report is None else str(report.absolute()),
            weights=weights,
            strata=strata,
            clusters=clusters,
            bootstrap=bootstrap,
            settings=opt.settings_from(SETTINGS, options),
        )
        if request.settings["cache_dir"] is not None:
            require_folder(Path(request.settings["cache_dir"]))
        request.check()
        if report is not None:
            require_report()
        if dry_run:
            from edgegraft.cli.learn_run import show_dry_run

            show_dry_run(request, console, as_json)
            return
        stored = None if checkpoint is None else request.path_for(checkpoint)
        check_outputs(output, report, checkpoint, stored, force=force, reads=files)
        from edgegraft.cli.learn_run import LearnRun

        LearnRun(request, console, top, as_json, checkpoint).run()


def _model_of(data: Path) -> Path:
    """Return a table's model file by default: ``survey.edgegraft`` of ``survey.csv.gz``."""
    if not data.exists():
        raise DataError(f"'{data}' stands for several files: name the model file with --output")
    name = data.resolve().name
    if data.is_file():
        name = Path(name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")).stem
    return Path(f"{name}.edgegraft")


def _check_within(checkpoint: Path, request: Request, output: Path | None) -> None:
    """Refuse outputs outside of a checkpoint's folder that only its second file names."""
    named = [request.report, *([request.output] if output is None else [])]
    folders = [request.settings["cache_dir"]]
    for path in (path for path in (*named, *folders) if path is not None):
        if not Path(path).resolve().is_relative_to(checkpoint.resolve().parent):
            raise DataError(
                f"'{Request.path_for(checkpoint)}' says to write to '{path}', outside of its "
                "folder: if that is right, add --force"
            )


def resume(
    checkpoint: Annotated[Path, typer.Argument(help="What `learn --checkpoint` wrote.")],
    output: Annotated[
        Path | None,
        opt.output(help="The model file to write; by default the one that `learn` was given."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data, if they have moved. The rows must be the same.")
    ] = None,
    max_edges: Annotated[
        int | None, typer.Option(min=0, help="A new budget of edges; edges found before count.")
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(min=0.0, help="A new budget of seconds; seconds spent before count."),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(help="A new limit of memory, such as '2 GiB'.")
    ] = None,
    jobs: opt.OtherJobs = None,
    top: opt.Top = 15,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
) -> None:
    """Resume a search that was interrupted or has spent a budget.

    The data and all other options stay as they were.
    """
    with reported(quiet) as console:
        kept = Request.read(checkpoint)
        others: dict[str, Any] = {"max_memory": max_memory, "n_jobs": jobs}
        others |= {"max_edges": max_edges, "max_time": max_time}
        request = replace(
            kept,
            data=kept.data if data is None else str(data.absolute()),
            output=kept.output if output is None else str(output.absolute()),
            settings=kept.settings | {k: v for k, v in others.items() if v is not None},
        )
        files = require_table(Path(request.data))
        if request.report is not None:
            require_report()
        if not force:
            _check_within(checkpoint, request, output)
        outputs = [Path(path) for path in (request.output, request.report) if path is not None]
        read = (*files, checkpoint, request.path_for(checkpoint))
        check_outputs(*outputs, force=force, reads=read)
        from edgegraft.cli.learn_run import LearnRun

        LearnRun(request, console, top, as_json, checkpoint).run(resumed=True)
