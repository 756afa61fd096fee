"""All that `learn` is asked, in one value that can be kept beside a checkpoint."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edgegraft.errors import DataError, FileFormatError

if TYPE_CHECKING:
    from edgegraft.config import Plan
    from edgegraft.core.types import Floats
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.ingest.passes import OnRows

_VERSION = 1


@dataclass(frozen=True)
class Request:
    """What to read, how to learn, and where the model goes.

    Attributes
    ----------
    data, output, report : str
        Absolute paths, `data` also of a folder of files, or a pattern; without `report` no page
        is written.
    columns, drop, bins, missing, delimiter, header, encoding
        See :func:`edgegraft.ingest.pack`.
    weights : str, optional
        The column of row weights, which is left out of the model.
    penalty, ridge, max_edges, max_time, strategy, objective, seed
        See :class:`edgegraft.learn.Plan` and its settings.
    fdr : float, "none" or "default"
    bootstrap : int
        Replicates, 0 for none.
    jobs : int
        Threads; a limit of memory is shared out among them.
    max_memory, cache_dir, cache_size : str, optional
        See :class:`edgegraft.GraftedMRF`; the folder is an absolute path.
    sample_rows : int, optional
        How the rows were read, which a run that goes on must do again: the rows of the sample
        that the search began with, 0 for all rows in memory. None before they are read.
    """

    data: str
    output: str
    report: str | None = None
    columns: list[str] | None = None
    drop: list[str] | None = None
    bins: int | dict[str, int] | None = None
    missing: Sequence[str] = ()
    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf8"
    weights: str | None = None
    penalty: float | str = "auto"
    ridge: float | str = "auto"
    fdr: float | str = "default"
    max_edges: int | None = None
    max_time: float | None = None
    strategy: str = "best-choice"
    objective: str = "pseudolikelihood"
    bootstrap: int = 0
    seed: int = 0
    jobs: int = -1
    max_memory: str | None = None
    cache_dir: str | None = None
    cache_size: str | None = None
    sample_rows: int | None = None

    def options(self, on_rows: OnRows | None = None) -> ReadOptions:
        """Return how the data are read, without their weights."""
        from edgegraft.core.threads import resolve_jobs
        from edgegraft.ingest.options import ReadOptions

        columns, drop = self.columns, self.drop
        if self.weights is not None:
            columns = columns and [name for name in columns if name != self.weights]
            drop = [*(drop or ()), self.weights]
        return ReadOptions(
            columns=columns,
            drop=drop,
            bins=self.bins,
            missing_values=self.missing,
            delimiter=self.delimiter,
            header=self.header,
            encoding=self.encoding,
            n_jobs=resolve_jobs(self.jobs),
            max_memory=self.max_memory,
            cache_dir=self.cache_dir,
            cache_size=self.cache_size,
            sample_rows=self.sample_rows,
            on_rows=on_rows,
        )

    def row_weights(self) -> Floats | None:
        """Read the row weights, if there are any."""
        if self.weights is None:
            return None
        from edgegraft.cli.row_weights import read_weights

        return read_weights(Path(self.data), self.weights, self.options())

    def plan(self) -> Plan:
        """Return the plan; what does not go together is refused."""
        from edgegraft.config import Plan

        features = self.strategy.startswith("feature")
        if features and self.bootstrap:
            raise DataError(
                f"--bootstrap needs whole edges: --strategy {self.strategy} is of single features"
            )
        strategy: Any = self.strategy
        objective: Any = self.objective
        penalty: Any = self.penalty
        ridge: Any = self.ridge
        return Plan(
            strategy=strategy,
            relaxed=not features,
            max_edges=self.max_edges,
            max_time=self.max_time,
            random_state=self.seed,
            objective=objective,
            penalty=penalty,
            ridge=ridge,
            fdr=self.rate(Plan.fdr),
            n_jobs=self.jobs,
        )

    def rate(self, default: float | None) -> float | None:
        """Return the false discovery rate asked for, None for no cut."""
        if isinstance(self.fdr, str):
            return default if self.fdr == "default" else None
        return self.fdr

    def moved(self, data: Path | None, output: Path | None) -> Request:
        """Return the request with other files."""
        return replace(
            self,
            data=self.data if data is None else str(data.absolute()),
            output=self.output if output is None else str(output.absolute()),
        )

    def within(self, **budgets: float | str | None) -> Request:
        """Return the request with other budgets, where there are."""
        other: dict[str, Any] = {k: value for k, value in budgets.items() if value is not None}
        return replace(self, **other)

    @staticmethod
    def beside(checkpoint: Path) -> Path:
        """Return where the request of a checkpoint is kept."""
        return checkpoint.with_name(checkpoint.name + ".json")

    def write(self, checkpoint: Path) -> None:
        """Keep the request beside a checkpoint."""
        from edgegraft.io.atomic import replace_file

        content = {"edgegraft learn": _VERSION} | asdict(self)
        replace_file(self.beside(checkpoint), json.dumps(content, indent=2) + "\n")

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
            return cls(**content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(
                f"'{path}' is not what `edgegraft learn --checkpoint` writes ({error!r:.80})"
            ) from None


def parse_names(texts: Sequence[str] | None) -> list[str] | None:
    """Return names separated by commas, a name with a comma in it being quoted.

    Examples
    --------
    >>> parse_names(["age,sex", '"last, first"'])
    ['age', 'sex', 'last, first']
    """
    if not texts:
        return None
    names = [name for row in csv.reader(texts, skipinitialspace=True) for name in row]
    if "" in names or not all(text.strip() for text in texts):
        raise DataError(f"an empty name stands in {', '.join(map(repr, texts))}")
    return names


def parse_bins(texts: Sequence[str] | None) -> int | dict[str, int] | None:
    """Return a number of bins for all columns, or numbers by name.

    Examples
    --------
    >>> parse_bins(["5"]), parse_bins(["age=4", "income=6"])
    (5, {'age': 4, 'income': 6})
    """
    if not texts:
        return None
    if len(texts) == 1 and _whole(texts[0]) is not None:
        return _whole(texts[0])
    found = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        number = _whole(count)
        if not name or number is None:
            raise DataError(
                f"--bins {text!r} is neither a number of bins for all columns (given once) nor "
                "NAME=NUMBER"
            )
        found[name] = number
    return found


def parse_size(option: str, text: str | None) -> str | None:
    """Return a size in memory or on disk as it was written, if it is one.

    Examples
    --------
    >>> parse_size("max-memory", "2 GiB")
    '2 GiB'
    """
    if text is None:
        return None
    from edgegraft.ingest.memory import read_size

    try:
        read_size(text)
    except ValueError as error:
        raise DataError(f"--{option}: {error}") from None
    return text


def _whole(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def parse_level(option: str, text: str, word: Literal["auto", "none"]) -> float | str:
    """Return a number, or the one word that may stand for it.

    Examples
    --------
    >>> parse_level("fdr", "0.01", "none"), parse_level("fdr", "None", "none")
    (0.01, 'none')
    """
    if text.lower() == word:
        return word
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--{option} must be a number or '{word}', found {text!r}") from None
