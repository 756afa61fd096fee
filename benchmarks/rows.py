"""A measurement beside that of a rival, and how both are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Row:
    """One line of a table: our figure, the rival's, and their ratio.

    Attributes
    ----------
    work : str
        What was done.
    ours, theirs : float
        The two figures in `unit`; `theirs` is None if the rival has none.
    rival : str
        Name of the rival, or of the value we compare with.
    unit : str
        Such as "s", "us" or "updates/s".
    target : float or None
        The ratio to reach.
    notes : str
        Conditions that matter for the figures.
    higher_is_better : bool
        True for rates, false for times.
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
        """Factor by which our figure is better."""
        if self.theirs is None:
            return None
        return self.ours / self.theirs if self.higher_is_better else self.theirs / self.ours


def best_of(repeats: int, *sides: Callable[[], object]) -> list[float]:
    """Return the shortest time of each side in seconds, over interleaved repeats.

    Interleaving exposes both sides equally to other work on the machine.
    """
    best = [float("inf")] * len(sides)
    for _ in range(repeats):
        for k, side in enumerate(sides):
            started = perf_counter()
            side()
            best[k] = min(best[k], perf_counter() - started)
    return best


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, with notes below."""
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
