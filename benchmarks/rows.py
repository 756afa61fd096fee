"""One measurement set beside a rival's, and how both are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One line of a table: our figure, the rival's, and how many times better ours is.

    Attributes
    ----------
    work : str
        What was done.
    ours, theirs : float
        The two figures in `unit`; `theirs` is None where the rival gave none.
    rival : str
        What we are set beside.
    unit : str
        "s", "us", "updates/s" and the like.
    target : float or None
        The ratio to reach.
    notes : str
        What a reader must know to judge the figures.
    higher_is_better : bool
        Rates are, times are not.
    """

    work: str
    ours: float
    rival: str
    theirs: float | None
    unit: str
    target: float | None = None
    notes: str = ""
    higher_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """How many times better our figure is."""
        if self.theirs is None:
            return None
        return self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours


def best_of(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """Return the least seconds of each side over interleaved repeats.

    Interleaving gives both sides the same share of a noisy machine's quiet moments.
    """
    best = [float("inf")] * len(sides)
    for _ in range(repeats):
        for k, side in enumerate(sides):
            started = perf_counter()
            side()
            best[k] = min(best[k], perf_counter() - started)
    return best


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, notes below."""
    lines = [
        "| work | edgegraft | rival | its figure | ratio | target |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    notes = []
    for row in rows:
        mark = ""
        if row.notes:
            notes.append(row.notes)
            mark = f" [{len(notes)}]"
        lines.append(
            f"| {row.work}{mark} | {_figure(row.ours)} {row.unit} | {row.rival} "
            f"| {_figure(row.theirs)} {row.unit if row.theirs is not None else ''} "
            f"| {_figure(row.ratio)} | {_figure(row.target)} |"
        )
    return "\n".join(lines + [""] + [f"{k}. {note}" for k, note in enumerate(notes, 1)])


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
