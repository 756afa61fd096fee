"""Sum- and max-product on a bucket tree: the junction tree with one clique per variable.

Bucket ``k`` eliminates one variable ``x_k``; ``N_k`` (its scope) are the later buckets that it
is joined to by then. Going up, with ``psi_k`` the product of the potentials that end in ``k``,

    f_k(x_k, N_k) = psi_k * prod over children c of m_c(N_c),      m_k(N_k) = sum_{x_k} f_k,

and going down nothing is divided by a message that could have lost digits:

    p(x_k | N_k) = f_k / sum_{x_k} f_k,      p(x_k, N_k) = p(x_k | N_k) * p(N_k).

``f_k`` is rebuilt on the way down instead of stored, and ``p(N_c)`` overwrites ``m_c``, so memory
is the messages alone plus one clique. On a forest this is the two sweeps and nothing else.

Numbers are kept plain and scaled, which is exact as long as nothing underflows; every factor
knows the logarithm of the ratio of its largest to its smallest positive entry, and a bucket
whose ratios add up to more than `SAFE_RANGE` is computed in logarithms instead. Zero stays zero.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel

from .buckets import ADD, MULTIPLY, REDUCE, SPREAD, meet, new_walk, plan

#: exp(-600) is far from the smallest normal number, exp(-708), even after a sum's rounding.
SAFE_RANGE = 600.0


class Messages(NamedTuple):
    """Messages, each scaled to a largest entry of one (or of zero in logarithms)."""

    values: np.ndarray
    spread: np.ndarray  # (n,) log of largest over smallest positive
    in_logs: np.ndarray  # (n,) bool


@helper
def is_safe(k, tree, potentials, messages):
    """Return whether plain numbers cannot underflow in bucket `k`."""
    total = potentials.range[k]
    for x in range(tree.child_start[k], tree.child_start[k + 1]):
        total += messages.spread[tree.child[x]]
        if messages.in_logs[tree.child[x]]:
            return False
    return total <= SAFE_RANGE


@helper
def _local_product(k, tree, values, in_logs, local):
    """Write the product (sum, in logs) of what ends in bucket `k` over its original neighbours.

    Axes are added from the innermost outwards, so all steps together cost twice the last.
    """
    s = tree.states[k]
    for a in range(s):
        local[a] = values[tree.node_block[k] + a]
    cells = s
    for e in range(tree.local_start[k + 1] - 1, tree.local_start[k] - 1, -1):
        s_other = tree.states[tree.other[e]]
        inner = local[:cells]
        for b in range(s_other - 1, -1, -1):  # b = 0 last: it overwrites what the others read
            at = tree.edge_block[e] + b * s
            outer = local[b * cells : (b + 1) * cells]
            if in_logs:
                _add_cyclic(inner, values[at : at + s], outer)
            else:
                _multiply_cyclic(inner, values[at : at + s], outer)
        cells *= s_other
    return cells


@helper
def _multiply_cyclic(inner, factor, outer):
    s = factor.shape[0]
    if s == 2:  # by far the most common size, and the only one that vectorises
        first, second = factor
        for r in range(inner.shape[0] // 2):
            outer[2 * r] = inner[2 * r] * first
            outer[2 * r + 1] = inner[2 * r + 1] * second
    else:
        for r in range(inner.shape[0] // s):
            for a in range(s):
                outer[r * s + a] = inner[r * s + a] * factor[a]


@helper
def _add_cyclic(inner, term, outer):
    s = term.shape[0]
    for r in range(inner.shape[0] // s):
        for a in range(s):
            outer[r * s + a] = inner[r * s + a] + term[a]


@helper
def fill_clique(k, tree, potentials, messages, in_logs, walk, local, clique):
    """Write ``f_k`` (its logarithm, if `in_logs`) to `clique`; return its number of cells."""
    values = potentials.logs if in_logs else potentials.weight
    n_local = _local_product(k, tree, values, in_logs, local)
    scope = tree.scope[tree.scope_start[k] : tree.scope_start[k + 1]]
    own = tree.other[tree.local_start[k] : tree.local_start[k + 1]]
    cells = (tree.message_start[k + 1] - tree.message_start[k]) * tree.states[k]
    plan(walk, k, scope, own, tree.states)
    meet(walk, local[:n_local], clique, SPREAD)
    for x in range(tree.child_start[k], tree.child_start[k + 1]):
        c = tree.child[x]
        message = messages.values[tree.message_start[c] : tree.message_start[c + 1]]
        part = tree.scope[tree.scope_start[c] : tree.scope_start[c + 1] - 1]
        plan(walk, k, scope, part, tree.states)
        if not in_logs:
            meet(walk, message, clique[:cells], MULTIPLY)
        else:
            logs = message if messages.in_logs[c] else np.log(message)
            meet(walk, logs, clique[:cells], ADD)
    return cells


@helper
def _log_sum_rows(clique, s, out):
    for r in range(out.shape[0]):
        peak = clique[r * s : r * s + s].max()
        total = 0.0
        if peak > -np.inf:
            for a in range(s):
                total += np.exp(clique[r * s + a] - peak)
            peak += np.log(total)
        out[r] = peak


@helper
def _rescale(k, message, messages, in_logs):
    """Scale a new message to a largest entry of one and return the logarithm of the scale.

    A message in logarithms goes back to plain numbers if its range allows.
    """
    peak = message.max()
    if in_logs:
        if peak == -np.inf:
            return peak
        least = 0.0
        for r in range(message.shape[0]):
            message[r] -= peak
            if message[r] > -np.inf:
                least = min(least, message[r])
        messages.spread[k] = -least
        messages.in_logs[k] = -least > SAFE_RANGE
        if not messages.in_logs[k]:
            for r in range(message.shape[0]):
                message[r] = np.exp(message[r])
        return peak
    if peak == 0.0:
        return -np.inf
    least = peak
    for r in range(message.shape[0]):
        least = min(least, message[r]) if message[r] > 0.0 else least
        message[r] /= peak
    messages.spread[k] = np.log(peak / least)
    messages.in_logs[k] = False
    return np.log(peak)


@kernel
def collect(tree, potentials, maximise):
    """Go up the tree: return the messages and log Z (minus infinity for an impossible model).

    With `maximise`, messages are maxima in logarithms, and there is no log Z.
    """
    n = tree.variable.shape[0]
    messages = Messages(np.empty(tree.message_start[n]), np.zeros(n), np.zeros(n, np.bool_))
    walk = new_walk(tree.largest[2])
    clique = np.empty(tree.largest[0])
    local = np.empty(tree.largest[1])
    log_partition = 0.0
    for k in range(n):
        in_logs = maximise or not is_safe(k, tree, potentials, messages)
        fill_clique(k, tree, potentials, messages, in_logs, walk, local, clique)
        message = messages.values[tree.message_start[k] : tree.message_start[k + 1]]
        if maximise:
            s, messages.in_logs[k] = tree.states[k], True
            for r in range(message.shape[0]):
                message[r] = clique[r * s]
                for a in range(1, s):
                    message[r] = max(message[r], clique[r * s + a])
            continue
        if in_logs:
            _log_sum_rows(clique, tree.states[k], message)
        else:
            s = tree.states[k]
            for r in range(message.shape[0]):
                total = 0.0
                for a in range(s):
                    total += clique[r * s + a]
                message[r] = total
            log_partition += potentials.peak[k]
        log_partition += _rescale(k, message, messages, in_logs)
        if log_partition == -np.inf:
            break
    return messages, log_partition


@helper
def condition_rows(clique, s, n_rows, in_logs):
    """Turn ``f_k`` into ``p(x_k | N_k)``; rows of configurations that cannot occur become zero."""
    for r in range(n_rows):
        row = clique[r * s : r * s + s]
        if in_logs:
            peak = row.max()
            for a in range(s):
                row[a] = np.exp(row[a] - peak) if peak > -np.inf else 0.0
        total = 0.0
        for a in range(s):
            total += row[a]
        factor = 1.0 / total if total > 0.0 else 0.0
        for a in range(s):
            row[a] *= factor


@kernel
def distribute(tree, potentials, messages, out):
    """Go down the tree: write the marginals to `out`, in blocks; the messages are used up.

    `out` may be the logarithms of the potentials: a block is written after its last use.
    """
    n = tree.variable.shape[0]
    walk = new_walk(tree.largest[2])
    clique = np.empty(tree.largest[0])
    local = np.empty(tree.largest[1])
    for k in range(n - 1, -1, -1):
        s = tree.states[k]
        in_logs = not is_safe(k, tree, potentials, messages)
        cells = fill_clique(k, tree, potentials, messages, in_logs, walk, local, clique)
        condition_rows(clique, s, cells // s, in_logs)
        if cells > s:
            above = messages.values[tree.message_start[k] : tree.message_start[k + 1]]
            for r in range(above.shape[0]):
                for a in range(s):
                    clique[r * s + a] *= above[r]
        scope = tree.scope[tree.scope_start[k] : tree.scope_start[k + 1]]
        for x in range(tree.child_start[k], tree.child_start[k + 1]):
            c = tree.child[x]
            part = tree.scope[tree.scope_start[c] : tree.scope_start[c + 1] - 1]
            plan(walk, k, scope, part, tree.states)
            message = messages.values[tree.message_start[c] : tree.message_start[c + 1]]
            meet(walk, message, clique[:cells], REDUCE)
        _write_marginals(k, tree, scope, walk, clique[:cells], local, out)


@helper
def _write_marginals(k, tree, scope, walk, clique, local, out):
    """Write the blocks of a bucket: marginals of its variable and of the edges that end in it.

    The outermost axis is summed out as soon as its edge is written, so that all edges together
    cost a few passes over the table of the locals, not one each.
    """
    s = tree.states[k]
    own = tree.other[tree.local_start[k] : tree.local_start[k + 1]]
    cells = s
    for j in own:
        cells *= tree.states[j]
    plan(walk, k, scope, own, tree.states)
    meet(walk, local[:cells], clique, REDUCE)
    for e in range(tree.local_start[k], tree.local_start[k + 1]):
        s_other = tree.states[tree.other[e]]
        cells //= s_other
        inner = local[:cells]
        for b in range(s_other):
            block = out[tree.edge_block[e] + b * s : tree.edge_block[e] + (b + 1) * s]
            outer = local[b * cells : (b + 1) * cells]
            _sum_cyclic(outer, block)
            if b > 0:
                for c in range(cells):
                    inner[c] += outer[c]
    for a in range(s):  # a slice would take 1.5 s to compile
        out[tree.node_block[k] + a] = local[a]


@helper
def _sum_cyclic(table, out):
    s = out.shape[0]
    out[:] = 0.0
    for r in range(table.shape[0] // s):
        for a in range(s):
            out[a] += table[r * s + a]
