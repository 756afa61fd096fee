"""The log-partition function by annealed importance sampling, with its standard error.

    Z / Z_0 = E[w],      log w = sum_k (beta_{k+1} - beta_k) W(x_k)

Chains start in the independent model ``exp(sum_i u_i)``, whose ``Z_0`` is a product of sums, and
are led to the full one through inverse temperatures ``0 = beta_0 < ... < beta_T = 1`` of the edge
terms ``W`` (Neal, "Annealed importance sampling", 2001). The mean weight is unbiased for any
number of temperatures; more of them make it precise.

Three things make it so in practice. The zero-sum gauge puts into ``u`` all that node terms can
say, so the start is near and the answer does not depend on how the parameters are written.
Temperatures are spaced by a pilot run such that each step adds the same variance. And their number
is doubled until the weights are even enough. A zero entry is a finite penalty on the way, and at
the end a chain that still pays it weighs nothing: again unbiased.

A mode that no chain finds is missing from the mean weight, and the spread of the weights does not
show it. So chains are led a second way: from the independent model that has the shares of given
rows, or else of chains around the likeliest state. Both means are too small rather than too large,
so the second must not be larger. And from these states chains are led back to the start of a path:
the mean of ``1 / w`` estimates ``Z_0 / Z``, and ``Z`` comes out too large if chains seldom reach
the states from there (Grosse et al., "Sandwiching the marginal likelihood", 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.backend import Backend, find_backend
from edgegraft.core.types import Floats
from edgegraft.errors import DataError
from edgegraft.inference.annealing import (
    AnnealingPath,
    Codes,
    centred,
    from_shares,
    lead_chains,
    make_path,
    respace,
)
from edgegraft.inference.bp import BeliefPropagation
from edgegraft.inference.chains import (
    Chains,
    RandomState,
    are_possible,
    check_at_least,
    make_streams,
    scattered,
)


@dataclass(frozen=True)
class _Rule:
    """How long chains are led, and when estimates agree."""

    first_steps: int = 64  # temperatures of the pilot run
    max_steps: int = 4096
    even: float = 1 / 3  # effective number of weights, as a share of the chains, that is enough
    few: int = 32  # effective number below which the spread reveals little of the weights' tail
    settle: int = 100  # sweeps in the model by which chains that start in rows settle
    alike: int = 8  # states that all variables have together where a likely state is looked for
    sure: float = 3.0  # standard errors by which estimates differ,
    slack: float = 0.02  # and nats that do not matter
    negligible: float = 4.0  # a mode with a smaller share of Z than exp(-4) does not count;
    uneven: float = 1.4  # fewer chains, by a factor of four, may reach one that does


_RULE = _Rule()


class AnnealedLogPartition(NamedTuple):
    """An estimate of log Z.

    Attributes
    ----------
    value : float
        Minus infinity if no chain ended in a possible state.
    standard_error : float
        Of `value`, from the spread of the weights. If few chains carry the weight, the
        distance to what log-normal weights of the same mean and variance would give is added.
    effective_sample_size : float
        ``(sum w)^2 / sum w^2``, out of the number of chains.
    missed : float
        Nats by which another way to log Z differs from the first, or the way back from `value`, if
        that is more than their errors explain; otherwise 0. Log Z is not known then.
    """

    value: float
    standard_error: float
    effective_sample_size: float
    missed: float = 0.0

    @property
    def reliable(self) -> bool:
        """Whether the standard error can be trusted: many chains carry the weight, ways agree."""
        return self.effective_sample_size >= _RULE.few and self.missed == 0.0


def annealed_log_partition(
    layout: Layout,
    theta: Floats,
    *,
    n_chains: int = 256,
    n_temperatures: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = 1,
    device: str = "cpu",
    rows: ArrayLike | None = None,
) -> AnnealedLogPartition:
    """Estimate log Z of a pairwise model of any treewidth.

    Parameters
    ----------
    layout : Layout
    theta : array of float, shape (layout.n_parameters,)
        Log-potentials; minus infinity forbids a state or a pair of states.
    n_chains : int, default 256
        Independent chains; the standard error falls with the root of their number.
    n_temperatures : int, optional
        Steps of each chain. By default they are doubled, to at most 4096, until the effective
        number of weights is a third of the chains, and once more for the answer.
    random_state : int, numpy.random.Generator or None, default None
    n_jobs : int or None, default 1
        Threads; -1 uses all cores. The estimate does not depend on it.
    device : {"cpu", "cuda", "auto", "torch"}
        Where the chains run; see :class:`~edgegraft.GraftedMRF`. A GPU takes thousands of chains
        as fast as a hundred.
    rows : array of int, shape (n_rows, n_variables), optional
        States that the model should find likely, such as the rows that it was fitted to. The
        estimate is checked from there as well; otherwise from the likeliest state that is found.

    Returns
    -------
    AnnealedLogPartition
        ``(value, standard_error, effective_sample_size, missed)``.

    Raises
    ------
    ModelError
        If `theta` does not fit the layout or is not finite or minus infinity.

    Notes
    -----
    A mode that neither way leads to, and that has none of the rows, is missing from the estimate,
    and nothing shows it: on average the estimate of log Z is too small rather than too large.

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    >>> theta = np.array([0.0] * 6 + [1.0, 0.0, 0.0, 1.0] * 3)
    >>> found = annealed_log_partition(layout, theta, random_state=0)
    >>> exact = np.log(2 * np.exp(3) + 6 * np.exp(1))
    >>> bool(abs(found.value - exact) < 4 * found.standard_error < 0.1)
    True
    """
    goal = _RULE.max_steps if n_temperatures is None else n_temperatures
    check_at_least(n_chains=(n_chains, 2), n_temperatures=(goal, 2))
    there = find_backend(device)
    hard, start = centred(layout, np.array(theta, np.float64))
    if layout.n_edges == 0:
        return AnnealedLogPartition(start, 0.0, float(n_chains))
    annealing = _Annealing(n_chains, np.random.default_rng(random_state), n_jobs, there)
    path = make_path(layout, hard, start)
    first = annealing.forward(path, goal, n_temperatures)
    return _checked(annealing, path, first, rows)


class _Annealed(NamedTuple):
    """Chains that have been led along a path."""

    found: AnnealedLogPartition
    betas: Floats
    alive: float  # share of the chains that ended in a possible state


class _Annealing(NamedTuple):
    """Chains, and where they run."""

    n_chains: int
    rng: np.random.Generator
    n_jobs: int | None
    device: Backend | None

    def forward(self, path: AnnealingPath, goal: int, fixed: int | None) -> _Annealed:
        """Lead chains to the model, by ever more steps or a fixed number."""
        steps = min(_RULE.first_steps, goal)
        betas = np.linspace(0.0, 1.0, steps + 1)
        last = steps == goal
        while True:
            log_weights, energies, _ = self.lead(path, betas)
            found = _estimate(log_weights, path.start)
            if last:
                return _Annealed(found, betas, float(np.isfinite(log_weights).mean()))
            # The run after an even one is the last: an estimate must not be chosen by its weights.
            even = found.effective_sample_size >= _RULE.even * self.n_chains
            steps = fixed or min(2 * steps, goal)
            last = even or steps == goal
            betas = respace(betas, energies, steps)

    def back(self, path: AnnealingPath, there: _Annealed, rows: Codes) -> AnnealedLogPartition:
        """Lead chains from rows, settled in the model, back to the start of a path."""
        betas = np.concatenate((np.ones(_RULE.settle), there.betas[::-1]))
        log_weights, _, _ = self.lead(path, betas, self._pick(rows))
        value, error, size, _ = _estimate(log_weights, 0.0)
        # From a mode that is hard to reach weights are uneven, which must not excuse a difference.
        error = min(error, 1.0)
        return AnnealedLogPartition(path.start - value + np.log(there.alive), error, size)

    def settle(self, path: AnnealingPath, rows: Codes) -> Codes:
        """Return the states of chains that start in rows, after some sweeps in the model."""
        return self.lead(path, np.ones(_RULE.settle + 1), self._pick(rows))[2]

    def likeliest(self, path: AnnealingPath, starts: Codes) -> Codes:
        """Return the states of chains that settled from the start with the likeliest ones."""
        which = np.arange(self.n_chains) % starts.shape[1]
        _, terms, ends = self.lead(path, np.ones(_RULE.settle + 1), starts[:, which])
        nodes = path.theta[path.layout.node_offset[:-1, None] + ends].sum(axis=0)
        heights = np.bincount(which, nodes + terms[-1]) / np.bincount(which)
        return np.ascontiguousarray(ends[:, which == heights.argmax()])

    def lead(
        self, path: AnnealingPath, betas: Floats, starts: Codes | None = None
    ) -> tuple[Floats, Floats, Codes]:
        """Return the log weights of chains, their edge terms at all temperatures, and the ends."""
        chains = scattered(path.layout, make_streams(self.rng, self.n_chains))
        if starts is not None:
            chains = Chains(starts, chains.streams)
        return lead_chains(path, betas, chains, self.n_jobs, self.device)

    def _pick(self, rows: Codes) -> Codes:
        picked = self.rng.integers(rows.shape[1], size=self.n_chains)
        return np.ascontiguousarray(rows[:, picked])


def _checked(
    annealing: _Annealing, path: AnnealingPath, first: _Annealed, rows: ArrayLike | None
) -> AnnealedLogPartition:
    """Return log Z after a second way to it, and the way back from given rows."""
    starts = _candidates(path) if rows is None else _possible_rows(path, rows)
    if not starts.size or first.found.value == -np.inf:
        return first.found
    states = (annealing.likeliest if rows is None else annealing.settle)(path, starts)
    other, steps = from_shares(path, states), len(first.betas) - 1
    second = annealing.forward(other, steps, steps)
    excess = _excess(second.found, first.found)
    if excess > 0 and rows is None:
        return second.found._replace(missed=excess)
    if first.found.value - second.found.value > _RULE.negligible:
        return first.found  # what is around the states hardly counts
    # Rows are draws of the model if it fits; other states come from one of its modes.
    drawn = rows is not None and _excess(first.found, second.found) == 0
    ways = [(path, first), (other, second)]
    if excess > 0 or (second.found.reliable and not first.found.reliable):
        ways = ways[1:]
    for way, there in ways:
        back = annealing.back(way, there, states)
        missed = _excess(back, there.found, _RULE.slack if drawn else _RULE.uneven)
        if missed == 0.0 or not drawn:
            break
    return there.found._replace(missed=missed)


def _excess(
    one: AnnealedLogPartition, other: AnnealedLogPartition, slack: float = _RULE.slack
) -> float:
    """Return how much larger one estimate is, zero if their errors and the slack explain it."""
    larger = one.value - other.value
    errors = np.hypot(one.standard_error, other.standard_error)
    return float(larger) if larger > _RULE.sure * errors + slack else 0.0


def _candidates(path: AnnealingPath) -> Codes:
    """Return states that may be likely: of max-product, and of variables that are all alike."""
    found = BeliefPropagation().map(path.theta, path.layout).assignment
    alike = np.arange(min(_RULE.alike, path.layout.states.max())) + 0 * path.layout.states[:, None]
    alike = np.minimum(alike, path.layout.states[:, None] - 1)
    return np.ascontiguousarray(np.column_stack((found, alike)).astype(np.uint16))


def _possible_rows(path: AnnealingPath, rows: ArrayLike) -> Codes:
    """Return the rows that are complete and possible, one per column."""
    codes = np.asarray(rows)
    n = path.layout.n_variables
    if codes.ndim != 2 or codes.shape[1] != n or codes.dtype.kind not in "iu":
        raise DataError(f"rows must be integers of shape (n_rows, {n}), found {codes.shape}")
    if (codes >= path.layout.states).any():
        raise DataError("rows hold a state that the model does not have")
    state = np.ascontiguousarray(codes[(codes >= 0).all(axis=1)].T.astype(np.uint16))
    return state[:, are_possible(path.layout, path.hard, state)]


def _estimate(log_weights: Floats, start: float) -> AnnealedLogPartition:
    n = len(log_weights)
    alive = log_weights[np.isfinite(log_weights)]
    if len(alive) == 0:
        return AnnealedLogPartition(-np.inf, np.inf, 0.0)
    weights = np.exp(log_weights - alive.max())
    size = float(weights.sum() ** 2 / (weights**2).sum())
    value = start + float(alive.max() + np.log(weights.mean()))
    # Delta method: the relative error of the mean weight.
    variance = (n / size - 1.0) / (n - 1)
    if size < _RULE.few:
        cumulant = start + float(alive.mean() + alive.var() / 2 + np.log(len(alive) / n))
        variance += 1.0 / size + (value - cumulant) ** 2
    return AnnealedLogPartition(value, float(np.sqrt(variance)), size)
