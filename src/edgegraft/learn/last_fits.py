"""The last fits of a run: the kept edges, with the ridge alone or as the search fitted them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgegraft.config import Plan
from edgegraft.core.types import Mask, Tree
from edgegraft.grafting.loop import fit_fully
from edgegraft.grafting.problem import last_ridge
from edgegraft.grafting.state import SearchState
from edgegraft.learn.checkpoint import StageFile
from edgegraft.learn.graded import fit_graded
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.solver import Stopping, minimize


class LastFit(NamedTuple):
    """The model of the kept edges."""

    model: PairwiseMRF
    converged: bool
    run: SearchState  # what to certify


def last_fit(search: SearchState, kept: Mask, plan: Plan, file: StageFile) -> LastFit:
    """Fit the kept edges."""
    schema, ridge = search.objective.schema, last_ridge(plan, search.objective)
    if kept.all() and not plan.refit:
        return LastFit(search.model(), True, search)
    if not plan.refit:

        def refit_as_before() -> Tree:
            # Warns if the fit does not reach its tolerance.
            model = refit(search, ridge, keep=kept, shrunk=True)
            return {"edges": model.edges, "theta": model.theta}

        model = PairwiseMRF(schema, **file.stage("last fit", refit_as_before))
        return LastFit(model, True, search)
    problem = replace(
        search.problem,
        penalty=replace(search.penalty, ridge=ridge),
        settings=replace(search.settings, relaxed=True),
    )

    def fit() -> Tree:
        run = search.warm(problem, kept)
        fit_fully(run)
        tree = {"edges": run.graph.layout.edges, "theta": run.theta(), "fell_back": run.fell_back}
        tree["converged"], tree["tables"] = run.solution.info.converged, None
        if search.objective.features is not None and plan.ridge == "auto":
            graded = fit_graded(run.solution.objective, run.model(), ridge, plan.tol)
            if graded is not None:
                tree["tables"], tree["converged"] = graded
        return tree

    tree = file.stage("last fit", fit)
    edges, tables = tree["edges"], tree["tables"]
    theta = np.asarray(tree["theta"], np.float64)
    run = SearchState.begin(problem, edges, theta, 0, fell_back=tree["fell_back"])
    model = run.model() if tables is None else PairwiseMRF(schema, edges, tables)
    return LastFit(model, bool(tree["converged"]), run)


def refit(
    search: SearchState,
    ridge: float = 1e-3,
    *,
    keep: Mask | None = None,
    shrunk: bool = False,
    tol: float = 1e-3,
    max_iter: int = 200,
) -> PairwiseMRF:
    """Return the model of a search's edges, fitted with a ridge only.

    Norms that select edges also shrink them. Once the graph is fixed, strengths are easier to
    compare and predictions are better without norms.

    Parameters
    ----------
    search : SearchState
        A finished search; it is not changed.
    ridge : float, default 1e-3
        Weight of the squared norms. With zero, tables of states that never occur together diverge.
    keep : array of bool, shape (n_edges,), optional
        Which edges of the search to fit; all by default.
    shrunk : bool, default False
        Fit them as the search did, with its penalty.
    tol : float, default 1e-3
        Largest norm of a group's gradient at the end.
    max_iter : int, default 200

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import Settings, grow
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> from edgegraft.table import PackedTable
    >>> data = make_chain(4, n_rows=2000, couplings="ising", random_state=0)
    >>> loss = Pseudolikelihood(PackedTable.from_codes(data.X.astype(int)))
    >>> found = grow(loss, Penalty(0.05), Settings(relaxed=False))
    >>> bool((refit(found).edge_strengths() > found.model().edge_strengths()).all())
    True
    """
    objective, whole = search.solution.objective, search.graph.layout
    layout = whole if keep is None else whole.with_edges(whole.edges[keep])
    rule = Penalty(0.0, ridge, search.penalty.penalize_nodes)
    if shrunk:
        rule = search.policy.fit_penalty(search.penalty)
    start = layout.carry(search.theta(), whole)
    found = minimize(objective, rule, layout, start, Stopping(tol, max_iter))
    return PairwiseMRF(objective.schema, layout.edges, objective.expand(found.theta, layout))
