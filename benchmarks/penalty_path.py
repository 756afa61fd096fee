"""A path of penalties, from the largest useful one downwards, each run warm from the one before.

    EBIC = 2 N L / t + k log N + 4 gamma k log n

``L`` is the mean loss per row at the graph's parameters fitted with a ridge alone, ``k`` the
number of free parameters of its edges, and ``t`` how often the loss counts a pair: 2 for the
pseudolikelihood. (Extended Bayesian information criterion of Chen and Chen 2008 and of Foygel and
Drton 2010; dividing a composite loss by ``t`` is a rule of thumb.)

How stable the edges of each penalty are from one subsample of the rows to another (StARS):

    D = mean over pairs of 2 f (1 - f),   f the share of subsamples in which a pair is an edge

Liu, Roeder and Wasserman (2010) take the smallest penalty at which ``D``, made monotone, is still
at most .05: edges that come and go with the rows are not to be relied on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.errors import DataError, SettingError
from edgegraft.grafting.events import Observer
from edgegraft.grafting.loop import grow, run_search
from edgegraft.grafting.problem import chance_level, losses, penalty_of, search_settings
from edgegraft.grafting.state import SearchState
from edgegraft.learn.last_fits import refit
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.rank.mean_fields import rank_pairs
from edgegraft.table import PackedTable

N_PENALTIES = 10
EBIC_GAMMA = 0.5
LIMIT = 0.05
_ALL_PAIRS = 200_000  # if there are more, the largest penalty is that of the ranked pairs
_BLOCK = 8192
_MIN_SHARE = 0.01


class PathPoint(NamedTuple):
    """One model of a path.

    Attributes
    ----------
    penalty : float
    n_edges : int
    objective : float
        Loss plus penalty at the end of the run.
    ebic : float
    held_out : float
        Mean log-pseudolikelihood of the rows held out; NaN if there are none.
    seconds : float
        Of this point alone.
    model : PairwiseMRF
        Fitted with the ridge alone if the plan asks for a refit.
    """

    penalty: float
    n_edges: int
    objective: float
    ebic: float
    held_out: float
    seconds: float
    model: PairwiseMRF


def penalty_path(
    table: PackedTable,
    plan: Plan | None = None,
    penalties: int | ArrayLike = N_PENALTIES,
    *,
    weights: ArrayLike | None = None,
    held_out: PackedTable | None = None,
    observers: Sequence[Observer] = (),
) -> list[PathPoint]:
    """Return a model for each of several penalties, the largest first.

    Parameters
    ----------
    table : PackedTable
    plan : Plan, optional
        Its penalty and `fdr` are not used: nothing is cut along a path.
    penalties : int or array of float, default 10
        Penalties, or how many of :func:`penalty_grid`.
    weights : array of float, optional
    held_out : PackedTable, optional
        Rows under the same schema to score each model with.
    observers : sequence of Observer
        One that asks to stop ends the path after that point.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> path = penalty_path(PackedTable.from_codes(data.X.astype(int)), penalties=[0.7, 0.4, 0.1])
    >>> [point.n_edges for point in path]
    [0, 3, 4]
    """
    plan = plan or Plan()
    if isinstance(penalties, int | np.integer):
        levels = penalty_grid(table, plan, int(penalties), weights=weights)
    else:
        levels = falling("penalties", penalties)
        if not len(levels):
            raise SettingError("penalties", "must hold at least one")
    loss, counts = losses(table, plan, weights)
    rule = penalty_of(plan, loss).bound(loss)
    points: list[PathPoint] = []
    growth: SearchState | None = None
    for level in levels:
        started = perf_counter()
        step = replace(rule, penalty=float(level))
        if growth is None:
            settings = search_settings(plan, len(table.schema))
            growth = grow(loss, step, settings, counts=counts, observers=observers)
        else:
            growth = run_search(growth.warm(replace(growth.problem, penalty=step)), observers)
        points.append(_point(growth, plan, held_out, started))
        if growth.reason and growth.reason.requested:
            break
    return points


def largest_penalty(
    objective: Objective, penalty: Penalty, counts: PairCounts, rng: np.random.Generator
) -> float:
    """Return the least penalty at which there is no edge.

    Exact up to 200,000 pairs. Beyond, only the pairs that the data rank first are scored: the
    strongest pair is among them unless the ranking misses it.
    """
    n = len(objective.schema)
    pairs = all_pairs(n) if n * (n - 1) // 2 <= _ALL_PAIRS else rank_pairs(counts, rng).edges
    layout = Layout(objective.schema.n_states)
    theta = objective.start(layout)
    state = objective.evaluate(theta, objective.init(layout)).state
    blocks = [pairs[first : first + _BLOCK] for first in range(0, len(pairs), _BLOCK)]
    return max(
        (penalty.largest_useful(objective.edge_gradients(theta, state, b)) for b in blocks),
        default=0.0,
    )


def ebic(
    loss: float, layout: Layout, n_rows: float, terms: int, gamma: float = EBIC_GAMMA
) -> float:
    """Return the extended Bayesian information criterion of a fitted graph.

    >>> round(ebic(1.0, Layout([2, 2, 2], [(0, 1)]), 100, 1), 2)
    206.8
    """
    free = layout.widths - ~layout.scored  # states count without one, scores as they are
    size = int(free[layout.edges].prod(axis=1).sum())
    fit = 2.0 * n_rows * loss / terms
    return float(fit + size * (np.log(n_rows) + 4.0 * gamma * np.log(layout.n_variables)))


def penalty_grid(
    table: PackedTable,
    plan: Plan | None = None,
    count: int = N_PENALTIES,
    *,
    weights: ArrayLike | None = None,
) -> Floats:
    """Return penalties evenly spaced in their logarithms, the largest first.

    From the least at which there is no edge to what chance passes about once per variable; with
    weights that know no such level, to a hundredth of the first.
    """
    plan = plan or Plan()
    if count < 1:
        raise SettingError("penalties", f"must be at least 1, found {count}")
    loss, counts = losses(table, plan, weights)
    rule = penalty_of(plan, loss).bound(loss)
    rng = np.random.default_rng(plan.random_state)
    top = largest_penalty(loss, rule, counts, rng)
    low = chance_level(loss) if rule.group_weight == "noise" else _MIN_SHARE * top
    return np.geomspace(top, low, count) if 0 < low < top else np.array([max(low, top)])


def score_rows(model: PairwiseMRF, codes: NDArray[Any], weights: Floats | None = None) -> float:
    """Return the (weighted) mean log-pseudolikelihood of rows."""
    return float(np.average(model.pseudo_log_likelihood(codes=codes), weights=weights))


def _point(
    growth: SearchState, plan: Plan, held_out: PackedTable | None, started: float
) -> PathPoint:
    unshrunk = refit(growth, growth.penalty.ridge) if growth.policy.shrinks else growth.model()
    model = unshrunk if plan.refit else growth.model()
    layout, loss = growth.graph.layout, growth.solution.objective
    theta, features = unshrunk.theta, loss.features
    if features is not None:
        theta = features.weights_of(theta, layout.edges)
    value = loss.evaluate(theta, loss.init(layout)).value
    score = float("nan") if held_out is None else score_rows(model, held_out.codes())
    return PathPoint(
        growth.penalty.penalty,
        len(growth.graph),
        growth.solution.info.objective,
        ebic(value, layout, loss.n_rows, loss.terms),
        score,
        perf_counter() - started,
        model,
    )


def falling(name: str, values: ArrayLike) -> Floats:
    """Return the levels that a caller gave as `name`, the largest first, or refuse them.

    >>> falling("penalties", [0.1, 0.3])
    array([0.3, 0.1])
    """
    levels = np.sort(np.asarray(values, np.float64).ravel())[::-1]
    if not (np.isfinite(levels) & (levels >= 0)).all():
        raise SettingError(name, f"must be finite numbers of at least 0, found {values!r}")
    return levels


def instability(
    table: PackedTable,
    plan: Plan | None,
    penalties: ArrayLike,
    *,
    n_subsamples: int = 20,
    random_state: int = 0,
) -> Floats:
    """Return ``D`` of each penalty, over random subsamples of ``10 sqrt(N)`` rows (at most 80 %).

    Penalties are those of the whole table: with fewer rows scores are noisier by
    ``sqrt(N / rows)``, and each path is scaled by that.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> data = make_chain(5, n_rows=2000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> instability(table, None, [0.6, 0.1], n_subsamples=4)
    array([0., 0.])
    """
    n, n_rows = len(table.schema), table.n_rows
    size = int(min(0.8 * n_rows, 10 * np.sqrt(n_rows)))
    if size < 2 or n_subsamples < 2:
        raise DataError(f"{n_subsamples} subsamples of {n_rows} rows cannot be compared")
    levels = falling("penalties", penalties)
    codes, rng = table.codes(), np.random.default_rng(random_state)
    counts: list[dict[tuple[int, int], int]] = [{} for _ in levels]
    for _ in range(n_subsamples):
        rows = np.sort(rng.choice(n_rows, size, replace=False))
        part = PackedTable.from_codes(codes[rows], table.schema)
        path = penalty_path(part, plan, levels * np.sqrt(n_rows / size))
        for seen, point in zip(counts, path, strict=True):
            for i, j in point.model.edges.tolist():
                seen[i, j] = seen.get((i, j), 0) + 1
    shares = [np.array(list(seen.values())) / n_subsamples for seen in counts]
    n_pairs = max(1, n * (n - 1) // 2)
    return np.array([float((2 * f * (1 - f)).sum()) / n_pairs for f in shares])


def most_stable(penalties: ArrayLike, values: ArrayLike, limit: float = LIMIT) -> float:
    """Return the smallest penalty down to which instability stays within `limit`.

    Examples
    --------
    >>> most_stable([0.4, 0.2, 0.1, 0.05], [0.0, 0.01, 0.2, 0.04])
    0.2
    """
    levels = np.asarray(penalties, np.float64)
    order = np.argsort(-levels)
    rising = np.maximum.accumulate(np.asarray(values, np.float64)[order])
    return float(levels[order][np.flatnonzero(rising <= limit).max(initial=0)])
