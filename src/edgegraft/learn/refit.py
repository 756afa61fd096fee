"""Parameters without the bias of the penalty: the learned graph, fitted again with a ridge alone.

Norms that choose edges also shrink those they keep. With the graph settled, strengths are better
compared, and predictions better made, without them.
"""

from __future__ import annotations

from edgegraft.learn.state import Growth
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize


def refit(
    growth: Growth, ridge: float = 1e-3, *, tol: float = 1e-3, max_iter: int = 200
) -> PairwiseMRF:
    """Return the model of a run's edges, fitted with a ridge only.

    Parameters
    ----------
    growth : Growth
        A finished run; it is not changed.
    ridge : float, default 1e-3
        Weight of the squared norms. Zero lets tables of states that never meet grow without end.
    tol : float, default 1e-3
        Largest norm of a group's gradient at the end.
    max_iter : int, default 200

    Examples
    --------
    >>> from edgegraft.data import PackedTable
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn.loop import grow
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> data = make_chain(4, n_rows=2000, couplings="ising", random_state=0)
    >>> found = grow(Pseudolikelihood(PackedTable.from_codes(data.X.astype(int))), Penalty(0.05))
    >>> bool((refit(found).edge_strengths() > found.model().edge_strengths()).all())
    True
    """
    objective, layout = growth.solution.objective, growth.graph.layout
    rule = Penalty(0.0, ridge, penalize_nodes=growth.penalty.penalize_nodes)
    found = minimize(objective, rule, layout, growth.theta(), Stopping(tol, max_iter))
    return PairwiseMRF(objective.schema, layout.edges, found.theta)
