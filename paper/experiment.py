"""Definition of an experiment: cells, a pure function from a cell to rows, a figure, a table.

A cell holds everything that a run depends on (version, size, method, seed, time limit), so that its
rows can be saved and found again. Every experiment has two versions: ``paper``, the setting of the
paper, and ``ours``, the library's defaults.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scalar = str | int | float | bool | None
Row = dict[str, Scalar]


class Context(NamedTuple):
    """Resources of a run, which affect only its time."""

    data: Path | None = None  # folder of the public data
    n_jobs: int = 2


@dataclass(frozen=True)
class Cell:
    """One run; experiments add the parameters that theirs depend on.

    Parameters
    ----------
    version : str
        ``paper``, ``ours``, or a variant of one.
    max_time : float
        Seconds after which a search is cut off.

    Examples
    --------
    >>> Cell("paper", 10.0).name
    'paper-10-2b3c1af3'
    """

    version: str
    max_time: float

    def values(self) -> Row:
        """Return everything that the run depends on, as plain values."""
        return asdict(self)

    @property
    def name(self) -> str:
        """File name for the rows: readable, and unique for each cell."""
        values = self.values()
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
        words = (f"{v:g}" if isinstance(v, float) else str(v) for v in values.values() if v)
        slug = re.sub(r"[^a-z0-9.]+", "-", " ".join(words).lower()).strip("-")
        return f"{slug[:80]}-{digest}"


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper.

    Parameters
    ----------
    name : str
    claim : str
        What it shows, in one line.
    cells : function of bool
        Returns the runs; at small sizes if the argument is true.
    run : function of a cell and a Context
        Returns the rows of a cell.
    draw : function of rows
        Returns the figure.
    table : function of rows
        Returns the summary in Markdown.
    runs : str
        Name of the set of runs; experiments with the same name share their runs.
    public : str
        Name of the public data set that it needs, if any.
    """

    name: str
    claim: str
    cells: Callable[[bool], Sequence[Cell]]
    run: Callable[[Any, Context], list[Row]]
    draw: Callable[[list[Row]], Figure]
    table: Callable[[list[Row]], str]
    runs: str
    public: str = ""


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table; all columns except the first are right-aligned.

    Examples
    --------
    >>> print(markdown(["n", "s"], [["200", "1.5"]]))
    | n | s |
    | --- | ---: |
    | 200 | 1.5 |
    """
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))
