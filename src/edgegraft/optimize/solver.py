"""The solver: proximal quasi-Newton steps until the optimality conditions hold.

    z = argmin_z  g'(z - x) + (z - x)' B (z - x) / 2 + h(z),      x <- x + t (z - x)

One evaluation of the loss per iteration is the rule, whatever the penalty: the curvature ``B`` is
the objective's diagonal, corrected by the last steps, and the inner problem needs no inference.
It ends when no group violates its optimality condition by more than ``tol`` in the Euclidean
norm. Without a penalty this is L-BFGS in the metric of the objective's curvature.

An objective may have a `stand_in`, the same loss over few of its rows. Steps then go to the minimum
of that one, tilted to the slope at hand (:mod:`~edgegraft.objective.objective`), which takes a few
evaluations of the expensive loss in all; when that no longer brings the end nearer, the steps
above resume.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.objective.objective import Objective, State, Tilted
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.descent import Descent, Point, Refusal, solve_step
from edgegraft.optimize.metric import DenseMetric, Metric, suits_dense

MEMORY = 20
#: Failed steps of inference before a more reliable engine takes over.
MAX_UNTRUSTED = 20
#: Of the residual, for a step through a stand-in to be worth the next; and how far one is solved.
_NEARER, _SOLVED = 0.8, 0.03
_INNER_ITERATIONS = 300


#: Members that the solver needs of its two parts.
_OBJECTIVE_MEMBERS = (
    *("init", "grow", "start", "evaluate", "curvature", "margins", "pair_frequencies"),
    *("stand_in", "fallback", "accuracy", "engine_name"),
)
_PENALTY_MEMBERS = ("groups", "penalize_nodes", "penalty", "ridge")


class FitInfo(NamedTuple):
    """The trajectory and the end of a minimisation."""

    converged: bool  # whether the residual is at most the tolerance
    residual: float  # largest Euclidean norm of a group's smallest subgradient
    objective: float  # loss plus penalty at the answer
    path: Floats  # loss plus penalty at the start and after every iteration
    n_iter: int
    n_evaluations: int  # losses computed: runs of inference, or passes over the rows
    message: str  # empty if there is nothing to report
    engine: str = ""  # what answered in the end, if the loss needs inference
    diverging: tuple[str, ...] = ()  # parameters whose best value is infinite


class Solution(NamedTuple):
    """Parameters of a graph, and what is needed to resume from them."""

    layout: Layout
    theta: Floats
    gradient: Floats  # of the loss alone
    state: State  # the objective's, at `theta`
    objective: Objective  # the given objective, or the fallback that took over
    metric: Metric  # curvature learned on the way
    info: FitInfo


class Stopping(NamedTuple):
    """When to stop."""

    tol: float = 1e-5  # on the largest violation of a group
    max_iter: int = 1000
    largest: float = 50.0  # no log-potential beyond this: the optimum is at infinity


def minimize(
    objective: Objective,
    penalty: Penalty,
    layout: Layout,
    start: Solution | Floats | None = None,
    stopping: Stopping | None = None,
    *,
    counts: PairCounts | None = None,
    quiet: bool = False,
) -> Solution:
    """Minimise loss plus penalty over the parameters of a graph.

    Parameters
    ----------
    objective : Objective
    penalty : Penalty
    layout : Layout
        The graph. It may have edges that `start` lacks, or lack some that it has.
    start : Solution or array, optional
        A solution of this or another graph, whose parameters, messages and (for the same graph)
        curvature are kept; or parameters. By default the objective's own start. If inference
        failed on the way to a solution and a more reliable engine took over, that engine is kept.
    stopping : Stopping, optional
    counts : PairCounts, optional
        Of the rows of a pseudolikelihood: on dense graphs with a ridge and no penalty they give
        a first metric that saves most of the evaluations.
    quiet : bool, default False
        Do not warn about an early end, for callers that end early on purpose.

    Returns
    -------
    Solution

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.inference.exact import ExactEngine
    >>> from edgegraft.objective.likelihood import Likelihood
    >>> from edgegraft.counts import PairCounts
    >>> table = PackedTable.from_codes([[0, 0], [0, 0], [1, 1], [0, 1]])
    >>> loss = Likelihood(PairCounts(table), ExactEngine())
    >>> found = minimize(loss, Penalty(0.05), Layout([2, 2], [(0, 1)]))
    >>> found.info.converged, found.info.residual < 1e-5
    (True, True)
    >>> found.layout.edge(found.theta, 0).round(2)
    array([[ 0.45, -0.45],
           [-0.45,  0.45]])
    """
    _check_parts(objective, penalty)
    stopping = stopping or Stopping()
    safer = objective.fallback
    if safer is not None and isinstance(start, Solution) and start.objective is safer:
        objective = safer  # which has taken over before
    descent = Descent(objective, penalty, layout)
    theta, state, metric = _begin(descent, start)
    if counts is not None and suits_dense(layout, penalty.penalty, penalty.ridge):
        base = DenseMetric(layout, counts, penalty.ridge, metric.diagonal)
        metric = Metric(metric.diagonal, MEMORY, base)
    stand_in, message = descent.objective.stand_in, ""
    point = descent.start(theta, state)
    path, n_iter = [point.total], 0
    while not (point.trusted and point.residual <= stopping.tol):
        if n_iter >= stopping.max_iter:
            message = f"max_iter={stopping.max_iter} iterations were not enough"
            break
        if np.abs(point.theta).max(initial=0.0) > stopping.largest:
            message = f"a log-potential passed {stopping.largest:g}: the optimum is at infinity"
            break
        after = _iterate(descent, point, metric, stand_in, penalty, stopping.tol)
        if isinstance(after, Refusal) or after.residual > _NEARER * point.residual:
            stand_in = None
        if isinstance(after, Refusal):
            message = after.message
            fallback = descent.objective.fallback
            if fallback is None or not after.untrusted:
                break
            descent, after = _take_over(descent, fallback, penalty, point, message)
            metric = Metric(descent.diagonal(), MEMORY)
            path.clear()  # of another function
        point = after
        path.append(point.total)
        n_iter += 1
    return _solution(descent, point, metric, path, n_iter, stopping, message, quiet)


def _check_parts(objective: Any, penalty: Any) -> None:
    """Refuse parts that the solver cannot work with, before any work is done."""
    for part, needed, base in (
        (objective, _OBJECTIVE_MEMBERS, "Objective"),
        (penalty, _PENALTY_MEMBERS, "Penalty"),
    ):
        missing = [name for name in needed if not hasattr(part, name)]
        if missing:
            raise TypeError(
                f"{type(part).__name__} lacks {', '.join(missing)}, which the solver needs: derive "
                f"it from edgegraft.objective.{base}"
            )


def _begin(descent: Descent, start: Solution | Floats | None) -> tuple[Floats, State, Metric]:
    objective, layout = descent.objective, descent.layout
    metric = Metric(descent.diagonal(), MEMORY)
    if isinstance(start, Solution):
        theta = layout.carry(start.theta, start.layout)
        # Carried to a grown graph, what was learned saved fewer evaluations than it cost time.
        metric = start.metric.copy() if start.layout is layout else metric
        known = start.objective is objective  # another loss's state means nothing here
        state = objective.grow(start.state, layout) if known else objective.init(layout)
        return theta, state, metric
    theta = objective.start(layout) if start is None else np.array(start, np.float64)
    return theta, objective.init(layout), metric


def _iterate(
    descent: Descent,
    point: Point,
    metric: Metric,
    stand_in: Objective | None,
    penalty: Penalty,
    tol: float,
) -> Point | Refusal:
    """Return the next point; if a stand-in or the learned curvature misleads, try without it."""
    if not point.trusted:
        return Refusal(point.message or "inference did not converge", untrusted=True)
    if descent.n_untrusted > MAX_UNTRUSTED and descent.objective.fallback is not None:
        return Refusal("inference did not converge again and again", untrusted=True)
    if stand_in is not None:
        found = descent.step(point, _through(stand_in, descent, point, penalty, tol))
        if isinstance(found, Point):
            return found
    while True:
        target = solve_step(point.inner, point.slope, point.violation, metric, descent.inner_norms)
        after = descent.step(point, target)
        if isinstance(after, Point):
            metric.update(after.inner - point.inner, after.slope - point.slope)
            return after
        if not metric.n_pairs:
            return after
        metric.forget()


def _through(
    stand_in: Objective, descent: Descent, point: Point, penalty: Penalty, tol: float
) -> Floats:
    """Return the minimum of the stand-in, tilted to the slope at a point."""
    layout = descent.layout
    tilted = Tilted(stand_in, descent.objective, layout, point.theta, point.gradient)
    stopping = Stopping(max(_SOLVED * point.residual, 0.3 * tol), _INNER_ITERATIONS)
    found = minimize(tilted, penalty, layout, point.theta, stopping, quiet=True)
    return descent.coordinates.inward(found.theta)


def _take_over(
    descent: Descent, fallback: Objective, penalty: Penalty, point: Point, reason: str
) -> tuple[Descent, Point]:
    """Return the descent of the objective's fallback, and the same point on it."""
    state = fallback.init(descent.layout)
    warnings.warn(
        f"{reason}; continuing with the engine '{fallback.engine_name(state)}', whose objective "
        "is another approximation of the likelihood",
        ConvergenceWarning,
        stacklevel=4,
    )
    other = Descent(fallback, penalty, descent.layout)
    other.n_evaluations = descent.n_evaluations
    return other, other.at(point.inner, state)


def _solution(
    descent: Descent,
    point: Point,
    metric: Metric,
    path: list[float],
    n_iter: int,
    stopping: Stopping,
    message: str,
    quiet: bool,
) -> Solution:
    converged = point.trusted and point.residual <= stopping.tol
    if not converged:
        message = (
            f"the fit did not converge: {message} (residual {point.residual:.2g} after {n_iter} "
            f"iterations, tol is {stopping.tol:g})"
        )
        if not quiet:
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
    info = FitInfo(
        converged=converged,
        residual=point.residual,
        objective=point.total,
        path=np.array(path),
        n_iter=n_iter,
        n_evaluations=descent.n_evaluations,
        message=message,
        engine=descent.objective.engine_name(point.state),
    )
    return Solution(
        descent.layout, point.theta, point.gradient, point.state, descent.objective, metric, info
    )
