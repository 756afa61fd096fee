"""Chains led along the path from an independent model to a pairwise one.

At inverse temperature ``beta`` a state has the log-potential ``sum_i u_i + beta * W``, ``W`` the
sum of its edge terms. The path depends on how the model is written: the zero-sum gauge begins with
all that node vectors can express, :func:`from_shares` with given shares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from edgegraft.core import Layout
from edgegraft.core.backend import Backend
from edgegraft.core.edge_tables import to_zero_sum
from edgegraft.core.types import Floats
from edgegraft.inference.chains import Chains, are_possible, move_chains
from edgegraft.inference.messages import floored

Codes = NDArray[np.uint16]  # (n_variables, n_chains)

#: How far a zero entry lies below all other entries of its table while chains are led.
_PENALTY = 20.0


class AnnealingPath(NamedTuple):
    """The model as the chains meet it: finite, in zero-sum gauge."""

    layout: Layout
    theta: Floats  # with penalties in place of zeros
    hard: Floats  # with the zeros
    start: float  # log Z_0 of the independent model, with what the gauge took out


def centred(layout: Layout, theta: Floats) -> tuple[Floats, float]:
    """Bring `theta` into zero-sum gauge; also return log Z without the edges."""
    floored(theta, layout, np.ones(layout.n_edges))  # for its checks
    start = to_zero_sum(theta, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
    for i in range(layout.n_variables):
        start += logsumexp(layout.node(theta, i))
    return theta, float(start)


def make_path(layout: Layout, hard: Floats, start: float) -> AnnealingPath:
    """Return the path of parameters as they are written; `start` is log Z without edges."""
    soft = hard.copy()
    for k in range(layout.n_edges) if np.isneginf(hard).any() else ():
        table = layout.edge(soft, k)
        zero = np.isneginf(table)
        table[zero] = table[~zero].min() - _PENALTY
    return AnnealingPath(layout, soft, hard, start)


def from_shares(path: AnnealingPath, states: Codes) -> AnnealingPath:
    """Return a path from the independent model with the shares of states.

    What the node vectors lack then is in the tables, a part in each of a variable's edges, and so
    comes in with them; the model at the end is the same.
    """
    layout, hard = path.layout, path.hard.copy()
    degrees = np.bincount(layout.edges.ravel(), minlength=layout.n_variables)
    start, lacking = path.start, []
    for i, s in enumerate(layout.states.tolist()):
        node = layout.node(hard, i)
        old = node.copy()
        possible = np.isfinite(old)
        if degrees[i]:
            shares = np.bincount(states[i], minlength=s) + 1.0
            node[possible] = np.log(shares[possible] / shares.sum())
            start += logsumexp(node) - logsumexp(old)
        lacking.append(np.subtract(old, node, out=np.zeros(s), where=possible))
    for k, (i, j) in enumerate(layout.edges.tolist()):
        parts = lacking[i][:, None] / degrees[i] + lacking[j] / degrees[j]
        layout.edge(hard, k)[:] += parts
    return make_path(layout, hard, float(start))


def lead_chains(
    path: AnnealingPath, betas: Floats, chains: Chains, n_jobs: int | None, device: Backend | None
) -> tuple[Floats, Floats, Codes]:
    """Return the log weight of every chain, its edge terms at every temperature, and the ends."""
    energies = np.empty((len(betas) - 1, chains.n_chains))
    moved = move_chains(path.layout, path.theta, chains, device, n_jobs, changing=True)
    for terms, beta in zip(energies, betas[:-1], strict=True):
        moved.sweep(1, beta=float(beta))
        terms[:] = moved.edge_terms()
    ends = moved.codes()
    log_weights = np.zeros(chains.n_chains)
    for step, terms in zip(np.diff(betas), energies, strict=True):
        log_weights += step * terms
    if betas[-1] == 1.0:  # led to the model: those that ended outside of it weigh nothing
        log_weights[~are_possible(path.layout, path.hard, ends)] = -np.inf
    return log_weights, energies, ends


def respace(betas: Floats, energies: Floats, steps: int) -> Floats:
    """Return temperatures between which the edge terms add equal deviations to the weights."""
    deviation = energies.std(axis=1)
    # A floor keeps some steps everywhere: a stretch without spread in the pilot may have some.
    speed = np.diff(betas) * (deviation + 0.05 * deviation.mean() + 1e-12)
    passed = np.concatenate(([0.0], np.cumsum(speed)))
    spaced = np.interp(np.linspace(0.0, passed[-1], steps + 1), passed, betas)
    spaced[0], spaced[-1] = 0.0, 1.0
    return np.asarray(spaced)
