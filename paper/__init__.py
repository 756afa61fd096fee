"""The paper's experiments as commands: ``python -m paper NAME``.

W. Chaabene and B. Huang, "Best-choice edge grafting for efficient structure learning of Markov
random fields" (2018).
"""

from paper.experiment import Cell, Context, Experiment, Row
from paper.registry import EXPERIMENTS
from paper.runner import Outcome, reproduce

__all__ = ["EXPERIMENTS", "Cell", "Context", "Experiment", "Outcome", "Row", "reproduce"]
