"""Fit the parameters of a given graph.

    minimise  L(theta) + penalty * sum_e d_e ||w_e||_2 + ridge * ||w||_2^2

over the node vectors and the tables of the given edges, or the weights of their scores if columns
are ordered; edges that the penalty sets to zero are not in the returned model.

A state that never occurs, and without any penalty a pair of states that never occur together, has
its log-potential best at minus infinity: the loss keeps falling, ever more slowly, and an answer to
any tolerance is finite but says more about the tolerance than about the data. Perfect prediction by
several variables together shows only in the answer: log-potentials out of all proportion. Such
parameters are named.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.backend import Backend, find_backend
from edgegraft.core.checks import check_theta
from edgegraft.core.edge_tables import to_zero_sum
from edgegraft.core.pairs import all_pairs, as_edges
from edgegraft.core.threads import one_blas_thread
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.counts.pair_counts import PairCounts, check_size
from edgegraft.errors import ConvergenceWarning, DataError, DataTypeError, ModelError, SettingError
from edgegraft.inference import (
    BeliefPropagation,
    ExactBudget,
    InferenceEngine,
    affordable,
    likelihood_engine,
)
from edgegraft.ingest.rows import read_table
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.likelihood import SAFE_SWEEPS, Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import GroupWeight, Penalty, norms_of
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.by_chains import by_pairs, fit_by_chains, make_chains
from edgegraft.optimize.solver import FitInfo, Solution, Stopping, minimize
from edgegraft.table import Schema
from edgegraft.table.blocks import TableRows, as_rows

#: Budget of one run of exact inference for "auto": a fit needs hundreds of runs.
EXACT = ExactBudget(seconds=0.05)
#: Rows of a sample on which the fit of more than twice as many begins.
SAMPLE = 50_000
#: Tolerance of the fit to a sample, whose own error is larger.
SAMPLE_TOL = 1e-2
#: Tolerance below which the rounding of single precision matters.
SINGLE_TOL = 1e-5


def fit_parameters(
    source: Any,
    edges: ArrayLike | None = None,
    objective: Literal["pseudolikelihood", "likelihood"] | Objective = "pseudolikelihood",
    penalty: float = 0.0,
    ridge: float = 0.0,
    *,
    engine: str | InferenceEngine = "auto",
    tol: float = 1e-5,
    max_iter: int = 1000,
    start: PairwiseMRF | ArrayLike | None = None,
    group_weight: GroupWeight = "sqrt",
    penalize_nodes: bool = False,
    n_jobs: int | None = 1,
    weights: ArrayLike | None = None,
    device: str = "cpu",
) -> tuple[PairwiseMRF, FitInfo]:
    """Find the parameters of a graph that minimise a penalised loss.

    Parameters
    ----------
    source : PackedTable, table or PairCounts
        Rows, or anything that :func:`edgegraft.ingest.pack` takes. Pair counts serve the likelihood
        only.
    edges : array of int, shape (m, 2), optional
        Pairs of column numbers; all pairs by default.
    objective : {"pseudolikelihood", "likelihood"} or Objective
        The loss. The likelihood needs inference on the graph (`engine`) and its cost does not
        depend on the number of rows; the pseudolikelihood needs rows and no inference.
    penalty, ridge : float, default 0.0
        Weights of the norms and of the squared norms.
    engine : {"auto", "exact", "bp", "trw", "chains"} or an engine
        For the likelihood. "auto" is exact if a run takes milliseconds, otherwise belief
        propagation; if that does not converge, tree-reweighted belief propagation takes over
        with a warning. "chains" starts from the maximum of the pseudolikelihood and follows it
        by Gibbs chains (:mod:`edgegraft.optimize.by_chains`): the way to the likelihood of dense
        graphs, in at most 120 steps, without `tol`.
    tol : float, default 1e-5
        The fit has converged when no group violates its optimality condition by more, in the
        Euclidean norm. Gradients are differences of probabilities.
    max_iter : int, default 1000
    start : PairwiseMRF, or array of parameters, optional
        First parameters; edges of a model that are not among `edges` are omitted. With ordered
        columns parameters are node vectors and weights of scores, a model's tables any.
    group_weight, penalize_nodes
        See :class:`~edgegraft.objective.Penalty`.
    n_jobs : int, default 1
        Threads; -1 for all cores.
    weights : array of float, shape (n_rows,), optional
        Non-negative row weights.
    device : {"cpu", "cuda", "auto", "torch"}
        Where sums over rows and chains are computed; see :class:`~edgegraft.GraftedMRF`.

    Returns
    -------
    model : PairwiseMRF
        Without the edges that the penalty set to zero.
    info : FitInfo

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached, if another engine took over, and, without penalty and
        ridge, if parameters have no finite best value.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = rng.integers(0, 2, 500)
    >>> rows = np.stack([first, first ^ (rng.random(500) < 0.2), rng.integers(0, 2, 500)], axis=1)
    >>> model, info = fit_parameters(rows, penalty=0.05)
    >>> model.edges
    array([[0, 1]])
    >>> info.converged, info.residual <= 1e-5
    (True, True)
    """
    rule = Penalty(penalty, ridge, group_weight=group_weight, penalize_nodes=penalize_nodes)
    stopping = _check_stopping(tol, max_iter)
    counts = _read(source, objective, weights, n_jobs, find_backend(device))
    tables = _graph(counts.schema, edges)
    if objective == "likelihood" and engine == "chains":
        chains, loss = make_chains(None, n_jobs, device, seed=0), by_pairs(counts)
        first = None if start is None else _first_parameters(loss, rule, tables, start)
        layout = loss.layout(tables.edges)
        theta, fitted = fit_by_chains(loss, counts, rule, layout, first, chains, max_iter)
        return _without_zeros(loss, layout, theta, rule), fitted
    if not isinstance(objective, str):
        loss = objective
        if loss.schema != counts.schema:
            raise DataError("the objective has other variables than the source")
    elif objective == "likelihood":
        loss = featured(Likelihood(counts, _choose_engine(engine, tables, tol)))
    else:
        precision: Literal["single", "double"] = "single" if tol >= SINGLE_TOL else "double"
        loss = featured(Pseudolikelihood(counts.rows, precision=precision))
    rule, layout = rule.bound(loss), loss.layout(tables.edges)
    first = _first_parameters(loss, rule, tables, start)
    dense = counts if isinstance(loss, Pseudolikelihood) else None
    with one_blas_thread():  # small products, for which threads wait for each other
        found = minimize(loss, rule, layout, first, stopping, counts=dense)
    diverging = name_divergence(counts, loss.expand(found.theta, layout), tables, rule)
    if diverging and penalty == 0.0 and ridge == 0.0:
        warnings.warn(
            "without penalty and ridge some parameters have no finite best value, and the fit "
            f"ended where its tolerance was met: {shorten(diverging)}. A small ridge gives them "
            "one",
            ConvergenceWarning,
            stacklevel=2,
        )
    model = _without_zeros(loss, found.layout, found.theta, rule)
    return model, found.info._replace(diverging=diverging)


def _check_stopping(tol: float, max_iter: int) -> Stopping:
    if not (np.isfinite(tol) and tol > 0):
        raise SettingError("tol", f"must be positive, found {tol}")
    if max_iter < 1:
        raise SettingError("max_iter", f"must be at least 1, found {max_iter}")
    return Stopping(tol=tol, max_iter=max_iter)


def _read(
    source: Any,
    objective: str | Objective,
    weights: ArrayLike | None,
    n_jobs: int | None,
    device: Backend | None,
) -> PairCounts:
    """Return the counts of a source."""
    if isinstance(objective, str) and objective not in ("pseudolikelihood", "likelihood"):
        raise SettingError(
            "objective",
            f"must be 'pseudolikelihood', 'likelihood' or an Objective, found {objective!r}",
        )
    if not (hasattr(source, "pairs") and hasattr(source, "margins")):
        table = read_table(source)
        return PairCounts(as_rows(table, weights, n_jobs, device), n_jobs)
    if weights is not None:
        raise DataError("weights belong to rows: give them to the source of the counts")
    if objective == "pseudolikelihood":
        raise DataTypeError(
            "the pseudolikelihood needs rows, and pair counts have none: give the table, or use "
            "objective='likelihood'"
        )
    counts: PairCounts = source
    return counts


def _graph(schema: Schema, edges: ArrayLike | None) -> Layout:
    pairs = all_pairs(len(schema)) if edges is None else as_edges(edges, len(schema))
    check_size(int(schema.n_states[pairs].prod(axis=1).sum()))
    return Layout(schema.n_states, pairs)


def _choose_engine(engine: str | InferenceEngine, layout: Layout, tol: float) -> InferenceEngine:
    """Return an engine whose marginals are good to well within the tolerance."""
    exactness = min(1e-6, 0.05 * tol)
    if engine == "auto":
        engine = "exact" if affordable(layout, EXACT) else "bp"
    if engine == "bp":
        return BeliefPropagation(tol=exactness)
    if engine == "trw":
        return likelihood_engine("trw", tol=exactness, max_iter=SAFE_SWEEPS)
    return likelihood_engine(engine)


def _first_parameters(
    loss: Objective, rule: Penalty, layout: Layout, start: PairwiseMRF | ArrayLike | None
) -> Solution | Floats | None:
    if isinstance(start, PairwiseMRF):
        if not np.array_equal(start.layout.states, layout.states):
            raise ModelError("the model to start from has other variables or states")
        theta = layout.carry(np.maximum(start.theta, -20.0), start.layout)
        return theta if loss.features is None else loss.features.weights_of(theta, layout.edges)
    if start is not None:
        return check_theta(start, loss.layout(layout.edges), finite=True, what="start").copy()
    if isinstance(loss, Likelihood) and rule.penalty == 0.0 and rule.ridge == 0.0:
        return _lower(loss, layout)
    if isinstance(loss, Pseudolikelihood) and loss.n_rows > 2 * SAMPLE:
        # The first iterations need no more than a direction: a sample gives it.
        assert isinstance(loss.rows, TableRows)
        few = loss.rows.subsample(SAMPLE / loss.n_rows, np.random.default_rng(0))
        sample = Pseudolikelihood(few, precision=loss.precision)
        return minimize(sample, rule, layout, None, Stopping(tol=SAMPLE_TOL), quiet=True)
    return None


def _lower(loss: Likelihood, layout: Layout) -> Floats:
    """Return the better of the closed form and the independent model."""
    state = loss.init(layout)
    closed, plain = loss.bethe_start(layout), loss.start(layout)
    there, here = loss.evaluate(closed, state), loss.evaluate(plain, state)
    return closed if there.trusted and there.value < here.value else plain


def _without_zeros(loss: Objective, layout: Layout, theta: Floats, rule: Penalty) -> PairwiseMRF:
    """Return the model without the edges that the penalty set to zero."""
    if rule.penalty > 0.0:
        kept = layout.with_edges(layout.edges[norms_of(theta, layout.edge_offset) > 0.0])
        layout, theta = kept, kept.carry(theta, layout)
    return PairwiseMRF(loss.schema, layout.edges, loss.expand(theta, layout))


#: A table of the answer with an entry beyond this, in zero-sum gauge, is taken to diverge: it
#: changes odds by a factor of more than twenty thousand.
LARGE = 10.0
_BLOCK = 4096  # edges counted at once
_SHOWN = 5  # names in a warning


def name_divergence(
    counts: PairCounts, theta: Floats, layout: Layout, penalty: Penalty
) -> tuple[str, ...]:
    """Name everything whose best value is infinite under `penalty`."""
    free = penalty.penalty == 0.0 and penalty.ridge == 0.0
    seen, names = [margin > 0 for margin in counts.margins()], counts.schema.names
    found = []
    if free or not penalty.penalize_nodes:
        for variable, own in zip(counts.schema.variables, seen, strict=True):
            labels = [variable.categories[k] for k in np.flatnonzero(~own).tolist()]
            found += [f"variable '{variable.name}': category {x!r} never occurs" for x in labels]
    if free:
        edges = _never_together(counts, layout.edges, seen)
        edges |= {k: text for k, text in _steep(theta, layout).items() if k not in edges}
        for k, text in edges.items():
            i, j = layout.edges[k]
            found.append(f"edge ('{names[i]}', '{names[j]}'): {text}")
    return tuple(found)


def _never_together(counts: PairCounts, edges: Edges, seen: list[Mask]) -> dict[int, str]:
    """Return the edges some of whose states occur, but never together, and how many do not."""
    found = {}
    for first in range(0, len(edges), _BLOCK):
        block = edges[first : first + _BLOCK]
        for k, ((i, j), table) in enumerate(zip(block, counts.pairs(block), strict=True), first):
            empty = int(((table == 0) & np.outer(seen[i], seen[j])).sum())
            if empty:
                noun, verb = ("pair", "occurs") if empty == 1 else ("pairs", "occur")
                found[k] = f"{empty} {noun} of states never {verb} together"
    return found


def _steep(theta: Floats, layout: Layout) -> dict[int, str]:
    """Return the edges whose log-potentials are out of all proportion, and how large they are."""
    flat = theta.copy()
    to_zero_sum(flat, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
    tops = [np.abs(layout.edge(flat, k)).max() for k in range(layout.n_edges)]
    return {k: f"a log-potential reached {x:.0f}" for k, x in enumerate(tops) if x > LARGE}


def shorten(names: tuple[str, ...]) -> str:
    """Return a few of the names in one line."""
    rest = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + rest
