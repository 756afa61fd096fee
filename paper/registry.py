"""Every experiment by its name, in the order of the paper."""

from __future__ import annotations

from paper import complexity, convergence, curves, grid, heuristics, real, reservoir
from paper.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        reservoir.EXPERIMENT,
        complexity.EXPERIMENT,
        convergence.EXPERIMENT,
        curves.OBJECTIVE,
        curves.NLPL,
        curves.RECALL,
        heuristics.EXPERIMENT,
        real.JESTER,
        real.YUMMLY,
        grid.EXPERIMENT,
    )
}
