"""Everything that ``learn`` was asked for, in one value that is kept beside a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from edgegraft.cli.options import default_of, flagged, key_of
from edgegraft.config import FEATURE_STRATEGIES, Plan, TableOptions
from edgegraft.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.ingest.sources import OnRows

_VERSION = 1
READING = tuple(setting for setting in flagged(TableOptions) if setting.name != "unseen")
LEARNING = flagged(Plan)
_DECLARED = {"reading": READING, "learning": LEARNING}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to read, how to learn, and where the model goes. Paths are absolute."""

    data: str  # a file, a folder of files or a pattern
    output: str
    reading: dict[str, Any]  # settings of TableOptions that have an option
    learning: dict[str, Any]  # settings of Plan that have an option
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

        reading = dict(self.reading)
        apart = self._apart()
        if apart:
            columns = reading["columns"]
            reading["columns"] = columns and [name for name in columns if name not in apart]
            reading["drop"] = [*(reading["drop"] or ()), *apart]
        return ReadOptions(
            **reading,
            n_jobs=resolve_jobs(self.learning["n_jobs"]),
            sample_rows=self.sample_rows,
            on_rows=on_rows,
        )

    def check(self) -> None:
        """Refuse settings that are out of bounds, do not go together or are not to be had here."""
        from edgegraft.device import find_device
        from edgegraft.learn.pair_rules import PairRules

        find_device(self.plan().device)
        PairRules.read(self.learning["rules"], ())
        self.read_options()

    def plan(self) -> Plan:
        """Return the plan of learning; settings that do not go together are refused."""
        strategy = self.learning["strategy"]
        features = strategy in FEATURE_STRATEGIES
        if features and self.bootstrap:
            raise DataError(
                f"--bootstrap needs whole edges: --strategy {strategy} is of single features"
            )
        return Plan(**self.learning, relaxed=not features)

    def settings(self) -> dict[str, Any]:
        """Return the settings that a model file keeps besides those of the plan."""
        reading = {key_of(s): self.reading[s.name] for s in READING if s.cells}
        design = {name: getattr(self, name) for name in ("strata", "clusters")}
        given = {name: column for name, column in design.items() if column is not None}
        return reading | {"weights": self.weights, "bootstrap": self.bootstrap} | given

    def dropped(self) -> dict[str, str]:
        """Return why columns are not in the model."""
        dropped = dict.fromkeys(self.reading["drop"] or [], "left out by --drop")
        return dropped | self._apart()

    def _apart(self) -> dict[str, str]:
        """Return the columns that describe the rows and are not in the model, and why."""
        columns = {
            self.weights: "the weights of the rows",
            self.strata: "the strata of the sample",
            self.clusters: "the clusters of the sample",
        }
        return {name: why for name, why in columns.items() if name is not None}

    def changed(
        self,
        *,
        data: Path | None = None,
        output: Path | None = None,
        max_memory: str | None = None,
        **learning: Any,
    ) -> Request:
        """Return the request with other files or budgets, those that are not None."""
        given = {name: value for name, value in learning.items() if value is not None}
        memory = {} if max_memory is None else {"max_memory": max_memory}
        return replace(
            self,
            data=self.data if data is None else str(data.absolute()),
            output=self.output if output is None else str(output.absolute()),
            reading=self.reading | memory,
            learning=self.learning | given,
        )

    @staticmethod
    def beside(checkpoint: Path) -> Path:
        """Return the path at which the request of a checkpoint is kept."""
        return checkpoint.with_name(checkpoint.name + ".json")

    @staticmethod
    def rows_of(checkpoint: Path) -> Path:
        """Return the path at which the rows of a checkpoint are kept, until the run ends."""
        return checkpoint.with_name(checkpoint.name + ".rows")

    def advice(self, checkpoint: Path | None, interrupted: bool) -> str:
        """Return how to resume a search that was interrupted, or with twice its budgets."""
        if checkpoint is None:
            return "The search was interrupted. To be able to resume one, learn with --checkpoint."
        if interrupted:
            return f"The search was interrupted. Resume it with:\n  {resume_command(checkpoint)}"
        edges, time = self.learning["max_edges"], self.learning["max_time"]
        more = "" if edges is None else f" --max-edges {2 * max(1, edges)}"
        more += "" if time is None else f" --max-time {2 * max(1.0, time):g}"
        return f"Resume with a larger budget:\n  {resume_command(checkpoint)}{more}"

    def write(self, checkpoint: Path) -> None:
        """Keep the request beside a checkpoint."""
        from edgegraft.core.atomic import replacing

        content: dict[str, Any] = {"edgegraft learn": _VERSION}
        content |= {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _DECLARED}
        for group, settings in _DECLARED.items():
            for setting in settings:
                value = getattr(self, group)[setting.name]
                none = value is None and setting.default is not None
                content[key_of(setting)] = "none" if none else value
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
            return cls(**_grouped(content))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(
                f"'{path}' is not what `edgegraft learn --checkpoint` writes ({error!r:.80})"
            ) from None


def _grouped(content: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request from the content of its file."""
    rest: dict[str, Any] = dict(content)
    for group, settings in _DECLARED.items():
        values = {}
        for setting in settings:
            value = rest.pop(key_of(setting), "default")
            if value == "default":  # also what was once written for a rate that was not given
                value = default_of(setting)
            values[setting.name] = None if value == "none" and setting.optional else value
        rest[group] = values
    return rest


def resume_command(checkpoint: Path) -> str:
    """Return the command that resumes from a checkpoint."""
    return f"edgegraft resume {quote(str(checkpoint))} --force"
