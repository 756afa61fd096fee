"""Gibbs sampling as an inference engine: marginals of any graph, with their diagnostics.

    x_i ~ p(x_i = a | rest) ∝ exp(u_i(a) + sum_j w_ij(a, x_j)),      variable after variable

Chains run side by side and are kept from run to run, so a model that changes a little needs a
little burn-in. Node and edge marginals are means of conditional probabilities (see
:mod:`edgegraft.kernels.gibbs.sweeps`), edge tables being fitted to the node marginals beside
them; other pairs are counted in the recorded states. There is no log-partition function: ask
:func:`~edgegraft.inference.ais.annealed_log_partition`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.backend import MovedChains, find_backend
from edgegraft.core.checks import check_edges
from edgegraft.core.pairs import PairTables, table_offsets
from edgegraft.core.threads import resolve_jobs, run
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.counts import PairCounts
from edgegraft.errors import MemoryBudgetError, ModelError
from edgegraft.inference.chains import (
    Chains,
    are_possible,
    check_at_least,
    check_possible,
    code_type,
    ends_of,
    make_streams,
    move_chains,
    scattered,
)
from edgegraft.inference.engine import Capabilities, Info, Marginals
from edgegraft.inference.messages import floored
from edgegraft.kernels.gibbs.mixing import measure_indicators
from edgegraft.table import PackedTable, Schema

#: Chains agree if R-hat is below this (Vehtari et al. ask for 1.01 of publications).
AGREEMENT = 1.05


@dataclass(frozen=True)
class _Rule:
    """What a run may take, and when chains can be compared."""

    max_bytes: int = 1 << 32  # of recorded states
    warm: float = 0.1  # share of a cold run's burn-in for chains that continue
    min_draws: int = 4  # per chain: halves of fewer say nothing
    per_task: int = 32  # variables whose mixing one thread measures


_RULE = _Rule()


class GibbsState(NamedTuple):
    """The chains, and what they recorded in the last run; its arrays are not changed."""

    layout: Layout
    chains: Chains
    warm: bool  # whether the chains have been burnt in
    theta: Floats  # parameters of the last run; empty before the first
    draws: NDArray[Any]  # (n, records, chains) states of the last run


@dataclass(frozen=True)
class GibbsEngine:
    """Marginals by Gibbs sampling with parallel chains.

    A run has converged when the split R-hat of the most frequent state of every variable is
    below 1.05; ``info.diagnostics`` has R-hat and effective sample size (ESS) of every variable.
    Chains that all miss the same part of the model agree, and no diagnostic can see that: hubs
    with strong couplings mix slowly, and with zero entries single-variable updates may not reach
    all possible states, which shows in R-hat only if chains are stuck in different places.

    Parameters
    ----------
    n_chains : int, default 64
        Chains; they start scattered over all states.
    n_sweeps : int, default 1000
        Sweeps of each chain in a run, after the burn-in.
    burn_in : int, default 500
        Sweeps before anything is recorded. A run that continues chains takes a tenth of them.
    thinning : int, default 5
        Sweeps between two records of a chain.
    n_jobs : int or None, default 1
        Threads; -1 uses all cores. Results do not depend on it.
    random_state : int or None, default 0
        Seed of the chains of :meth:`init`.
    device : {"cpu", "cuda", "auto", "torch"}
        Where the chains run; see :class:`~edgegraft.GraftedMRF`. On a device marginals are shares
        of the recorded states, which takes more chains for the same precision.

    Examples
    --------
    >>> layout = Layout([2, 2], [(0, 1)])
    >>> theta = np.array([0.0, 0.0, 0.0, 0.0, 1.0, -1.0, -1.0, 1.0])
    >>> engine = GibbsEngine()
    >>> marginals, state, info = engine.run(theta, engine.init(layout))
    >>> layout.edge(marginals.values, 0).round(2)  # in truth 0.4404 and 0.0596
    array([[0.44, 0.06],
           [0.06, 0.44]])
    >>> info.converged, info.diagnostics["ess"] > 5000
    (True, True)
    """

    #: What the answers are.
    capabilities: ClassVar[Capabilities] = Capabilities("gibbs", False, "none", "sample counts")

    n_chains: int = 64
    n_sweeps: int = 1000
    burn_in: int = 500
    thinning: int = 5
    n_jobs: int | None = 1
    random_state: int | None = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_at_least(
            n_chains=(self.n_chains, 2), thinning=(self.thinning, 1), burn_in=(self.burn_in, 0)
        )
        if self.n_sweeps < _RULE.min_draws * self.thinning:
            raise ValueError(
                f"n_sweeps must be at least {_RULE.min_draws} times thinning, or chains cannot be "
                f"compared with themselves; found {self.n_sweeps} and {self.thinning}"
            )
        resolve_jobs(self.n_jobs)

    def init(self, layout: Layout) -> GibbsState:
        """Return chains scattered over all states, unless a run would record more than 4 GiB."""
        records = self.n_sweeps // self.thinning
        size = records * self.n_chains * layout.n_variables * code_type(layout).itemsize
        if size > _RULE.max_bytes:
            raise MemoryBudgetError(
                f"a run would record {size:,} bytes of states, more than {_RULE.max_bytes:,}: use "
                "fewer chains or sweeps, or more thinning"
            )
        chains = scattered(layout, make_streams(self.random_state, self.n_chains))
        return GibbsState(layout, chains, False, np.empty(0), np.empty(0))

    def grow(self, state: GibbsState, layout: Layout) -> GibbsState:
        """Return a state for another graph over the same variables; the chains continue."""
        if not np.array_equal(layout.states, state.layout.states):
            raise ModelError("a state can only grow to a graph over the same variables and states")
        return state._replace(layout=layout, theta=np.empty(0), draws=np.empty(0))

    def run(
        self, theta: Floats, state: GibbsState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, GibbsState, Info]:
        """Return marginals, the chains to continue next time, and whether they agreed.

        The random streams continue where the last run ended; with `rng` they are seeded anew.
        Chains that are still in a state of probability zero after the burn-in are a ModelError.
        """
        layout = state.layout
        theta = np.array(theta, np.float64)  # a copy: states remember it
        floored(theta, layout, np.ones(layout.n_edges))  # for its checks
        if layout.n_variables == 0:
            return Marginals(np.empty(0), np.nan), state, Info(True, 0, 0.0)
        if rng is not None:
            streams = make_streams(rng, state.chains.n_chains)
            state = state._replace(chains=Chains(state.chains.state, streams))
        n_records = self.n_sweeps // self.thinning
        shape = (layout.n_variables, n_records, state.chains.n_chains)
        draws = np.empty(shape, code_type(layout))
        device = find_backend(self.device)
        chains = move_chains(layout, theta, state.chains, device, self.n_jobs)
        n_burnt = self._burn_in(chains, theta, state)
        values = chains.observe(draws, self.thinning)
        info = _report(
            mixing(draws, _modes(layout, values), self.n_jobs),
            n_sweeps=n_burnt + n_records * self.thinning,
            n_draws=draws[0].size,
            n_rescued=chains.n_rescued,
        )
        ends = ends_of(chains, state.chains)
        return Marginals(values, np.nan), GibbsState(layout, ends, True, theta, draws), info

    def pair_marginals(self, theta: Floats, state: GibbsState, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs: frequencies in the states of the last run."""
        layout = state.layout
        pairs = check_edges(edges, layout.n_variables)
        if len(pairs) == 0:
            shapes = np.empty((0, 2), np.int64)
            return PairTables(pairs, shapes, np.empty(0), table_offsets(shapes))
        if not np.array_equal(state.theta, theta):
            _, state, _ = self.run(theta, state)
        rows = state.draws.reshape(layout.n_variables, -1).T
        table = PackedTable.from_codes(rows, Schema.from_states(layout.states))
        counts = PairCounts(table, n_jobs=self.n_jobs).pairs(pairs)
        return PairTables(pairs, counts.shapes, counts.values / len(rows), counts.offsets)

    def _burn_in(self, chains: MovedChains, theta: Floats, state: GibbsState) -> int:
        """Sweep without recording; a warm start that is still impossible gets the full length."""
        done = 0
        for share in (_RULE.warm, 1.0) if state.warm else (1.0,):
            length = round(share * self.burn_in)
            chains.sweep(length)
            done += length
            if are_possible(state.layout, theta, chains.codes()).all():
                return done
        check_possible(state.layout, theta, chains.codes(), done)
        return done


def _modes(layout: Layout, values: Floats) -> NDArray[np.int64]:
    """Return the likeliest state of each variable."""
    nodes = values[: layout.node_offset[-1]]
    owner = np.repeat(np.arange(layout.n_variables), layout.states)
    order = np.lexsort((nodes, owner))
    return np.asarray(order[layout.node_offset[1:] - 1] - layout.node_offset[:-1])


def _report(found: Mixing, n_sweeps: int, n_draws: int, n_rescued: int) -> Info:
    worst, fewest = int(np.argmax(found.r_hat)), int(np.argmin(found.effective_size))
    r_hat, size = float(found.r_hat[worst]), float(found.effective_size[fewest])
    message = ""
    if not r_hat < AGREEMENT:
        message = (
            f"the chains do not agree: R-hat of variable {worst} is {r_hat:.3g} (below {AGREEMENT} "
            f"is wanted), and {n_draws:,} draws of variable {fewest} are worth {size:.0f}: raise "
            "n_sweeps and burn_in"
        )
    diagnostics = {
        "r_hat": r_hat,
        "r_hat_variable": worst,
        "ess": size,
        "ess_variable": fewest,
        "n_draws": n_draws,
        "n_rescued": n_rescued,
        "r_hat_of": found.r_hat,
        "ess_of": found.effective_size,
    }
    return Info(r_hat < AGREEMENT, n_sweeps, r_hat - 1.0, message, diagnostics)


class Mixing(NamedTuple):
    """Whether chains agree, and how many independent draws theirs are worth, by variable.

    Each chain is cut into halves, so that a chain that still drifts disagrees with itself. With
    ``W`` the mean variance within the ``m`` halves of ``n`` draws, and ``B / n`` the variance of
    their means,

        R-hat = sqrt(((n - 1) / n W + B / n) / W),      ESS = m n / (1 + 2 sum_t rho_t),

    ``rho_t`` being the autocorrelation at lag ``t`` over all halves (Gelman et al., "Bayesian Data
    Analysis", 2013; Vehtari et al., "Rank-normalization, folding, and localization", 2021). The
    series are indicators of each variable's most frequent state, for which rank-normalisation
    changes neither figure.
    """

    #: (n,); 1 if the indicator is constant, infinite if chains are stuck in different states
    r_hat: Floats
    effective_size: Floats  # (n,); independent draws that would give the probability as precisely


def mixing(draws: NDArray[Any], modes: Integers, n_jobs: int | None = 1) -> Mixing:
    """Return the diagnostics of `draws`, states of shape ``(n, n_draws, n_chains)``.

    The indicators of the states `modes`, one per variable, are followed. There are at least 4
    draws; of an odd number the middle one is left out.

    >>> draws = np.random.default_rng(0).integers(0, 2, (1, 1000, 4))
    >>> bool(mixing(draws, np.array([1])).r_hat < 1.01)
    True
    >>> draws[0, :, 0] = 1
    >>> bool(mixing(draws, np.array([1])).r_hat > 1.1)
    True
    """
    r_hat, size = np.empty((2, len(modes)))

    def measure(first: int) -> None:
        part = slice(first, first + _RULE.per_task)
        measure_indicators(draws[part], modes[part], r_hat[part], size[part])

    run(measure, range(0, len(modes), _RULE.per_task), resolve_jobs(n_jobs))
    return Mixing(r_hat, size)
