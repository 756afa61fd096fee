"""Parameters without the bias of the penalty: the learned graph, fitted again with a ridge alone.

Norms that choose edges also shrink those they keep. With the graph settled, strengths are better
compared, and predictions better made, without them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.learn.state import Growth, fit_penalty
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize


def refit(
    growth: Growth,
    ridge: float = 1e-3,
    *,
    keep: NDArray[np.bool_] | None = None,
    shrunk: bool = False,
    tol: float = 1e-3,
    max_iter: int = 200,
) -> PairwiseMRF:
    """Return the model of a run's edges, fitted with a ridge only.

    Parameters
    ----------
    growth : Growth
        A finished run; it is not changed.
    ridge : float, default 1e-3
        Weight of the squared norms. Zero lets tables of states that never meet grow without end.
    keep : array of bool, shape (n_edges,), optional
        Which edges of the run to fit; all by default.
    shrunk : bool, default False
        Fit them as the run did, with its penalty.
    tol : float, default 1e-3
        Largest norm of a group's gradient at the end.
    max_iter : int, default 200

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import Settings, grow
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(4, n_rows=2000, couplings="ising", random_state=0)
    >>> loss = Pseudolikelihood(PackedTable.from_codes(data.X.astype(int)))
    >>> found = grow(loss, Penalty(0.05), Settings(relaxed=False))
    >>> bool((refit(found).edge_strengths() > found.model().edge_strengths()).all())
    True
    """
    objective, whole = growth.solution.objective, growth.graph.layout
    layout = whole if keep is None else Layout(whole.states, whole.edges[keep])
    rule = Penalty(0.0, ridge, penalize_nodes=growth.penalty.penalize_nodes)
    if shrunk:
        rule = fit_penalty(growth.penalty, growth.settings)
    start = layout.carry(growth.theta(), whole)
    found = minimize(objective, rule, layout, start, Stopping(tol, max_iter))
    return PairwiseMRF(objective.schema, layout.edges, found.theta)
