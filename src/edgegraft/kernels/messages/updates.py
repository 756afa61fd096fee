"""Messages from one node to its neighbours: as plain probabilities, or as logarithms.

*Plain probabilities* are the fast path for moderate potentials.

    B_i(a) = exp(u_i(a)) prod_k M_ki(a),    M_ij(b) ∝ sum_a exp(w_ij(a, b)) B_i(a) / M_ji(a)

A message is a weighted mean of rows of ``exp(w)``, so the logarithms of its entries span no more
than those of the table. If every table spans at most `WIDEST`, no entry of a message can
underflow, and an entry of ``B_i`` that does is too small to matter after the division: cavities
are right to the last bit that counts. Next to each message its reciprocal is kept: it turns the
division above, and the relative change of a message, into multiplications. All of it is finite by
this argument, so the compiler may reorder (``fastmath``); the result is the same from run to run.

*Logarithms* are right for any finite potentials, any edge weights, sums or maxima.

    log B_i(a)  = u_i(a) + sum_k rho_ki log M_ki(a)
    log M_ij(b) = log sum_a exp(w_ij(a, b) / rho_ij + log B_i(a) - log M_ji(a))  - const

With ``rho = 1`` this is belief propagation, with edge appearance probabilities tree-reweighted
belief propagation; with a maximum in place of the sum, max-product. The sum is one product with
the exponentiated table; an entry that comes out so small that what mattered may have underflowed
is computed again by a full log-sum-exp.
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import helper

#: Largest span of a log table for which plain products are safe.
WIDEST = 200.0
#: A belief whose logarithm may span more than this is summed up in logarithms.
WIDE_BELIEF = 600.0
#: Relative changes beyond this count as this.
MAX_CHANGE = 1e6
#: Below this a sum of products may have lost terms that mattered to underflow.
TINY = 1e-200


@helper(fastmath=True, forceinline=True)
def linear_belief(start, links, unary, unary_exp, at, value, i, s, wide, out):
    """Write the belief of node `i`, largest entry 1; return the logarithm of what was divided."""
    if wide:
        return _belief_by_logs(start, links, unary, at, value, i, s, out)
    for a in range(s):
        out[a] = unary_exp[at + a]
    for k in range(start[i], start[i + 1]):
        m = links[k, 0]
        for a in range(s):
            out[a] *= value[m + a]
    top = out[0]
    for a in range(1, s):
        if out[a] > top:
            top = out[a]
    scale = 1.0 / top
    for a in range(s):
        out[a] *= scale
    return np.log(top)


@helper(fastmath=True)
def _belief_by_logs(start, links, unary, at, value, i, s, out):
    for a in range(s):
        out[a] = unary[at + a]
    for k in range(start[i], start[i + 1]):
        m = links[k, 0]
        for a in range(s):
            out[a] += np.log(value[m + a])
    top = out[:s].max()
    for a in range(s):
        out[a] = np.exp(out[a] - top)
    return top


@helper(fastmath=True)
def linear_answers(
    nodes, count, start, links, states, node_offset, unary, unary_exp, wide, tables, value, inverse,
    damping, belief, cavity, product, change,
):  # fmt: skip
    """Write all messages out of the first `count` of `nodes`, and the `change` of each."""
    for q in range(count):
        i = nodes[q]
        s = states[i]
        # A constant number of states lets the compiler unroll every loop over states; each case
        # costs seconds of compilation, so only the most common ones have their own.
        if s == 2:
            _answers(
                start, links, unary, unary_exp, node_offset[i], wide[i], tables, value, inverse,
                damping, i, 2, belief, cavity, product, change,
            )  # fmt: skip
        elif s == 5:
            _answers(
                start, links, unary, unary_exp, node_offset[i], wide[i], tables, value, inverse,
                damping, i, 5, belief, cavity, product, change,
            )  # fmt: skip
        else:
            _answers(
                start, links, unary, unary_exp, node_offset[i], wide[i], tables, value, inverse,
                damping, i, s, belief, cavity, product, change,
            )  # fmt: skip


@helper(fastmath=True)
def _answers(
    start, links, unary, unary_exp, at, wide, tables, value, inverse, damping, i, s, belief, cavity,
    product, change,
):  # fmt: skip
    linear_belief(start, links, unary, unary_exp, at, value, i, s, wide, belief)
    for k in range(start[i], start[i + 1]):
        m, o, t, r = links[k, 0], links[k, 1], links[k, 2], links[k, 3]
        for a in range(s):
            cavity[a] = belief[a] * inverse[m + a]
        if r == s:
            total = _multiply(tables, t, cavity, product, s, s)
            change[k] = _store(product, total, value, inverse, damping, o, s)
        else:
            total = _multiply(tables, t, cavity, product, s, r)
            change[k] = _store(product, total, value, inverse, damping, o, r)


@helper(fastmath=True, forceinline=True)
def _multiply(tables, t, cavity, product, s, r):
    for b in range(r):
        product[b] = tables[t + b] * cavity[0]
    for a in range(1, s):
        c = cavity[a]
        row = t + a * r
        for b in range(r):
            product[b] += tables[row + b] * c
    total = 0.0
    for b in range(r):
        total += product[b]
    return total


@helper(fastmath=True, forceinline=True)
def _store(product, total, value, inverse, damping, o, r):
    """Write a normalised, damped message and its reciprocals; return the relative change."""
    scale = (1.0 - damping) / total
    largest = 0.0
    for b in range(r):
        new = product[b] * scale + damping * value[o + b]
        moved = abs(new * inverse[o + b] - 1.0)
        if moved > largest:
            largest = moved
        value[o + b] = new
        inverse[o + b] = 1.0 / new
    return min(largest, MAX_CHANGE)


@helper(forceinline=True)
def log_belief(start, links, unary, rho, at, value, i, s, out):
    """Write the unnormalised log belief of node `i`."""
    for a in range(s):
        out[a] = unary[at + a]
    for k in range(start[i], start[i + 1]):
        m = links[k, 0]
        weight = rho[k]
        for a in range(s):
            out[a] += weight * value[m + a]


@helper
def log_answers(
    nodes, count, start, links, states, node_offset, unary, rho, tables, log_tables, value,
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
            change[k] = _store_log(product, value, damping, floor, o, r)


@helper(forceinline=True)
def _store_log(product, value, damping, floor, o, r):
    """Write a damped log message with a maximum of 0; return its largest change."""
    top = product[0]
    for b in range(1, r):
        top = max(top, product[b])
    largest = 0.0
    for b in range(r):
        old = value[o + b]
        new = (1.0 - damping) * (product[b] - top) + damping * old
        largest = max(largest, abs(max(new, floor) - max(old, floor)))
        value[o + b] = new
    return largest


@helper(forceinline=True)
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


@helper
def _log_sum_exp(log_tables, t, cavity, s, r, b):
    top = -np.inf
    for a in range(s):
        top = max(top, log_tables[t + a * r + b] + cavity[a])
    total = 0.0
    for a in range(s):
        total += np.exp(log_tables[t + a * r + b] + cavity[a] - top)
    return top + np.log(total)


@helper(forceinline=True)
def _max_product(log_tables, t, cavity, product, s, r):
    for b in range(r):
        product[b] = -np.inf
    for a in range(s):
        row = t + a * r
        for b in range(r):
            product[b] = max(product[b], log_tables[row + b] + cavity[a])
