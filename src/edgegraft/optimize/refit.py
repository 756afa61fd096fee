"""A learned model fitted again by likelihood, as far as rows that it has not seen gain by it.

    L(theta) + pull / N * ||w - w_0||^2,      w_0 the edges of the first fit

Pulled strongly, the model stays what the pseudolikelihood and its penalty made of it; without, it
is that of maximum likelihood, which fits noise. A share of the rows is held out, the first fit is
repeated without them, and the pull becomes weaker as long as they gain,

    gain = <theta - theta_0, mean of held-out rows> - (log Z - log Z_0).

The difference of log Z is Bennett's ratio of the two models' draws (1976), which is precise for
models that are close if chains reach all of their modes. If annealing finds another difference, by
more than both errors explain, they did not, and annealing counts. Then all rows are fitted with the
best pull.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit

from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts import PairCounts
from edgegraft.errors import DataError, SettingError
from edgegraft.inference.ais import annealed_log_partition
from edgegraft.inference.persistent import HostDraws, PersistentChains
from edgegraft.ingest.rows import read_table
from edgegraft.model import PairwiseMRF
from edgegraft.objective.features import Features
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import GroupWeight, make_penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.objective.scored import featured
from edgegraft.optimize.by_chains import (
    STEPS,
    Climb,
    Fit,
    climb,
    make_chains,
    pull_to,
    warn_unsettled,
)
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

_RECORDS, _THINNING = 16, 8  # draws per chain for the ratio of two models, and sweeps between
_DISAGREE = 3.0  # standard errors between two estimates of which one is wrong
_MIN_HELD_OUT = 20  # rows
_START_TOL, _START_STEPS = 1e-4, 200  # of the pseudolikelihood without held-out rows
_STRONGEST, _WEAKER, _MAX_PULLS = 30.0, 3.0, 8  # the first pull, and the factor to the next
_SAME = 1e-6  # largest difference of tables that are made of scores


class Gain(NamedTuple):
    """Log-likelihood per row of one model less that of another, on rows that neither has seen."""

    value: float
    error: float  # standard error


class Refit(NamedTuple):
    """How a model was fitted again by likelihood.

    Attributes
    ----------
    gain : Gain
        Log-likelihood per held-out row of the new fit less that of the old, both made without
        the held-out rows.
    pull : float
        The best pull to the first fit, in rows; infinite if the model is returned as it was.
    tried : list of (float, Gain)
        Pulls and what held-out rows gained.
    residual : float
        Largest difference between a share of the model and what the fit wants it to be.
    """

    gain: Gain
    pull: float
    tried: list[tuple[float, Gain]]
    residual: float


def refit_by_likelihood(
    model: PairwiseMRF,
    X: Any,
    penalty: float = 0.0,
    ridge: float = 0.0,
    *,
    weights: ArrayLike | None = None,
    held_out: float = 0.2,
    n_steps: int = STEPS,
    n_chains: int | None = None,
    n_jobs: int | None = 1,
    device: str = "cpu",
    random_state: int = 0,
) -> tuple[PairwiseMRF, Refit]:
    """Fit a learned model again by likelihood, with persistent chains.

    The graph stays. How far the parameters move is chosen by held-out rows; if those do not gain,
    the model is returned as it was.

    Parameters
    ----------
    model : PairwiseMRF
        Fitted to the rows by pseudolikelihood.
    X : table
        The rows that it was fitted to.
    penalty, ridge : float, default 0.0
        Of that fit; see :func:`fit_parameters`.
    weights : array of float, shape (n_rows,), optional
    held_out : float, default 0.2
        Share of the rows that are held out.
    n_steps : int, default 100
    n_chains : int, optional
        512 by default, 8,192 on a GPU.
    n_jobs : int, default 1
    device : {"cpu", "cuda", "auto", "torch"}
        Where the chains run; see :class:`~edgegraft.GraftedMRF`.
    random_state : int, default 0

    Returns
    -------
    model : PairwiseMRF
    refit : Refit

    Warns
    -----
    ConvergenceWarning
        If shares of the model still differ by more than .01 from what they should be.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> both = rng.integers(0, 2, (2000, 1))
    >>> X = both ^ (rng.random((2000, 5)) < 0.1)
    >>> from edgegraft.optimize import fit_parameters
    >>> first, _ = fit_parameters(X, ridge=0.01)
    >>> again, refit = refit_by_likelihood(first, X, ridge=0.01)
    >>> again.n_edges == first.n_edges, refit.gain.error < 0.01
    (True, True)
    """
    table = read_table(X, model.schema)
    chains = make_chains(n_chains, n_jobs, device, random_state)
    checked = TableRows(table, weights).weights
    given = np.ones(table.n_rows) if checked is None else checked
    out, rows = _split(table, given, held_out, random_state)
    refitting = _Refitting(model, table, given, chains, n_steps)
    tried = refitting.path(np.where(out, 0.0, given), rows, (penalty, ridge))
    pull, gain = max(tried, key=lambda each: each[1].value)
    if gain.value <= 0:
        return model, Refit(gain, np.inf, tried, 0.0)
    found = refitting.climb(refitting.first, refitting.first, given, pull)
    warn_unsettled(found)
    theta = refitting.expand(found.theta)
    answer = PairwiseMRF(model.schema, model.edges, theta, model.edge_columns)
    return answer, Refit(gain, pull, tried, found.residual)


class _HeldOut(NamedTuple):
    """Complete rows that are not fitted."""

    codes: Integers  # (n_rows, n_variables)
    weights: Floats


def _split(
    table: PackedTable, weights: Floats, held_out: float, seed: int
) -> tuple[Mask, _HeldOut]:
    """Return which rows are held out, and the complete ones among them."""
    if not 0.0 < held_out < 1.0:
        raise SettingError("held_out", f"must be between 0 and 1, found {held_out}")
    out = np.random.default_rng(seed).random(table.n_rows) < held_out
    codes, own = table.take(np.flatnonzero(out)).codes().astype(np.int64), weights[out]
    used = (codes >= 0).all(axis=1) & (own > 0)
    if used.sum() < _MIN_HELD_OUT:
        raise DataError(
            f"only {used.sum()} complete rows can be held out, and {_MIN_HELD_OUT} are needed to "
            "see whether a fit by likelihood is better: raise held_out, or impute missing cells"
        )
    return out, _HeldOut(codes[used], own[used])


class _Refitting:
    """A model's graph and parameters, to be fitted to rows with any weights."""

    def __init__(
        self,
        model: PairwiseMRF,
        table: PackedTable,
        weights: Floats,
        chains: PersistentChains,
        n_steps: int,
    ) -> None:
        self._rows, self._chains = TableRows(table, None, chains.n_jobs), chains
        self._weights, self._n_steps = weights, n_steps
        self._features: Features | None = None
        self._tables = model.layout
        self.layout, self.first = model.layout, model.theta
        scored = featured(Pseudolikelihood(self._weigh(weights)))
        if scored.features is not None:
            first = scored.features.weights_of(model.theta, model.edges)
            layout = scored.layout(model.edges)
            # Tables that are not made of scores alone are fitted as tables.
            if np.allclose(scored.expand(first, layout), model.theta, atol=_SAME):
                self._features, self.layout, self.first = scored.features, layout, first

    def expand(self, theta: Floats) -> Floats:
        """Return the tables of parameters."""
        if self._features is None:
            return theta
        return self._features.expand(theta, self.layout)

    def path(
        self, weights: Floats, rows: _HeldOut, strengths: tuple[float, float]
    ) -> list[tuple[float, Gain]]:
        """Return ever weaker pulls, until rows that are not fitted gain less, and their gains."""
        start = self._start(weights, strengths)
        before, theta, pull = self.expand(start), start, _STRONGEST
        draws = replace(self._chains, n_sweeps=_THINNING)
        tried: list[tuple[float, Gain]] = []
        for _ in range(_MAX_PULLS):
            theta = self.climb(theta, start, weights, pull).theta
            gain = gain_of(draws, self._tables, before, self.expand(theta), *rows)
            best = max((each.value for _, each in tried), default=-gain.error)
            tried.append((pull, gain))
            if gain.value <= best:
                break
            pull /= _WEAKER
        return tried

    def climb(self, start: Floats, anchor: Floats, weights: Floats, pull: float) -> Climb:
        """Return the likelihood's answer, pulled to `anchor`."""
        fit = Fit.of(PairCounts(self._weigh(weights)), self.layout, self._features)
        towards = pull_to(anchor, self.layout, pull / weights.sum())
        return climb(fit, self._chains, start, towards, self._n_steps)

    def _start(self, weights: Floats, strengths: tuple[float, float]) -> Floats:
        """Return the first fit again, to other weights; noise of fewer rows is penalised more."""
        fewer = float(self._weights.sum() / weights.sum())
        loss: Objective = Pseudolikelihood(self._weigh(weights))
        if self._features is not None:
            loss = featured(loss, self._features)
        # As in the path of models for prediction.
        weight: GroupWeight = "sqrt" if self._features is None else "noise"
        rule = make_penalty(
            strengths[0] * fewer**0.5, strengths[1] * fewer, group_weight=weight
        ).bound(loss)
        stopping = Stopping(_START_TOL, _START_STEPS)
        return minimize(loss, rule, self.layout, self.first, stopping, quiet=True).theta

    def _weigh(self, weights: Floats) -> TableRows:
        same = weights[0] > 0 and bool((weights == weights[0]).all())
        return self._rows if same else self._rows.reweighted(weights, self._chains.n_jobs)


def gain_of(
    chains: PersistentChains,
    layout: Layout,
    before: Floats,
    after: Floats,
    rows: Integers,
    weights: Floats,
) -> Gain:
    """Return what complete rows gain in log-likelihood from one model to another.

    Parameters
    ----------
    chains : PersistentChains
    layout : Layout
    before, after : array of float
        Log-potentials of the two models.
    rows : array of int, shape (n_rows, n_variables)
        States.
    weights : array of float, shape (n_rows,)
    """
    change = after - before
    forward, backward = (_draw(chains, layout, theta, change) for theta in (before, after))
    ratio, annealed = bennett(forward, backward), _anneal(chains, layout, (before, after), rows)
    if abs(annealed.value - ratio.value) > _DISAGREE * np.hypot(annealed.error, ratio.error):
        ratio = annealed
    own = HostDraws(layout, rows.T.astype(np.uint16)).energies(change)
    share = weights / weights.sum()
    mean = float(share @ own)
    error = np.hypot(ratio.error, np.sqrt(np.square(share * (own - mean)).sum()))
    return Gain(mean - ratio.value, float(error))


def _anneal(
    chains: PersistentChains, layout: Layout, models: tuple[Floats, Floats], rows: Integers
) -> Gain:
    """Return log Z_1 - log Z_0 and its standard error, by annealing."""
    there = "cuda" if chains.device is not None and chains.device.name == "cuda" else "cpu"
    ends = [
        annealed_log_partition(
            layout,
            theta,
            random_state=chains.random_state,
            n_jobs=chains.n_jobs,
            device=there,
            rows=rows,
        )
        for theta in models
    ]
    error = float(np.hypot(ends[0].standard_error, ends[1].standard_error))
    return Gain(ends[1].value - ends[0].value, error)


def bennett(forward: Floats, backward: Floats) -> Gain:
    """Return log Z_1 - log Z_0 and its standard error.

    Parameters
    ----------
    forward, backward : array of float
        The difference of the log-potentials, model 1 less model 0, in draws of model 0 and of
        model 1, as many of each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)  # densities exp(-x^2/2) and exp(-(x-1)^2/2 + 2)
    >>> x, y = rng.normal(size=20000), rng.normal(1.0, 1.0, 20000)
    >>> found = bennett(x + 1.5, y + 1.5)
    >>> bool(abs(found.value - 2.0) < 4 * found.error < 0.1)
    True
    """
    ends = np.concatenate((forward, backward))
    low, high = float(ends.min()) - 50.0, float(ends.max()) + 50.0

    def unbalanced(c: float) -> float:
        return float(expit(forward - c).mean() - expit(c - backward).mean())

    c = float(brentq(unbalanced, low, high, xtol=1e-10))
    variance = 0.0
    for part in (expit(forward - c), expit(c - backward)):
        variance += float(part.var()) / len(part) / float(part.mean()) ** 2
    return Gain(c, variance**0.5)


def _draw(chains: PersistentChains, layout: Layout, theta: Floats, change: Floats) -> Floats:
    """Return `change` in the states of chains at `theta`, several states per chain."""
    state, found = chains.init(layout), []
    for _ in range(_RECORDS):
        _, state, _ = chains.run(theta, state)
        found.append(state.draws().energies(change))
    return np.concatenate(found)
