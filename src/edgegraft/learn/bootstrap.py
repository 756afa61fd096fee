"""How often the edges of a network come again on other samples, and how sure their strengths are.

Nothing is searched or fitted again: both follow from what each row does at the fit.

**Frequency.** A replicate weights the rows by how often each was drawn. A pair is in its network if
its q-value over all pairs passes the cut of the fit (`fdr` or `fwer`), or the default one of a fit
that was not cut. The q-values are first-order approximations for another sample of as many rows,
beside the edges of the network
(:mod:`~edgegraft.conditional.replicates`): an edge that just passes in the fit has a frequency of
about one half, one with a q-value of 1e-6 one near 1, and a pair that chance alone brought near has
a small one. If the rows are too few to test an edge its frequency is NaN.

**Interval.** Strengths are sizes of effects, and their intervals those of the effects
(:mod:`~edgegraft.learn.effects`). They are for the graph of the network: they ignore that the same
rows chose it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.coordinates import state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.replicates import Replicated
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import weigh
from edgegraft.config import Plan
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import interruptible, one_blas_thread, resolve_jobs
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import ModelError
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.grafting.problem import ridge_of
from edgegraft.learn.cut import Cut
from edgegraft.learn.effects import LEVEL, edge_effects
from edgegraft.learn.pair_ranking import PairRanking
from edgegraft.model import PairwiseMRF
from edgegraft.optimize.fit import fit_parameters
from edgegraft.table import PackedTable

OnPairs = Callable[[int, int], object]


@dataclass(frozen=True)
class _Rule:
    """Which pairs are tested on replicates."""

    others: int = 2  # pairs per column that the network lacks, the likeliest: few ever come again
    chunk: int = 16  # pairs between two reports of progress
    nbytes: int = 1 << 28  # row weights of replicates that are held
    ridge_rows: float = 0.1  # ridge of the fit whose effects are shown: negligible, as in the tests


_RULE = _Rule()


class Bootstrap(NamedTuple):
    """Frequencies of edges over replicates, and strengths with their intervals.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
        The edges of the network, in its order; then other pairs that some replicates include,
        most frequent first.
    frequency : array of float, shape (m,)
        Share of the replicates whose network has the edge; NaN if replicates cannot be tested
        for it.
    strength : array of float, shape (m,)
        Strengths of the network's edges; NaN for other pairs, here and below.
    lower, upper : array of float, shape (m,)
        Ends of the intervals of the sizes of effects; NaN if rows cannot tell.
    level : float
        Level of the intervals.
    n : int
        Number of replicates.
    """

    edges: Edges
    frequency: Floats
    strength: Floats
    lower: Floats
    upper: Floats
    level: float
    n: int


def bootstrap(
    model: PairwiseMRF,
    table: PackedTable,
    n: int = 200,
    *,
    plan: Plan | None = None,
    ranking: PairRanking | None = None,
    weights: ArrayLike | None = None,
    level: float = LEVEL,
    n_jobs: int | None = 1,
    random_state: int = 0,
    on_pairs: OnPairs | None = None,
) -> Bootstrap:
    """Return the frequencies of a network's edges on resampled rows, and intervals of strengths.

    Parameters
    ----------
    model : PairwiseMRF
        A network that was fitted to `table`.
    table : PackedTable
        The rows of the fit.
    n : int, default 200
        Number of replicates. The first replicates are the same for any number.
    plan : Plan, optional
        Settings of the fit, by which networks of replicates are cut as well.
    ranking : PairRanking, optional
        The pairs in the order of evidence; the first of those outside the network are tested too.
    weights : array of float, shape (table.n_rows,), optional
        Row weights of the fit. The number of drawn rows is their sum.
    level : float, default 0.95
        Level of the intervals.
    n_jobs : int, optional
        Threads; -1 for all cores. The result does not depend on it.
    random_state : int, default 0
    on_pairs : callable, optional
        Called with the number of pairs that are done and of all pairs; returns True to stop.

    Warns
    -----
    RuntimeWarning
        If Ctrl-C or `on_pairs` ended it early: pairs that were not done have no frequency.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> from edgegraft.learn import discover
    >>> data = make_chain(5, n_rows=1000, couplings="ising", random_state=0)
    >>> table = PackedTable.from_codes(data.X.astype(int))
    >>> replicated = bootstrap(discover(table).model, table, 50)
    >>> sorted(map(tuple, replicated.edges[replicated.frequency > 0.9].tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a positive number of replicates, found {n!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, found {level}")
    if table.schema != model.schema:
        raise ModelError("the table's columns or categories differ from the fit's")
    base = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
    plan, n_jobs, m = plan or Plan(), resolve_jobs(n_jobs), model.n_edges
    pairs = model.edges
    if ranking is not None:
        others = ranking.pairs[~ranking.kept][: _RULE.others * len(table.schema)]
        pairs = np.concatenate((pairs, others))
    features = None
    if table.schema.scored:
        features = Features.of(table.schema, np.concatenate(state_weights(table, base)))
    with one_blas_thread():  # pairs use the threads
        rows = ConditionalRows(table, base, features, sampling=weigh(base).sampling)
        p = _p_values(rows, model, pairs, Draws(base, n, random_state), n_jobs, on_pairs)
        # The network's own model is shrunk, and fitted to shares.
        ridge = ridge_of(_RULE.ridge_rows, float(base.sum()))
        fitted, _ = fit_parameters(
            table, model.edges, ridge=ridge, start=model, n_jobs=n_jobs, weights=base
        )
        effects = edge_effects(fitted, rows, level, n_jobs=n_jobs)
    frequency = _frequency(p, pairs, plan, table, float(base.sum()))
    again = np.flatnonzero(frequency[m:] > 0) + m
    again = again[np.argsort(-frequency[again], kind="stable")]
    chosen = np.concatenate((np.arange(m), again))
    ends = np.sort(np.abs((effects.low, effects.high)), axis=0)
    ends[0, (effects.low <= 0) & (effects.high >= 0)] = 0.0
    absent = np.full(len(again), np.nan)
    reported = dict(model.edge_columns).get("strength", effects.strength)
    strength, lower, upper = (np.concatenate((column, absent)) for column in (reported, *ends))
    return Bootstrap(pairs[chosen], frequency[chosen], strength, lower, upper, level, int(n))


class Draws(NamedTuple):
    """Row weights of replicates.

    ``round(sum of the base weights)`` rows are drawn, each with a chance in proportion to its
    base weight, and weighed so that their sum is that of the base weights. For integers that is
    to draw from the repeated rows.
    """

    base: Floats
    n: int
    seed: int

    def weights(self, k: int) -> Floats:
        """Return the row weights of the `k`-th replicate; each has a seed of its own."""
        total = float(self.base.sum())
        size = max(1, round(total))
        rng = np.random.default_rng([self.seed, k])
        return np.asarray(rng.multinomial(size, self.base / total) * (total / size))


def _p_values(
    rows: ConditionalRows,
    model: PairwiseMRF,
    pairs: Edges,
    draws: Draws,
    n_jobs: int,
    on_pairs: OnPairs | None,
) -> Floats:
    """Return the p-value of every pair on every replicate; NaN if it is not tested."""
    p, tests = np.full((draws.n, len(pairs)), np.nan), Replicated(rows, model.edges, n_jobs)
    held = max(1, _RULE.nbytes // (8 * rows.n_rows))  # replicates; pairs are fitted for each part
    parts, done, reason = range(0, draws.n, held), 0, ""
    weights = np.empty((0, rows.n_rows))
    with interruptible() as interruption:
        for first, k in product(parts, range(0, len(pairs), _RULE.chunk)):
            if not k:
                weights = np.stack(
                    [draws.weights(r) for r in range(first, min(first + held, draws.n))]
                )
            chunk = slice(k, k + _RULE.chunk)
            p[first : first + held, chunk] = tests.p_values(pairs[chunk], weights)
            done += len(pairs[chunk])
            if on_pairs is not None and on_pairs(done // len(parts), len(pairs)) is True:
                reason = "on_pairs asked to stop"
            elif interruption.asked:
                reason = "interrupted"
            if reason:
                break
    if reason and done < len(parts) * len(pairs):
        warnings.warn(
            f"{reason} after {done // len(parts)} of {len(pairs)} pairs: the others have no "
            "frequency",
            RuntimeWarning,
            stacklevel=3,
        )
    return p


def _frequency(p: Floats, pairs: Edges, plan: Plan, table: PackedTable, n_rows: float) -> Floats:
    """Return the share of the replicates whose network has each pair; NaN if it has no test."""
    untested = np.isnan(p).any(axis=0)
    p = np.where(untested, 1.0, p)
    rules = PairRules.read(plan.rules, table.schema.names)
    cut = Cut.of(plan if plan.cuts else Plan(), n_rows, rules)
    included = np.stack([cut(pairs, row, 0) for row in p])
    return np.where(untested, np.nan, included.mean(axis=0))
