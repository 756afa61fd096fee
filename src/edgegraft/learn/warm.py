"""Begin a run where another one ended: other rows, another penalty, the same variables.

The graph and its parameters are kept, and pairs that were tested before are queued by how near
they came to violating optimality; nothing else is assumed to hold. Counters and events go on. This
is how a path of penalties, a bootstrap replicate and a second look with sharper weights start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.config import Settings
from edgegraft.core import ActiveGraph
from edgegraft.core.pair_set import PairSet
from edgegraft.core.types import Edges
from edgegraft.learn.parts import choose_parts
from edgegraft.learn.state import Growth, fit_penalty
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.search import CandidateStream, Reservoir


def warm_start(
    growth: Growth,
    *,
    objective: Objective | None = None,
    penalty: Penalty | None = None,
    settings: Settings | None = None,
    keep: NDArray[np.bool_] | None = None,
) -> Growth:
    """Return a run ready for `go_on` that starts from the graph and parameters of `growth`.

    Parameters
    ----------
    growth : Growth
        A run that ended; it is not changed.
    objective : Objective, optional
        A loss over the same variables; the same one by default.
    penalty : Penalty, optional
        By default the same. Weights of a noise penalty are found again for another objective.
    settings : Settings, optional
        By default the same; the strategies of single features are refused.
    keep : array of bool, shape (n_edges,), optional
        Which edges of `growth` to begin with, all by default; the others are candidates again.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn.loop import go_on, grow
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> loss = Pseudolikelihood(PackedTable.from_codes(data.X.astype(int)))
    >>> first = grow(loss, Penalty(0.3))
    >>> second = go_on(warm_start(first, penalty=Penalty(0.05)))
    >>> len(first.graph), len(second.graph)
    (1, 4)
    """
    settings = settings or growth.settings
    parts = choose_parts(settings, len(growth.objective.schema))
    if parts.single_features or growth.parts.single_features:
        raise ValueError("strategies of single features cannot start from another run")
    loss = objective or growth.objective
    rule = penalty or growth.penalty
    rule = rule.bound(loss, anew=loss is not growth.objective)
    whole = growth.graph.layout
    graph = ActiveGraph(loss.schema.n_states, whole.edges if keep is None else whole.edges[keep])
    known = growth.solution.objective is loss  # what its rows were asked before need not be again
    start = growth.solution if known else graph.layout.carry(growth.theta(), whole)
    first = Stopping(tol=settings.tol, max_iter=0)
    fitted = fit_penalty(rule, settings)
    solution = minimize(loss, fitted, graph.layout, start, first, quiet=True)
    rng = np.random.default_rng(settings.random_state)
    rng.bit_generator.state = growth.rng.bit_generator.state
    return Growth(
        loss,
        rule,
        settings,
        parts,
        graph,
        solution,
        _queue_again(growth, whole.edges[:0] if keep is None else whole.edges[~keep]),
        Reservoir(parts.capacity),
        rng,
        np.ones(graph.layout.n_parameters, bool),
        PairSet.from_ids(growth.tested.ids(), len(loss.schema)),
        n_tests=growth.n_tests,
        n_activations=growth.n_activations,
        filled=True,
        ranked=growth.ranked,
        seconds_before=growth.seconds,
        events=[event for event in growth.events if event.kind != "end"],
    )


def _queue_again(growth: Growth, dropped: Edges) -> CandidateStream:
    """Return a copy of the stream with all tested pairs queued by their last offsets."""
    stream = CandidateStream.from_state(growth.stream.state())
    stream.restore(dropped, np.zeros(len(dropped)))
    waiting = growth.reservoir
    stream.restore(waiting.edges, growth.offsets(waiting.scores))
    stream.refill()
    return stream
