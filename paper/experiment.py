"""What an experiment is: cells to run, a pure function from a cell to rows, a figure, a table.

A cell is one run with all that it depends on (version, size, method, seed, time limit), so its
rows can be kept and found again. Every experiment comes in two versions: ``paper``, the setting
that the paper states, and ``ours``, the library's defaults.
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
    """What a run may use and its result does not depend on, times aside."""

    data: Path | None = None  # folder of the public data
    n_jobs: int = 2


@dataclass(frozen=True)
class Cell:
    """One run; experiments add what theirs depend on.

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
        """Return all that the run depends on, as plain values."""
        return asdict(self)

    @property
    def name(self) -> str:
        """Name of a file for the rows: readable, and different for different cells."""
        values = self.values()
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
        said = (f"{v:g}" if isinstance(v, float) else str(v) for v in values.values() if v)
        words = re.sub(r"[^a-z0-9.]+", "-", " ".join(said).lower()).strip("-")
        return f"{words[:80]}-{digest}"


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, to be run again.

    Parameters
    ----------
    name : str
    claim : str
        What it shows, in one line.
    cells : function of bool
        The runs; at small sizes where the argument is true.
    run : function of a cell and a Context
        Returns the rows of a cell.
    draw : function of rows
        Returns the figure.
    table : function of rows
        Returns the summary in Markdown.
    runs : str
        Whose cells these are; experiments with the same ones share their runs.
    public : str
        Public data that it needs, if any.
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
    """Return a table; all columns but the first are to the right.

    Examples
    --------
    >>> print(markdown(["n", "s"], [["200", "1.5"]]))
    | n | s |
    | --- | ---: |
    | 200 | 1.5 |
    """
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines))
