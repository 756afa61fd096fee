"""Maximum likelihood by persistent chains, for graphs on which exact inference is out of reach.

    theta <- theta - a_t (F + damping)^-1 g_t,      g_t = shares of the chains - those of the data

The chains follow the parameters by a few sweeps per step ("persistent contrastive divergence",
Tieleman 2008). ``F``, the covariance of all indicators under the model, is that of the chains'
states; it is never formed, since conjugate gradients need its products with vectors alone. Without
it a step that suits single parameters would overturn what they do together: thousands of small
changes of one sign are a large change of every row's probability. No step changes the model by
more than a tenth of a nat, and by less once a step has gone too far: the likelihood is concave, so
the gradient after a step then points back. Steps become shorter, and the answer is the mean of the
parameters over the second half, in which the noise of single gradients is averaged out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.backend import MovedChains, find_backend
from edgegraft.core.threads import one_blas_thread
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.inference import ExactEngine
from edgegraft.inference.sampling import PersistentChains, PersistentState
from edgegraft.objective.featured import featured
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Groups, Penalty, norms_of
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import FitInfo, Solution, Stopping, minimize

STEPS = 120  # of a fit: with fewer, weak penalties seem worse than they are


@dataclass(frozen=True)
class _Rule:
    """Chains, and the steps that follow them."""

    chains: int = 512
    gpu_chains: int = 8192  # a GPU takes many as fast as few
    settled: float = 0.01  # a fit has not converged if a share is further from what it should be
    farthest: float = 0.1  # nats between the models before and after a step
    turned: float = 0.3  # of the slope, left or passed, beyond which steps become longer or shorter
    shorter: float = 0.7  # the next steps
    fade: float = 0.3  # share of the steps after which they become shorter anyway
    min_variance: float = 1e-4  # a state that few chains are in is no surer than that
    rounded: float = 0.01  # norm of a group below which the penalty has no tip
    products: int = 15  # of conjugate gradients: a budget, after which little is left


_RULE = _Rule()
_START = Stopping(1e-4)  # of the pseudolikelihood that a fit starts from

Pull = Callable[[Floats], tuple[Floats, Floats]]
"""The gradient of a penalty at parameters, and its second derivatives."""


class Fit(NamedTuple):
    """What chains are fitted to: a graph and the data's shares on it."""

    layout: Layout  # of the parameters
    features: Features
    shares: Floats  # of states and of pairs of states, laid out like tables

    @classmethod
    def of(cls, counts: PairCounts, layout: Layout, features: Features | None) -> Fit:
        """Return the shares of rows on a graph."""
        data = Likelihood(counts, ExactEngine())
        features = features or Features.plain(counts.schema)
        tables = Layout(features.states, layout.edges)
        shares = np.concatenate((data.margins(), data.pair_frequencies(tables)))
        return cls(layout, features, shares)


class Climb(NamedTuple):
    """The end of a fit by chains, and where they are."""

    theta: Floats
    residual: float  # largest mean gradient of a parameter over the second half
    noise: float  # largest standard error of these
    n_iter: int
    state: PersistentState


def make_chains(
    n_chains: int | None, n_jobs: int | None, device: str, seed: int
) -> PersistentChains:
    """Return the chains of a fit: more of them on a GPU."""
    there = find_backend(device)
    many = _RULE.gpu_chains if there is not None and there.is_gpu else _RULE.chains
    return PersistentChains(n_chains or many, n_jobs=n_jobs, random_state=seed, device=there)


def climb(
    fit: Fit,
    chains: PersistentChains,
    start: Floats,
    pull: Pull,
    n_steps: int,
    state: PersistentState | None = None,
) -> Climb:
    """Maximise the likelihood less a penalty, from `start`; chains continue from `state`."""
    layout, features, shares = fit
    state = state or chains.init(Layout(features.states, layout.edges))
    theta, step, slope, radius = start.copy(), np.zeros_like(start), 0.0, _RULE.farthest
    variances = features.squared.fold(shares * (1.0 - shares), layout) + _RULE.min_variance
    total, gradients, squares = np.zeros((3, len(start)))
    late, even = n_steps // 2, np.ones(chains.n_chains)
    for t in range(n_steps):
        tables = features.expand(theta, layout)
        found = chains.run(tables, state).means(even)
        draws = chains.run(tables, state)  # F from the same states would bias the step
        force, stiffness = pull(theta)
        gradient = features.fold(found - shares, layout) + force
        if t >= late:
            total += theta
            gradients += gradient
            squares += gradient**2
        left = float(gradient @ step)
        if left < -_RULE.turned * slope:
            radius *= _RULE.shorter
        elif left > _RULE.turned * slope:
            radius = min(radius / _RULE.shorter, _RULE.farthest)
        with one_blas_thread():  # chains would amplify the rounding of another number
            step = _newton_step(fit, draws, gradient, variances, stiffness, radius)
        slope = float(gradient @ step)
        theta = theta - min(1.0, _RULE.fade * n_steps / (t + 1)) * step
    n = n_steps - late
    centre = gradients / n
    noise = np.sqrt(np.maximum(squares / n - centre**2, 0.0) / n)
    return Climb(total / n, float(np.abs(centre).max()), float(noise.max()), n_steps, state)


def _newton_step(
    fit: Fit,
    draws: MovedChains,
    gradient: Floats,
    variances: Floats,
    stiffness: Floats,
    radius: float,
) -> Floats:
    """Solve for the step by conjugate gradients; one that goes too far is shortened."""
    layout, features, _ = fit
    damping = variances + stiffness  # twice the diagonal: what few states do not cover

    def spread(v: Floats) -> Floats:
        energies = draws.energies(features.expand(v, layout))
        return np.asarray(energies - energies.mean())

    step, left = np.zeros_like(gradient), gradient.copy()
    scale = 1.0 / (variances + damping)
    turned = scale * left
    direction, size = turned.copy(), float(left @ turned)
    for _ in range(_RULE.products):
        if not size:
            break
        product = features.fold(draws.means(spread(direction)), layout) + damping * direction
        length = size / float(direction @ product)
        step += length * direction
        left -= length * product
        turned = scale * left
        size, before = float(left @ turned), size
        direction = turned + size / before * direction
    change = float(np.var(spread(step))) / 2.0
    return np.asarray(step * min(1.0, (radius / max(change, 1e-12)) ** 0.5))


def by_pairs(counts: PairCounts) -> Objective:
    """Return the likelihood whose gradient the chains estimate."""
    return featured(Likelihood(counts, ExactEngine()))


def fit_by_chains(
    loss: Objective,
    counts: PairCounts,
    rule: Penalty,
    layout: Layout,
    start: Solution | Floats | None,
    chains: PersistentChains,
    max_iter: int,
) -> tuple[Floats, FitInfo]:
    """Maximise a penalised likelihood (:func:`by_pairs`) on a graph, and return how it went.

    Without `start` from the maximum of the pseudolikelihood; edges that the penalty takes out there
    stay out.
    """
    if start is None:
        pseudo = featured(Pseudolikelihood(counts.rows, precision="single"))
        twice = replace(rule, penalty=2.0 * rule.penalty, ridge=2.0 * rule.ridge).bound(pseudo)
        start = minimize(pseudo, twice, layout, None, _START, quiet=True)
    first = start.theta if isinstance(start, Solution) else start
    kept = layout
    if rule.penalty:
        kept = layout.with_edges(layout.edges[norms_of(first, layout.edge_offset) > 0.0])
    pull = penalty_pull(rule.bound(loss).groups(kept))
    fit, first = Fit.of(counts, kept, loss.features), kept.carry(first, layout)
    found = climb(fit, chains, first, pull, min(max_iter, STEPS))
    warn_unsettled(found)
    message = f"by chains: shares are right to {found.residual:.2g} +- {found.noise:.2g}"
    settled, n = found.residual <= _RULE.settled, found.n_iter
    info = FitInfo(settled, found.residual, np.nan, np.empty(0), n, n, message, "chains")
    return layout.carry(found.theta, kept), info


def penalty_pull(groups: Groups) -> Pull:
    """Return the pull of a penalty, whose tips are round: groups come near zero, none is there."""
    sizes, first = np.diff(groups.offsets), int(groups.offsets[0])

    def pull(theta: Floats) -> tuple[Floats, Floats]:
        slope = groups.strength / np.hypot(norms_of(theta, groups.offsets), _RULE.rounded)
        stiffness = np.zeros_like(theta)
        stiffness[first:] = np.repeat(slope + 2.0 * groups.ridge, sizes)
        return stiffness * theta, stiffness

    return pull


def pull_to(anchor: Floats, layout: Layout, strength: float | Floats) -> Pull:
    """Return the pull of ``strength (w - w_0)^2``, summed, with ``w_0`` the edges of `anchor`."""
    stiffness = np.broadcast_to(2.0 * strength, anchor.shape).copy()
    stiffness[: int(layout.node_offset[-1])] = 0.0

    def pull(theta: Floats) -> tuple[Floats, Floats]:
        return stiffness * (theta - anchor), stiffness

    return pull


def warn_unsettled(found: Climb) -> None:
    """Warn if shares of the model are not what the fit wants."""
    if found.residual > _RULE.settled + 3.0 * found.noise:
        warnings.warn(
            f"after {found.n_iter} steps a share of the model still differs by "
            f"{found.residual:.4f} from what the fit wants it to be: take more steps or chains",
            ConvergenceWarning,
            stacklevel=3,
        )
