"""Run the cells without results, then write the table, the figure and the machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from edgegraft.errors import ConvergenceWarning
from edgegraft.report.style import require_matplotlib
from paper.experiment import Cell, Context, Experiment, Row
from paper.results import Results

OnCell = Callable[[Cell, int, int], None]


class Outcome(NamedTuple):
    """The results of an experiment."""

    rows: list[Row]
    n_cells: int
    n_run: int  # cells run now; the others were loaded
    seconds: float  # total of all cells, whenever they ran
    load: float  # largest load of any cell
    machines: list[Row]
    table: Path
    figure: Path


def reproduce(
    experiment: Experiment,
    folder: Path,
    context: Context | None = None,
    *,
    quick: bool = False,
    max_time: float | None = None,
    again: bool = False,
    on_cell: OnCell | None = None,
) -> Outcome:
    """Run the cells of an experiment that have no results yet, and write its outputs.

    Parameters
    ----------
    experiment : Experiment
    folder : path
        Receives ``NAME.csv``, ``NAME.png``, ``machine.json`` and one file per cell, as soon as the
        cell has run: after an interruption, the same call resumes.
    context : Context, optional
    quick : bool, default False
        Use small sizes.
    max_time : float, optional
        Time limit of every cell in seconds, instead of its own.
    again : bool, default False
        Also run cells that have results.
    on_cell : function of a cell, its number and the number of cells, optional
        Called before each run.

    Examples
    --------
    >>> import tempfile
    >>> from paper import EXPERIMENTS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = reproduce(EXPERIMENTS["reservoir"], Path(folder), quick=True)
    ...     once_more = reproduce(EXPERIMENTS["reservoir"], Path(folder), quick=True)
    >>> done.n_run == done.n_cells, once_more.n_run, once_more.rows == done.rows
    (True, 0, True)
    """
    require_matplotlib()
    context = context or Context()
    results = Results(folder)
    cells = list(experiment.cells(quick))
    if max_time is not None:
        cells = [replace(cell, max_time=max_time) for cell in cells]
    records, n_run = [], 0
    for number, cell in enumerate(cells, start=1):
        record = None if again else results.load(experiment.runs, cell)
        if record is None:
            if on_cell is not None:
                on_cell(cell, number, len(cells))
            started = perf_counter()
            with warnings.catch_warnings():
                # The rows state whether a run ended early.
                warnings.simplefilter("ignore", ConvergenceWarning)
                rows = experiment.run(cell, context)
            record = results.save(experiment.runs, cell, rows, perf_counter() - started)
            n_run += 1
        records.append(record)
    merged = [{**record["cell"], **row} for record in records for row in record["rows"]]
    machines = {str(record["machine"]): record["machine"] for record in records}
    table = results.write_table(experiment.name, merged)
    figure = results.write_figure(experiment.name, experiment.draw(merged))
    results.write_machines(experiment.name, records)
    seconds = sum(record["seconds"] for record in records)
    load = max(record["load"] for record in records)
    return Outcome(merged, len(cells), n_run, seconds, load, list(machines.values()), table, figure)
