"""Belief propagation that counts its messages, for the complexity table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from edgegraft.core.types import Floats
from edgegraft.inference import BeliefPropagation
from edgegraft.inference.engine import Info, Marginals
from edgegraft.inference.messages import MessageState


@dataclass(frozen=True)
class CountedPropagation(BeliefPropagation):
    """Belief propagation that records the number of messages of every run.

    Attributes
    ----------
    updates : list of int
        Number of messages computed in each run so far.

    Examples
    --------
    >>> from edgegraft.core import Layout
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2)])
    >>> engine = CountedPropagation()
    >>> theta = np.zeros(layout.n_parameters)
    >>> _, state, _ = engine.run(theta, engine.init(layout))
    >>> len(engine.updates)
    1
    """

    updates: list[int] = field(default_factory=list, compare=False, repr=False)

    def run(
        self, theta: Floats, state: MessageState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, MessageState, Info]:
        """Run, and record the number of messages."""
        answer = super().run(theta, state, rng)
        self.updates.append(int((answer[2].diagnostics or {})["message_updates"]))
        return answer
