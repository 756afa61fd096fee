"""Grow a graph until nothing violates optimality, or a budget is spent.

    boost hubs -> fill the reservoir -> activate -> fit -> drop zeros -> rescore -> again

The same loop runs every strategy; :mod:`edgegraft.learn.parts` has what differs. Budgets and
observers are asked once a step; Ctrl-C ends the run after the current step with what was learned
so far.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from edgegraft.config import Settings
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.learn import steps
from edgegraft.learn.events import Observer, StopReason
from edgegraft.learn.state import Growth
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.search.priorities import rank_pairs

_SHOWN = 3  # pairs in a warning


def grow(
    objective: Objective,
    penalty: Penalty,
    settings: Settings | None = None,
    *,
    counts: PairCounts | None = None,
    observers: Sequence[Observer] = (),
) -> Growth:
    """Learn the edges and parameters of a model.

    Parameters
    ----------
    objective : Objective
        The loss, over the rows or counts to learn from.
    penalty : Penalty
        Its `penalty` is also the threshold of the activation test.
    settings : Settings, optional
    counts : PairCounts, optional
        Source of data-driven priorities (``priority="auto"``); without it the order is uniform.
    observers : sequence of Observer
        Told of every step; each may end the run.

    Returns
    -------
    Growth
        `model()` is the learned model, `reason` why the run ended, `events` its course.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(6, n_states=2, n_rows=3000, couplings="ising", random_state=0)
    >>> loss = Pseudolikelihood(PackedTable.from_codes(data.X.astype(int)))
    >>> found = grow(loss, Penalty(0.05))
    >>> sorted(map(tuple, found.model().edges.tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    >>> str(found.reason)
    'no pair violates optimality'
    """
    settings = settings or Settings()
    growth = Growth.begin(objective, penalty, settings)
    if settings.priority == "auto" and counts is not None and len(counts.schema) > 1:
        steps.queue(growth, rank_pairs(counts, growth.rng))
    return go_on(growth, observers)


def go_on(growth: Growth, observers: Sequence[Observer] = (), *, mark: bool = False) -> Growth:
    """Run the loop from wherever `growth` is to its end; `mark` begins with a checkpoint."""
    stopped = _tell(growth, observers, "start")
    if mark:
        steps.restart(growth)
        stopped |= _tell(growth, observers, "checkpoint")
    if stopped:
        growth.reason = StopReason.OBSERVER
    with _interruptible() as interrupted:
        while not growth.reason:
            growth.reason = _step(growth)
            if growth.reason:
                break
            stopped = _tell(growth, observers, "activation")
            if growth.n_activations % growth.settings.checkpoint_every == 0:
                steps.restart(growth)
                stopped |= _tell(growth, observers, "checkpoint")
            growth.reason = growth.spent or (StopReason.OBSERVER if stopped else None)
            if interrupted.is_set():
                growth.reason = StopReason.INTERRUPTED
        steps.fit(growth, final=True)
        steps.drop_zeros(growth)
    _tell(growth, observers, "end")
    return growth


def _step(growth: Growth) -> StopReason | None:
    """Take one step; return why there is none to take, or None."""
    if growth.full and not growth.parts.single_features:
        return growth.full
    if growth.n_sure and steps.begin(growth):
        return None
    steps.boost_hubs(growth)
    steps.fill(growth)
    if not steps.activate(growth):
        # Scores were those of parameters fitted in a hurry: look again at fitted ones.
        steps.fit(growth, final=True)
        steps.drop_zeros(growth)
        steps.fill(growth)
        if not steps.activate(growth):
            return growth.full or growth.spent or _conclude(growth)
    steps.drop_zeros(growth, moved=steps.fit(growth))
    steps.rescore(growth)
    return None


def _conclude(growth: Growth) -> StopReason:
    """Return why nothing is left to activate, with a warning where that is not optimality."""
    pairs = steps.given_up(growth)
    if not len(pairs):
        return StopReason.OPTIMAL
    names = growth.objective.schema.names
    shown = ", ".join(f"('{names[i]}', '{names[j]}')" for i, j in pairs[:_SHOWN].tolist())
    more = f" and {len(pairs) - _SHOWN:,} more" if len(pairs) > _SHOWN else ""
    warnings.warn(
        f"pairs whose scores violate optimality, and whose edges the fit sets back to zero "
        f"whenever they are activated, are left out: {shown}{more}. Their scores and the fit's "
        "gradients are different approximations: prefer exact inference where it is possible, or "
        "belief propagation with pair_method='product'",
        ConvergenceWarning,
        stacklevel=4,
    )
    return StopReason.GIVEN_UP


def _tell(growth: Growth, observers: Sequence[Observer], kind: str) -> bool:
    """Show a snapshot to every observer; tell whether one of them asks to stop."""
    event = growth.event(kind)
    growth.events.append(event)
    asked = [bool(observer.on_event(event, growth)) for observer in observers]
    return any(asked)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag; a second one interrupts at once."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    previous = signal.getsignal(signal.SIGINT) or signal.SIG_DFL

    def handle(number: int, frame: FrameType | None) -> None:
        flag.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)
