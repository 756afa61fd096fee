"""Chains that are led from the independent model to the full one.

At inverse temperature ``beta`` the edge terms count ``beta`` times:

    log f_beta(x) = sum_i u_i(x_i) + beta * W(x),      W(x) = sum_{(i,j)} w_ij(x_i, x_j)

Each step updates every variable at one temperature and then adds ``(next beta - beta) * W(x)`` to
the chain's log weight. At ``beta = 0`` conditionals do not look at neighbours, so the first sweep
draws exactly from the independent model, wherever the chain was.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.gibbs.gibbs_tables import refill
from edgegraft.kernels.gibbs.sweeps import sweep


@kernel
def anneal(tables, theta, edges, edge_offset, state, streams, betas, log_weights, energies):
    """Lead chains through `betas`, from 0 to 1, and write their log weights.

    `tables` are overwritten at every temperature; ``energies[k]`` gets ``W`` of every chain at
    the `k`-th one.
    """
    n_nodes = edge_offset[0]
    scaled = theta.copy()
    log_weights[:] = 0.0
    for k in range(len(betas) - 1):
        scaled[n_nodes:] = betas[k] * theta[n_nodes:]
        refill(tables, scaled)
        sweep(tables, state, streams, 1)
        _edge_terms(tables.states, theta, edges, edge_offset, state, energies[k])
        log_weights += (betas[k + 1] - betas[k]) * energies[k]


@kernel
def _edge_terms(states, theta, edges, edge_offset, state, out):
    out[:] = 0.0
    for k in range(len(edges)):
        first, second = state[edges[k, 0]], state[edges[k, 1]]
        n_columns = states[edges[k, 1]]
        for c in range(len(out)):
            out[c] += theta[edge_offset[k] + np.int64(first[c]) * n_columns + second[c]]
