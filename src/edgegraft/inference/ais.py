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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.device import Device, find_device
from edgegraft.inference.chains import (
    Chains,
    RandomState,
    are_possible,
    check_at_least,
    make_streams,
    put_on_device,
    run_chains,
    scattered,
    tables_of,
)
from edgegraft.inference.messages import floored
from edgegraft.kernels.gibbs.gibbs_tables import GibbsTables
from edgegraft.kernels.gibbs.sweeps import anneal
from edgegraft.kernels.solver.gauge import to_zero_sum

#: Joint states of a group of neighbours: small, for tables are new at every temperature.
_GROUP_ROWS = 8
#: Temperatures of the pilot run, and the most that are tried.
_FIRST_STEPS, _MAX_STEPS = 64, 4096
#: The weights are even enough if their effective number is this share of the chains.
_EVEN = 1 / 3
#: Below this effective number the spread of the weights reveals little of their tail.
_FEW = 32
#: How far a zero entry lies below all other entries of its table while chains are led.
_PENALTY = 20.0


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
    """

    value: float
    standard_error: float
    effective_sample_size: float

    @property
    def reliable(self) -> bool:
        """Whether enough chains carry the weight for the standard error to be trusted."""
        return self.effective_sample_size >= _FEW


def annealed_log_partition(
    layout: Layout,
    theta: Floats,
    *,
    n_chains: int = 256,
    n_temperatures: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = 1,
    device: str = "cpu",
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

    Returns
    -------
    AnnealedLogPartition
        ``(value, standard_error, effective_sample_size)``.

    Raises
    ------
    ModelError
        If `theta` does not fit the layout or is not finite or minus infinity.

    Notes
    -----
    Modes that no chain finds are missing from the estimate, and neither error nor effective size
    can show it: on average the estimate of log Z is too small rather than too large.

    Examples
    --------
    >>> layout = Layout([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    >>> theta = np.array([0.0] * 6 + [1.0, 0.0, 0.0, 1.0] * 3)
    >>> found = annealed_log_partition(layout, theta, random_state=0)
    >>> exact = np.log(2 * np.exp(3) + 6 * np.exp(1))
    >>> bool(abs(found.value - exact) < 4 * found.standard_error < 0.1)
    True
    """
    goal = _MAX_STEPS if n_temperatures is None else n_temperatures
    check_at_least(n_chains=(n_chains, 2), n_temperatures=(goal, 2))
    there = find_device(device)
    hard, start = _centred(layout, np.array(theta, np.float64))
    if layout.n_edges == 0:
        return AnnealedLogPartition(start, 0.0, float(n_chains))
    path = _path(layout, hard, start)
    rng = np.random.default_rng(random_state)
    steps = min(_FIRST_STEPS, goal)
    betas = np.linspace(0.0, 1.0, steps + 1)
    last = steps == goal
    while True:
        chains = scattered(layout, make_streams(rng, n_chains))
        if there is None:
            log_weights, energies = _lead(path, betas, chains, n_jobs)
        else:
            log_weights, energies = _lead_on_device(path, betas, chains, there)
        found = _estimate(log_weights, path.start)
        if last:
            return found
        # The run after an even one is the last: an estimate must not be chosen by its own weights.
        even = found.effective_sample_size >= _EVEN * n_chains
        steps = n_temperatures or min(2 * steps, goal)
        last = even or steps == goal
        betas = _respace(betas, energies, steps)


class _Path(NamedTuple):
    """The model as the chains meet it: finite, in zero-sum gauge."""

    layout: Layout
    theta: Floats  # with penalties in place of zeros
    hard: Floats  # with the zeros
    tables: GibbsTables
    start: float  # log Z_0 of the independent model, with what the gauge took out


def _centred(layout: Layout, theta: Floats) -> tuple[Floats, float]:
    """Bring `theta` into zero-sum gauge; also return log Z without the edges."""
    floored(theta, layout, np.ones(layout.n_edges))  # for its checks
    start = to_zero_sum(theta, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
    for i in range(layout.n_variables):
        start += logsumexp(layout.node(theta, i))
    return theta, float(start)


def _path(layout: Layout, hard: Floats, start: float) -> _Path:
    soft = hard.copy()
    for k in range(layout.n_edges) if np.isneginf(hard).any() else ():
        table = layout.edge(soft, k)
        zero = np.isneginf(table)
        table[zero] = table[~zero].min() - _PENALTY
    return _Path(layout, soft, hard, tables_of(layout, soft, _GROUP_ROWS), start)


def _lead(path: _Path, betas: Floats, chains: Chains, n_jobs: int | None) -> tuple[Floats, Floats]:
    """Return the log weight of every chain, and its edge terms at every temperature."""
    layout, n_chains = path.layout, chains.n_chains
    log_weights, energies = np.empty(n_chains), np.empty((len(betas) - 1, n_chains))

    def lead(which: slice, own: Chains) -> int:
        tables = path.tables._replace(
            theta=path.tables.theta.copy(), values=path.tables.values.copy()
        )
        weights, terms = np.empty(own.n_chains), np.empty((len(betas) - 1, own.n_chains))
        anneal(tables, path.theta, layout.edges, layout.edge_offset, *own, betas, weights, terms)
        weights[~are_possible(layout, path.hard, own.state)] = -np.inf
        log_weights[which], energies[:, which] = weights, terms
        return 0

    run_chains(lead, chains, n_jobs, block=None)
    return log_weights, energies


def _lead_on_device(
    path: _Path, betas: Floats, chains: Chains, device: Device
) -> tuple[Floats, Floats]:
    """Return the same, of chains on a device."""
    there = put_on_device(path.layout, path.theta, chains, device)
    energies = np.empty((len(betas) - 1, chains.n_chains))
    for terms, beta in zip(energies, betas[:-1], strict=True):
        there.sweep(1, beta=float(beta))
        terms[:] = there.edge_terms()
    log_weights = np.diff(betas) @ energies
    log_weights[~are_possible(path.layout, path.hard, there.codes())] = -np.inf
    return log_weights, energies


def _respace(betas: Floats, energies: Floats, steps: int) -> Floats:
    """Return temperatures between which the edge terms add equal deviations to the weights."""
    deviation = energies.std(axis=1)
    # A floor keeps some steps everywhere: a stretch without spread in the pilot may have some.
    speed = np.diff(betas) * (deviation + 0.05 * deviation.mean() + 1e-12)
    passed = np.concatenate(([0.0], np.cumsum(speed)))
    spaced = np.interp(np.linspace(0.0, passed[-1], steps + 1), passed, betas)
    spaced[0], spaced[-1] = 0.0, 1.0
    return np.asarray(spaced)


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
    if size < _FEW:
        cumulant = start + float(alive.mean() + alive.var() / 2 + np.log(len(alive) / n))
        variance += 1.0 / size + (value - cumulant) ** 2
    return AnnealedLogPartition(value, float(np.sqrt(variance)), size)
