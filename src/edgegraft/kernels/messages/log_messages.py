"""Messages as logarithms: right for any finite potentials, any edge weights, sums or maxima.

    log B_i(a)  = u_i(a) + sum_k rho_ki log M_ki(a)
    log M_ij(b) = log sum_a exp(w_ij(a, b) / rho_ij + log B_i(a) - log M_ji(a))  - const

With ``rho = 1`` this is belief propagation, with edge appearance probabilities tree-reweighted
belief propagation; with a maximum in place of the sum, max-product. The sum is one product with
the exponentiated table; an entry that comes out so small that what mattered may have underflowed
is computed again by a full log-sum-exp.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

#: Below this a sum of products may have lost terms that mattered to underflow.
TINY = 1e-200


@kernel(forceinline=True)
def log_belief(start, links, unary, rho, at, value, i, s, out):
    """Write the unnormalised log belief of node `i`."""
    for a in range(s):
        out[a] = unary[at + a]
    for k in range(start[i], start[i + 1]):
        m = links[k, 0]
        weight = rho[k]
        for a in range(s):
            out[a] += weight * value[m + a]


@kernel
def log_answers(
    nodes, count, start, links, states, node_offset, unary, rho, tables, log_tables, value, out,
    damping, floor, maximise, belief, cavity, product, change,
):  # fmt: skip
    """Write all messages out of the first `count` of `nodes`, and the `change` of each.

    Changes below `floor` do not count: an entry so small is impossible for all purposes, and on a
    loop of hard constraints it would keep shrinking for ever.
    """
    for q in range(count):
        i = nodes[q]
        s = states[i]
        log_belief(start, links, unary, rho, node_offset[i], value, i, s, belief)
        for k in range(start[i], start[i + 1]):
            m, o, t, r = links[k, 0], links[k, 1], links[k, 2], links[k, 3]
            for a in range(s):
                cavity[a] = belief[a] - value[m + a]
            if maximise:
                _max_product(log_tables, t, cavity, product, s, r)
            else:
                sum_product(tables, log_tables, t, cavity, product, s, r)
            change[k] = _store(product, value, out, damping, floor, o, r)


@kernel(forceinline=True)
def _store(product, value, out, damping, floor, o, r):
    """Write a damped log message with a maximum of 0; return its largest change."""
    top = product[0]
    for b in range(1, r):
        top = max(top, product[b])
    largest = 0.0
    for b in range(r):
        old = value[o + b]
        new = (1.0 - damping) * (product[b] - top) + damping * old
        largest = max(largest, abs(max(new, floor) - max(old, floor)))
        out[o + b] = new
    return largest


@kernel(forceinline=True)
def sum_product(tables, log_tables, t, cavity, product, s, r):
    """Write the log of the table-vector product; `cavity` is first shifted to a maximum of 0.

    Returns the shift.
    """
    top = cavity[0]
    for a in range(1, s):
        top = max(top, cavity[a])
    for b in range(r):
        product[b] = 0.0
    for a in range(s):
        cavity[a] -= top
        weight = np.exp(cavity[a])
        row = t + a * r
        for b in range(r):
            product[b] += tables[row + b] * weight
    for b in range(r):
        if product[b] > TINY:
            product[b] = np.log(product[b])
        else:
            product[b] = _log_sum_exp(log_tables, t, cavity, s, r, b)
    return top


@kernel
def _log_sum_exp(log_tables, t, cavity, s, r, b):
    top = -np.inf
    for a in range(s):
        top = max(top, log_tables[t + a * r + b] + cavity[a])
    total = 0.0
    for a in range(s):
        total += np.exp(log_tables[t + a * r + b] + cavity[a] - top)
    return top + np.log(total)


@kernel(forceinline=True)
def _max_product(log_tables, t, cavity, product, s, r):
    for b in range(r):
        product[b] = -np.inf
    for a in range(s):
        row = t + a * r
        for b in range(r):
            product[b] = max(product[b], log_tables[row + b] + cavity[a])
