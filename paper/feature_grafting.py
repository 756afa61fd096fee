"""Grafting and grafting-light: single parameters under plain l1, where the paper began.

Grafting (Perkins et al. 2003, Lee et al. 2006) activates the parameter of the largest gradient, of
all pairs, and fits the active ones to the tolerance. Grafting-light (Zhu et al. 2010) takes one
step of the solver instead. Best-choice grafting activates whole edges from a stream; these are its
predecessors, on the library's losses and minimizer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs, find_pairs
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Groups, Penalty
from edgegraft.optimize import Solution, Stopping, minimize

_HOLD = 1e12  # a strength that no gradient of a mean loss overcomes
_SLACK = 1.1  # tolerances of the solver: it leaves parameters alone that violate by one
_FIT = 500  # iterations after an activation, enough to reach the tolerance in practice


@dataclass(frozen=True, eq=False)
class FeaturePenalty(Penalty):
    """Plain l1 over single parameters; `allowed` are those that may leave zero, all by default.

    Examples
    --------
    >>> FeaturePenalty(1.0).groups(Layout([2, 2], [(0, 1)])).offsets
    array([0, 2, 4, 5, 6, 7, 8])
    """

    allowed: Mask | None = field(default=None, repr=False)

    kind: ClassVar[str] = "l1"

    def groups(self, layout: Layout) -> Groups:
        """Return the groups; parameters that are not allowed are held at zero."""
        first, last = int(layout.edge_offset[0]), int(layout.edge_offset[-1])
        nodes = np.arange(first + 1) if self.penalize_nodes else layout.node_offset
        offsets = np.concatenate((nodes, np.arange(first, last) + 1))
        groups = self._laid_out(offsets, np.ones(len(offsets) - 1), layout.n_variables)
        if self.allowed is not None:
            groups.strength[len(nodes) - 1 :][~self.allowed[first:]] = _HOLD
        return groups

    def _scores(self, values: Floats, offsets: Integers, edges: Edges) -> Floats:
        return np.maximum.reduceat(np.abs(values), offsets[:-1]) if len(edges) else np.empty(0)


class FeatureGrafting(NamedTuple):
    """The end of a run."""

    solution: Solution
    allowed: Mask  #: parameters that may leave zero: those of nodes, and the activated ones
    n_activations: int


def graft_features(
    objective: Objective,
    penalty: float,
    *,
    light: bool = False,
    max_edges: int | None = None,
    tol: float = 1e-3,
) -> FeatureGrafting:
    """Activate one parameter at a time until none violates optimality.

    Parameters
    ----------
    objective : Objective
    penalty : float
        Weight of the l1 norm of the parameters of edges.
    light : bool, default False
        Take one step of the solver after an activation instead of a fit to `tol`.
    max_edges : int, optional
        Activate parameters of this many pairs at most.
    tol : float, default 1e-3

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> from edgegraft.table import PackedTable
    >>> data = make_chain(4, n_states=2, n_rows=2000, couplings="ising", random_state=0)
    >>> found = graft_features(Pseudolikelihood(PackedTable.from_codes(data.X.astype(int))), 0.05)
    >>> sorted(map(tuple, found.solution.layout.edges.tolist()))
    [(0, 1), (1, 2), (2, 3)]
    """
    layout = Layout(objective.schema.n_states)
    allowed, n_activations = np.ones(layout.n_parameters, bool), 0
    solution, fitted = _fit(objective, penalty, layout, allowed, None, Stopping(tol, _FIT)), True
    while True:
        full = max_edges is not None and layout.n_edges >= max_edges
        chosen = _choose(solution, allowed, penalty + _SLACK * tol, full=full)
        if chosen is None and fitted:
            return FeatureGrafting(solution, allowed, n_activations)
        if chosen is not None:
            layout, allowed = chosen
            n_activations += 1
        # Scores of a single step may hide a violation: what ends the search is a fit.
        fitted = chosen is None or not light
        stopping = Stopping(tol, _FIT if fitted else 1)
        solution = _fit(objective, penalty, layout, allowed, solution, stopping)


def _fit(
    objective: Objective,
    penalty: float,
    layout: Layout,
    allowed: Mask,
    start: Solution | None,
    stopping: Stopping,
) -> Solution:
    rule = FeaturePenalty(penalty, allowed=allowed)
    return minimize(objective, rule, layout, start, stopping, quiet=True)


def _choose(
    solution: Solution, allowed: Mask, least: float, *, full: bool
) -> tuple[Layout, Mask] | None:
    """Return the graph and the mask with the parameter of the largest gradient, if above `least`.

    If `full`, parameters of active pairs alone are candidates.
    """
    layout, n = solution.layout, len(solution.layout.states)
    inside = np.where(allowed, 0.0, np.abs(solution.gradient))
    pairs = all_pairs(n)
    new = pairs[:0] if full else pairs[find_pairs(pairs, layout.edges, n) < 0]
    tables = solution.objective.edge_gradients(solution.theta, solution.state, new)
    outside = np.abs(tables.values)
    if max(inside.max(initial=0.0), outside.max(initial=0.0)) <= least:
        return None
    if inside.max(initial=0.0) >= outside.max(initial=0.0):
        return layout, allowed | (np.arange(len(allowed)) == inside.argmax())
    cell = int(outside.argmax())
    pair = int(np.searchsorted(tables.offsets, cell, side="right")) - 1
    wider = layout.grow(tables.edges[pair : pair + 1])
    mask = wider.carry(allowed.astype(float), layout) > 0
    mask[int(wider.edge_offset[-2]) + cell - int(tables.offsets[pair])] = True
    return wider, mask
