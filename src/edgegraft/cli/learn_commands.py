"""The commands ``learn`` and ``resume``, and what they were asked for, kept beside a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgegraft.cli import options as opt
from edgegraft.cli.console import (
    refuse_overwriting,
    reported,
    require_folder,
    require_report,
    require_table,
)
from edgegraft.config import NETWORK, RUN, Plan
from edgegraft.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.ingest.sources import OnRows

_VERSION = 1
READING = opt.reading(but=["unseen"])
LEARNING = opt.flagged(Plan)
SETTINGS = (*READING, *LEARNING)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to read, how to learn, and where the model goes. Paths are absolute."""

    data: str  # a file, a folder of files or a pattern
    output: str
    settings: dict[str, Any]  # those of reading and learning that have an option
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
        apart = self._apart()
        if apart:
            columns = reading["columns"]
            reading["columns"] = columns and [name for name in columns if name not in apart]
            reading["drop"] = [*(reading["drop"] or ()), *apart]
        return ReadOptions(
            **reading,
            n_jobs=resolve_jobs(self.settings["n_jobs"]),
            sample_rows=self.sample_rows,
            on_rows=on_rows,
        )

    def check(self) -> None:
        """Refuse settings that are out of bounds, do not go together or are not to be had here."""
        from edgegraft.device import find_device
        from edgegraft.grafting.pair_rules import PairRules

        find_device(self.plan().device)
        PairRules.read(self.settings["rules"], ())
        self.read_options()

    def plan(self) -> Plan:
        """Return the plan of learning; settings that do not go together are refused."""
        return Plan(**{setting.name: self.settings[setting.name] for setting in LEARNING})

    def kept(self) -> dict[str, Any]:
        """Return the settings that a model file keeps besides those of the plan."""
        reading = {opt.key_of(s): self.settings[s.name] for s in READING if s.cells}
        design = {name: getattr(self, name) for name in ("strata", "clusters")}
        given = {name: column for name, column in design.items() if column is not None}
        return reading | {"weights": self.weights, "bootstrap": self.bootstrap} | given

    def dropped(self) -> dict[str, str]:
        """Return why columns are not in the model."""
        dropped = dict.fromkeys(self.settings["drop"] or [], "left out by --drop")
        return dropped | self._apart()

    def _apart(self) -> dict[str, str]:
        """Return the columns that describe the rows and are not in the model, and why."""
        columns = {
            self.weights: "the weights of the rows",
            self.strata: "the strata of the sample",
            self.clusters: "the clusters of the sample",
        }
        return {name: why for name, why in columns.items() if name is not None}

    @staticmethod
    def beside(checkpoint: Path) -> Path:
        """Return the path at which the request of a checkpoint is kept."""
        return checkpoint.with_name(checkpoint.name + ".json")

    def write(self, checkpoint: Path) -> None:
        """Keep the request beside a checkpoint."""
        from edgegraft.core.atomic import replacing

        content = {"edgegraft learn": _VERSION, **vars(self)}
        del content["settings"]
        for setting in SETTINGS:
            value = self.settings[setting.name]
            none = value is None and setting.default is not None
            content[opt.key_of(setting)] = "none" if none else value
        with replacing(self.beside(checkpoint)) as file:
            file.write((json.dumps(content, indent=2) + "\n").encode())

    @classmethod
    def read(cls, checkpoint: Path) -> Request:
        """Return the request that was kept beside a checkpoint."""
        path = cls.beside(checkpoint)
        for file in (checkpoint, path):
            if not file.exists():
                raise FileNotFoundError(
                    f"there is no file '{file}': `edgegraft learn --checkpoint {checkpoint}` "
                    "writes it"
                )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            version = content.pop("edgegraft learn")
            if version != _VERSION:
                raise FileFormatError(f"'{path}' has version {version!r}, not {_VERSION}")
            settings = {}
            for setting in SETTINGS:
                value = content.pop(opt.key_of(setting))
                settings[setting.name] = None if value == "none" and setting.optional else value
            return cls(settings=settings, **content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(
                f"'{path}' is not what `edgegraft learn --checkpoint` writes ({error!r:.80})"
            ) from None


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
            help="A file to resume from, written during the search. Its options are beside it "
            "(.json).",
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
        named = [output, report, checkpoint]
        named += [None if checkpoint is None else request.beside(checkpoint)]
        written = [path for path in named if path is not None]
        for k, path in enumerate(written):
            refuse_overwriting(path, force, (*files, *written[:k]))
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


def resume(
    checkpoint: Annotated[Path, typer.Argument(help="What `learn --checkpoint` wrote.")],
    output: Annotated[
        Path | None,
        opt.output(help="The model file; by default that of `learn`."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data, if they have moved; the rows must be the same.")
    ] = None,
    max_edges: Annotated[
        int | None, typer.Option(min=0, help="Another budget of edges; those found count.")
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(min=0.0, help="Another budget of seconds; those before count."),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(help="Another limit of memory, such as '2 GiB'.")
    ] = None,
    jobs: opt.OtherJobs = None,
    top: opt.Top = 15,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
) -> None:
    """Resume a search that was interrupted or ran out of a budget.

    The data and all other options are those that the search was begun with.
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
        read = (*files, checkpoint, request.beside(checkpoint))
        refuse_overwriting(Path(request.output), force, read)
        if request.report is not None:
            require_report()
            refuse_overwriting(Path(request.report), force, read)
        from edgegraft.cli.learn_run import LearnRun

        LearnRun(request, console, top, as_json, checkpoint).run(resumed=True)
