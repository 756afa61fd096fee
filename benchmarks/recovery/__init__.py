"""How many rows? The least number with which a method finds the exact graph in every data set.

    python -m benchmarks recovery

The protocol of Lokhov et al. (2018), also used for SLIDE (2025): the least N at which all of 45
data sets give exactly the true edges. First N doubles until the first few data sets are exact, then
it rises from half of that by a quarter of an octave until all are. One failure ends an N, and the
data set that failed is tried first at the next one. All methods see the same data sets. A method
that takes longer than its time at a point is given up there. Points and methods are measured in as
many processes as there are cores.

Results are kept in ``build/recovery.json``, and a run that was ended goes on where it was; delete
the file to measure again.
"""

from __future__ import annotations

import json
import zlib
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks.parallel import each
from benchmarks.recovery.methods import METHODS, Method
from benchmarks.recovery.models import POINTS, Point

FEWEST, STEP = 64, 2**0.25
FIRST = 5  # data sets of the doubling
SECONDS = 120.0  # of the processor, for one method at one point
STORE = Path(__file__).resolve().parents[2] / "build" / "recovery.json"


class Least(NamedTuple):
    """The least number of rows, or the number up to which there was none."""

    rows: int
    exact: bool  # whether all data sets were exact at `rows`
    late: bool  # whether time ended the search
    seconds: float


Results = dict[str, dict[str, Least]]  # by point and method


class _Trial:
    """Data sets of a point, in the order of trial; the last failure comes first."""

    def __init__(self, point: Point, method: Method, sets: int) -> None:
        self._point, self._method, self._order = point, method, list(range(sets))
        self._started = process_time()

    @property
    def seconds(self) -> float:
        return process_time() - self._started

    @property
    def late(self) -> bool:
        return self.seconds > SECONDS

    def exact(self, n_rows: int, sets: int) -> bool:
        """Return whether the first data sets are exact; False if time runs out."""
        for k in self._order[:sets]:
            rng = np.random.default_rng([zlib.crc32(self._point.name.encode()), k, n_rows])
            sample = self._point.draw(rng, n_rows)
            if self.late or self._method.recover(sample) != sample.edges:
                self._order.remove(k)
                self._order.insert(0, k)
                return False
        return True


def least_rows(method: Method, point: Point, sets: int) -> Least:
    """Return the least number of rows with which a method is exact in all data sets."""
    trial = _Trial(point, method, sets)
    octave = 0
    while FEWEST << octave <= point.max_rows and not trial.late:
        if trial.exact(FEWEST << octave, min(FIRST, sets)):
            break
        octave += 1
    quarter = 4 * max(octave - 1, 0)
    while (n := round(FEWEST * STEP**quarter)) <= point.max_rows and not trial.late:
        if trial.exact(n, sets):
            return Least(n, True, False, trial.seconds)
        quarter += 1
    return Least(round(FEWEST * STEP ** max(quarter - 1, 0)), False, trial.late, trial.seconds)


def run(scale: float = 1.0) -> Results:
    """Measure what is not yet known; `scale` shrinks the number of data sets, and keeps nothing."""
    found: Results = {} if scale != 1.0 else _load()
    able = [m for m in METHODS if not m.needs or find_spec(m.needs) is not None]
    tasks = [
        (method.name, point.name, scale)
        for method in able
        for point in POINTS
        if method.suits(point.n_states, point.n_columns)
        and method.name not in found.get(point.name, {})
    ]
    for (method_name, point_name, _), least in each(_measure, tasks):
        found.setdefault(point_name, {})[method_name] = least
        if scale == 1.0:
            STORE.parent.mkdir(exist_ok=True)
            STORE.write_text(json.dumps(found))
    return found


def _measure(task: tuple[str, str, float]) -> Least:
    method_name, point_name, scale = task
    method = next(m for m in METHODS if m.name == method_name)
    point = next(p for p in POINTS if p.name == point_name)
    return least_rows(method, point, max(1, round(point.sets * scale)))


def _load() -> Results:
    if not STORE.exists():
        return {}
    stored = json.loads(STORE.read_text())
    return {
        point: {method: Least(*least) for method, least in by_method.items()}
        for point, by_method in stored.items()
    }


def as_markdown(results: Results) -> str:
    """Return the tables of a run: binary columns, more states, and what the methods are."""
    measured = [point for point in POINTS if results.get(point.name)]
    binary = [point for point in measured if point.n_states == 2]
    others = [point for point in measured if point.n_states > 2]
    parts = [_table(binary, results), _compared(binary, results)]
    parts += [_table(others, results)] if others else []
    lines = ["| method | what it is | told beside the rows |", "| --- | --- | --- |"]
    lines += [f"| {m.name} | {m.about} | {m.told or 'nothing'} |" for m in METHODS]
    return "\n\n".join([*parts, "\n".join(lines)])


def _table(points: list[Point], results: Results) -> str:
    shown = [m.name for m in METHODS if any(m.name in results.get(p.name, {}) for p in points)]
    lines = [
        "| " + " | ".join(["model, coupling", "data sets", *shown]) + " |",
        "| --- " + "| ---: " * (len(shown) + 1) + "|",
    ]
    for point in points:
        known = results.get(point.name, {})
        exact = [least.rows for least in known.values() if least.exact]
        best = min(exact) if len(known) > 1 and exact else 0
        cells = [_cell(known.get(name), best) for name in shown]
        lines.append("| " + " | ".join([point.name, str(point.sets), *cells]) + " |")
    return "\n".join(lines)


def _cell(least: Least | None, best: int) -> str:
    if least is None:
        return ""
    if not least.exact:
        return f"> {least.rows:,}{' (time)' if least.late else ''}"
    return f"**{least.rows:,}**" if least.rows == best else f"{least.rows:,}"


def _compared(points: list[Point], results: Results) -> str:
    """Return on how many points we need at most the rows of each other method."""
    found = []
    for method in METHODS[1:]:
        both = [
            decided
            for point in points
            if (ours := results.get(point.name, {}).get(METHODS[0].name))
            and (other := results[point.name].get(method.name))
            and (decided := _at_most(ours, other)) is not None
        ]
        if both:
            found.append(f"{method.name} {sum(both)} of {len(both)}")
    return (
        f"Points on which {METHODS[0].name} needs at most as many rows, among those that the table "
        f"decides: {', '.join(found)}."
    )


def _at_most(ours: Least, other: Least) -> bool | None:
    """Return whether we need at most as many rows; None if time ended what would tell."""
    if ours.exact and (other.exact or ours.rows <= other.rows):
        return ours.rows <= other.rows
    if ours.exact:
        return None if other.late else True
    return False if other.exact and other.rows <= ours.rows else None
