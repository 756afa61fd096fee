"""Frequencies and intervals of the edges of a network, by repeating the fit on resampled rows.

A replicate weights the rows by how often each was drawn, starts from the fit and selects the edges
again (:mod:`~edgegraft.learn.replicate`); then the kept edges of the fit are refitted with only the
ridge. The share of replicates with an edge is its *frequency*; the variation of the refitted
strengths gives its *interval*.

**Included.** A pair is in a replicate's network if, with `fdr` or `fwer`, its q-value over all
pairs is at most that. The q-values are first-order approximations for another sample of as many
rows, beside the kept edges (:mod:`~edgegraft.conditional.replicates`): an edge that just passes in
the fit has a frequency of about one half, one with a q-value of 1e-6 one near 1, and a pair that
chance alone brought near has a small one. Without `fdr` a relaxed search, which drops
nothing, is tested at the level of the automatic threshold, which chance exceeds about once per
variable; a pair of a penalised search is included if its table is not zero at the end of the
search, and that search has about half of the information of the rows. If the rows are too few to
test an edge its frequency is NaN, just as a test without degrees of freedom has no q-value. Pairs
are tested beside the kept edges: one that was cut explains nothing beside the others.

**Interval.** The norm of a table is biased upwards, ``E ||w*||^2 = ||w||^2 + tr Var(w*)``, in the
fit and once more in replicates, so percentiles of replicated strengths would be far too high.
Instead, for each replicate, ``l*`` is the length of a table in the direction of ``w`` that the
error ``e* = w* - w`` would make as strong as that of the fit,

    || (l* / ||w||) w + e* || = ||w||,      l* = -u* + sqrt(||w||^2 - (||e*||^2 - u*^2)),

with ``u*`` the part of ``e*`` along ``w``; zero if there is no such length. The interval is between
quantiles of ``l*``: the lengths that a test with the same errors would not reject. For a table with
one free entry it is the basic bootstrap interval. It is approximate, because the direction is that
of the fit. Intervals are for the strengths that the same ridge would give with unlimited data of
this kind, not for those of a model without a ridge, and for the kept graph: they ignore that the
same rows chose it. All replicates count for the interval, whether or not their own search has the
edge.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.replicates import Replicated
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import weigh
from edgegraft.config import Plan
from edgegraft.core.checks import check_weights
from edgegraft.core.pairs import find_pairs
from edgegraft.core.threads import interruptible, one_blas_thread, resolve_jobs
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import DataError, ModelError
from edgegraft.grafting.state import SearchState
from edgegraft.learn.checkpoint import StageFile
from edgegraft.learn.cut import Cut
from edgegraft.learn.discovery import Discovery
from edgegraft.learn.replicate import Draws, Replicate, Replicator
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable

OnReplicate = Callable[[int, int], object]

_LARGEST_RATE = 0.05
_RARE = 0.02  # pairs outside the fit in a smaller share of replicates are not tested
_CHUNK_BYTES = 1 << 26  # row weights of replicates held at a time


class Bootstrap(NamedTuple):
    """Frequencies and strengths of edges over replicates.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
        The kept edges of the fit, in its order; then other pairs that some replicates include,
        most frequent first.
    frequency : array of float, shape (m,)
        Share of the replicates whose network has the edge; NaN if replicates cannot be tested
        for it.
    strength : array of float, shape (m,)
        Strengths of the kept edges, refitted with the ridge; NaN for other pairs, here and below.
    mean_strength : array of float, shape (m,)
        Mean over the replicates; above `strength`, because noise increases a norm.
    lower, upper : array of float, shape (m,)
        Ends of the intervals. They may exclude `strength`, which is itself biased.
    level : float
        Level of the intervals.
    n : int
        Number of replicates.
    """

    edges: Edges
    frequency: Floats
    strength: Floats
    mean_strength: Floats
    lower: Floats
    upper: Floats
    level: float
    n: int


def bootstrap(
    found: Discovery | SearchState,
    table: PackedTable,
    n: int = 200,
    *,
    model: PairwiseMRF | None = None,
    ridge: float | None = None,
    weights: ArrayLike | None = None,
    fdr: float | Literal["auto"] | None = "auto",
    fwer: float | Literal["auto"] | None = None,
    level: float = 0.95,
    n_jobs: int | None = 1,
    random_state: int = 0,
    on_replicate: OnReplicate | None = None,
) -> Bootstrap:
    """Repeat a fit on resampled rows, and return the frequencies and strengths of edges.

    Parameters
    ----------
    found : Discovery or SearchState
        A fit of whole edges to `table`.
    table : PackedTable
        The rows of the fit.
    n : int, default 200
        Number of replicates. The first replicates are the same for any number.
    model : PairwiseMRF, optional
        The network of a search, some of its edges; all of them by default.
    ridge : float, optional
        Ridge of the refits of a search's network; by default that of the search.
    weights : array of float, shape (table.n_rows,), optional
        Row weights of the fit. The number of drawn rows is their sum.
    fdr : float, None or "auto"
        False discovery rate of a replicate's network, which should be that of the fit; None for
        no such cut. "auto" is the level that a `Discovery` was cut with, `fdr` or `fwer`, and None
        for a `SearchState`.
    fwer : float, "auto" or None
        Chance of any false edge in a replicate's network; if given, it replaces `fdr`.
    level : float, default 0.95
        Level of the intervals.
    n_jobs : int, optional
        Threads, each with its own replicates; -1 for all cores. The result does not depend on it.
    random_state : int, default 0
    on_replicate : callable, optional
        Called after each replicate with the number done and `n`; returns True to stop.

    Warns
    -----
    RuntimeWarning
        If Ctrl-C or `on_replicate` ended the replicates early: the result uses those done.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import discover
    >>> data = make_chain(5, n_rows=1000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> replicated = bootstrap(discover(table), table, 50)
    >>> sorted(map(tuple, replicated.edges[replicated.frequency > 0.9].tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    """
    if isinstance(found, Discovery):
        growth, kept, ridge, file = found.search, found.model, found.ridge, found.file
        if fdr == "auto" and fwer is None:
            fdr, fwer = found.plan.fdr, found.plan.fwer
    else:
        growth, kept, file = found, model or found.model(), StageFile()
    cut = _cut(None if fdr == "auto" else fdr, fwer, growth)
    n_jobs = resolve_jobs(n_jobs)
    base = _check(growth, table, n, level, weights)
    draws = Draws(base, tuple(np.random.SeedSequence(random_state).spawn(n)))
    with one_blas_thread():  # replicates use the threads
        replicator = Replicator(growth, kept, table, draws, ridge)
        made = _make_all(replicator, n, n_jobs, on_replicate, file, f"replicate {random_state}")
        frequency = _frequency(growth, kept, table, replicator.pairs, draws, made, cut, n_jobs)
    return _summary(replicator, kept, list(made.values()), frequency, level)


def _check(
    growth: SearchState, table: PackedTable, n: int, level: float, weights: ArrayLike | None
) -> Floats:
    """Return the row weights; refuse fits that cannot be replicated."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a positive number of replicates, found {n!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, found {level}")
    if table.schema != growth.objective.schema:
        raise ModelError("the table's columns or categories are not those of the fit")
    base = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
    fitted = growth.objective.n_rows
    scaled = weigh(base).weights
    if abs(scaled.sum() - fitted) < abs(base.sum() - fitted):  # as the fit weighed them
        base = scaled
    if abs(base.sum() - fitted) > 1e-6 * fitted + 1e-9 and growth.objective.terms == 2:
        raise DataError(
            f"the fit was to rows that weigh {fitted:g} and these weigh {base.sum():g}: give the "
            "table and the weights of the fit"
        )
    return base


def _cut(
    fdr: float | None, fwer: float | Literal["auto"] | None, growth: SearchState
) -> Cut | None:
    if fdr is not None and not (isinstance(fdr, int | float) and 0 < fdr <= 1):
        raise ValueError(f"fdr must be above 0 and at most 1, None or 'auto', found {fdr!r}")
    plan = Plan(fdr=fdr, fwer=fwer)
    return Cut.of(plan, growth.objective.n_rows, growth.problem.rules) if plan.cuts else None


def _make_all(
    replicator: Replicator,
    n: int,
    n_jobs: int,
    on_replicate: OnReplicate | None,
    file: StageFile,
    name: str,
) -> dict[int, Replicate]:
    """Return the replicates by number, in order; fewer than `n` if interrupted.

    Always on threads other than the caller's, which is then free to receive Ctrl-C.
    """
    known = {k: file.find(f"{name}.{k}") for k in range(n)}
    with file.proper():
        made = {k: Replicate(**row) for k, row in known.items() if row is not None}
    reason = ""
    pool = ThreadPoolExecutor(min(n_jobs, n))
    try:
        with interruptible() as interruption:
            futures: dict[Future[Replicate], int] = {
                pool.submit(replicator.make, k): k for k in range(n) if k not in made
            }
            for future in as_completed(futures):
                k = futures[future]
                made[k] = future.result()
                file.put(f"{name}.{k}", made[k]._asdict(), part=len(made) < n)
                if on_replicate is not None and on_replicate(len(made), n) is True:
                    reason = "on_replicate asked to stop"
                elif interruption.asked:
                    reason = "interrupted"
                if reason:
                    break
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    if reason and len(made) < n:
        warnings.warn(
            f"{reason} after {len(made)} of {n} replicates: the result is that of those done",
            RuntimeWarning,
            stacklevel=3,
        )
    return dict(sorted(made.items()))


def _frequency(
    growth: SearchState,
    kept: PairwiseMRF,
    table: PackedTable,
    pairs: Edges,
    draws: Draws,
    made: dict[int, Replicate],
    cut: Cut | None,
    n_jobs: int,
) -> Floats:
    """Return the share of the replicates whose network has each pair; NaN if it has no test."""
    numbers, relaxed = list(made), not growth.policy.shrinks
    active = np.stack([replicate.active for replicate in made.values()])
    if cut is None and not relaxed:
        return np.asarray(active.mean(axis=0))
    worth = (active.mean(axis=0) >= _RARE) | (np.arange(len(pairs)) < len(growth.graph))
    rows = ConditionalRows(
        table, draws.base, growth.objective.features, sampling=weigh(draws.base).sampling
    )
    tests = Replicated(rows, kept.edges, n_jobs)
    p = np.ones(active.shape)
    chunk = max(1, _CHUNK_BYTES // (8 * table.n_rows))
    for first in range(0, len(numbers), chunk):
        weights = np.stack([draws.weights(k) for k in numbers[first : first + chunk]])
        p[first : first + chunk, worth] = tests.p_values(pairs[worth], weights)
    untold = np.isnan(p).any(axis=0)
    searched = np.ones_like(active) if relaxed else active
    p[~searched | untold] = 1.0
    n = len(table.schema)
    if cut is None:
        included = p <= min(_LARGEST_RATE, 1.0 / max(1, n - 1))
    else:
        included = np.stack([cut(pairs, row, 0) for row in p]) & searched
    return np.where(untold, np.nan, included.mean(axis=0))


def _summary(
    replicator: Replicator,
    kept: PairwiseMRF,
    made: list[Replicate],
    frequency: Floats,
    level: float,
) -> Bootstrap:
    first = find_pairs(kept.layout.edges, replicator.pairs, kept.layout.n_variables)
    others = np.setdiff1d(np.flatnonzero(frequency > 0), first)
    others = others[np.argsort(-frequency[others], kind="stable")]
    chosen = np.concatenate((first, others))
    again = np.stack([replicate.strengths for replicate in made])
    moved = np.stack([replicate.moved for replicate in made])
    lower, upper = strength_intervals(replicator.strengths, again, moved, level)
    absent = np.full(len(others), np.nan)
    # From norms of tables to the strengths of the model, which for a pair of two states each, or
    # of linear scores, are proportional.
    norms = np.maximum(replicator.strengths, np.finfo(float).tiny)
    scale, most = kept.edge_strengths() / norms, np.inf
    if "strength" in kept.edge_columns:
        most = 1.0
    whole = [
        np.concatenate((np.minimum(scale * column, most), absent))
        for column in (replicator.strengths, again.mean(axis=0), lower, upper)
    ]
    return Bootstrap(
        replicator.pairs[chosen],
        frequency[chosen],
        strength=whole[0],
        mean_strength=whole[1],
        lower=whole[2],
        upper=whole[3],
        level=level,
        n=len(made),
    )


def strength_intervals(
    strength: Floats, again: Floats, moved: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return intervals of norms of tables, corrected for the bias of a norm.

    `strength` is ``||w||`` of the fit; `again` and `moved` are ``||w*||`` and ``||w* - w||`` of the
    replicates, one row each.

    >>> error = np.random.default_rng(0).normal(size=(5000, 1, 9))  # of nine entries
    >>> table = 12.0 * np.eye(9)[:1]
    >>> again, moved = np.linalg.norm(table + error, axis=2), np.linalg.norm(error, axis=2)
    >>> lower, upper = strength_intervals(np.array([12.0]), again, moved, 0.95)
    >>> lower.round(1), upper.round(1)
    (array([9.7]), array([13.7]))
    """
    error = moved**2
    # w'e = (||w + e||^2 - ||w||^2 - ||e||^2) / 2
    longest = np.maximum(strength, np.finfo(np.float64).tiny)
    along = (again**2 - strength**2 - error) / (2.0 * longest)
    across = np.maximum(0.0, error - along**2)
    length = np.sqrt(np.maximum(0.0, strength**2 - across)) - along
    length = np.where(across > strength**2, 0.0, np.maximum(0.0, length))
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(length, (tail, 1.0 - tail), axis=0)
    return lower, upper
