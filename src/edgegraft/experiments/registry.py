"""Every experiment by its name, in the order of the paper."""

from __future__ import annotations

from edgegraft.experiments import reservoir
from edgegraft.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (reservoir.EXPERIMENT,)
}
