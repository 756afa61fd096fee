"""Gibbs sampling with fields that follow the states, for models that change with every sweep.

The field of a state of variable ``i`` is the sum of its edge terms with the neighbours as they are,
less that of state 0. Most updates leave a variable as it was and change no field, and other
parameters need no tables: a chain that is led through temperatures moves several times as fast as
by :mod:`~edgegraft.kernels.gibbs.sweeps`, whose tables pay from some sweeps of one model on.
The random streams are used in the same way, so both draw the same states, but for rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.gibbs.gibbs_tables import FLOOR
from edgegraft.kernels.gibbs.sweeps import next_uniform


class Wiring(NamedTuple):
    """A model's graph; entry ``e`` is one neighbour of one variable, in both directions."""

    states: np.ndarray  # (n,) number of states
    node_offset: np.ndarray  # (n + 1,) into theta, and into fields
    start: np.ndarray  # (n + 1,) entries of a variable
    other: np.ndarray  # (2m,) the neighbour
    table: np.ndarray  # (2m,) where the edge's table begins in theta
    other_step: np.ndarray  # (2m,) distance in theta between the neighbour's states
    own_step: np.ndarray  # (2m,) distance between the variable's own states
    push: np.ndarray  # (2m + 1,) where the pushes of an entry begin


@kernel
def relate(wiring, theta, nodes, pushes):
    """Write log-potentials less those of state 0: of nodes, and of neighbours for each own state.

    ``pushes`` has a row per own state, with an entry for each state of the neighbour but the first.
    """
    for i in range(len(wiring.states)):
        at = wiring.node_offset[i]
        for a in range(wiring.states[i]):
            nodes[at + a] = max(theta[at + a], FLOOR) - max(theta[at], FLOOR)
        for e in range(wiring.start[i], wiring.start[i + 1]):
            wide = wiring.states[wiring.other[e]] - 1
            for b in range(wiring.states[i]):
                cell = wiring.table[e] + b * wiring.own_step[e]
                for a in range(wide):
                    term = theta[cell + (a + 1) * wiring.other_step[e]]
                    less = max(theta[cell], FLOOR)
                    pushes[wiring.push[e] + b * wide + a] = max(term, FLOOR) - less


@kernel
def anneal(wiring, theta, nodes, pushes, state, streams, betas, energies):
    """Lead chains from the independent model to the full one, and write their edge terms.

    At inverse temperature ``beta``, from 0 to 1, the edge terms count ``beta`` times:

        log f_beta(x) = sum_i u_i(x_i) + beta * W(x),      W(x) = sum_{(i,j)} w_ij(x_i, x_j)

    Each step updates every variable at one temperature. At ``beta = 0`` conditionals do not look at
    neighbours, so the first sweep draws exactly from the independent model, wherever the chain was.
    ``energies[c, k]`` gets ``W`` of a chain at the `k`-th temperature but the last.
    """
    n, n_chains = state.shape
    x, stream = np.empty(n, np.int64), np.empty(4, np.uint64)
    fields = np.empty(len(nodes))
    for c in range(n_chains):
        _enter(wiring, pushes, state, streams, c, x, stream, fields)
        energy = _edge_terms(wiring, theta, x)
        for k in range(len(betas) - 1):
            energy += _sweep(wiring, nodes, pushes, betas[k], x, stream, fields)
            energies[c, k] = energy
        _leave(state, streams, c, x, stream)


@helper
def _enter(wiring, pushes, state, streams, c, x, stream, fields):
    """Copy a chain, and work its fields out anew."""
    stream[:] = streams[:, c]
    fields[:] = 0.0
    for i in range(len(x)):
        x[i] = state[i, c]
        for e in range(wiring.start[i], wiring.start[i + 1]):
            to, wide = wiring.node_offset[wiring.other[e]], wiring.states[wiring.other[e]] - 1
            for a in range(wide):
                fields[to + a + 1] += pushes[wiring.push[e] + x[i] * wide + a]


@helper
def _leave(state, streams, c, x, stream):
    streams[:, c] = stream
    for i in range(len(x)):
        state[i, c] = np.uint16(x[i])


@helper
def _edge_terms(wiring, theta, x):
    total = 0.0
    for i in range(len(x)):
        for e in range(wiring.start[i], wiring.start[i + 1]):
            if wiring.other[e] > i:
                cell = wiring.table[e] + x[i] * wiring.own_step[e]
                total += theta[cell + x[wiring.other[e]] * wiring.other_step[e]]
    return total


@njit(inline="always")
def _weigh(nodes, fields, at, s, beta, p):
    """Write unnormalised probabilities, and return their sum."""
    top = 0.0
    for a in range(1, s):
        p[a] = nodes[at + a] + beta * fields[at + a]
        top = max(top, p[a])
    p[0] = total = np.exp(-top)
    for a in range(1, s):
        p[a] = np.exp(p[a] - top)
        total += p[a]
    return total


@helper
def _sweep(wiring, nodes, pushes, beta, x, stream, fields):
    """Update every variable of a chain once, and return by how much its edge terms grew."""
    grown = 0.0
    p = np.empty(wiring.states.max())
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for i in range(len(x)):
        uniform, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        s, at, old, new = wiring.states[i], wiring.node_offset[i], x[i], 0
        if s == 2:
            new = int(uniform * (1.0 + np.exp(nodes[at + 1] + beta * fields[at + 1])) >= 1.0)
        else:
            goal = uniform * _weigh(nodes, fields, at, s, beta, p)
            running = 0.0
            for a in range(s - 1):
                running += p[a]
                new += running <= goal
        if new == old:
            continue
        x[i] = new
        grown += fields[at + new] - fields[at + old]
        for e in range(wiring.start[i], wiring.start[i + 1]):
            to, wide = wiring.node_offset[wiring.other[e]], wiring.states[wiring.other[e]] - 1
            after, before = wiring.push[e] + new * wide, wiring.push[e] + old * wide
            for a in range(wide):
                fields[to + a + 1] += pushes[after + a] - pushes[before + a]
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return grown
