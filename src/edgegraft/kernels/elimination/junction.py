"""Sum- and max-product on a bucket tree: the junction tree with one clique per variable.

Bucket ``k`` eliminates one variable ``x_k``; ``N_k`` (its scope) are the later buckets that it
is joined to by then. Going up, with ``psi_k`` the product of the potentials that end in ``k``,

    f_k(x_k, N_k) = psi_k * prod over children c of m_c(N_c),      m_k(N_k) = sum_{x_k} f_k,

and going down nothing is divided by a message that could have lost digits:

    p(x_k | N_k) = f_k / sum_{x_k} f_k,      p(x_k, N_k) = p(x_k | N_k) * p(N_k).

``f_k`` is rebuilt on the way down instead of stored, and ``p(N_c)`` overwrites ``m_c``, so memory
is the messages alone plus one clique. On a forest this is the two sweeps and nothing else.

Assignments, the most probable one and exact independent samples, are found on the way down too:
``x_k`` is chosen given ``N_k``, by ``argmax f_k`` with maxima for messages, or by a draw from
``p(x_k | N_k)``.
"""

import numpy as np

from edgegraft.kernels.compiler import helper, kernel

from .buckets import (
    REDUCE,
    SAFE_RANGE,
    Messages,
    fill_clique,
    is_safe,
    meet,
    new_walk,
    plan,
)


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
def _condition_rows(clique, s, n_rows, in_logs):
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
        _condition_rows(clique, s, cells // s, in_logs)
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


@kernel
def trace_back(tree, logs, messages, assignment):
    """Write the maximising assignment, by variable; a cell of each child's message suffices."""
    n = tree.variable.shape[0]
    chosen = np.empty(n, np.int64)
    scores = np.empty(tree.states.max() if n > 0 else 0)
    for k in range(n - 1, -1, -1):
        s = tree.states[k]
        scores[:s] = logs[tree.node_block[k] : tree.node_block[k] + s]
        for e in range(tree.local_start[k], tree.local_start[k + 1]):
            at = tree.edge_block[e] + chosen[tree.other[e]] * s
            for a in range(s):
                scores[a] += logs[at + a]
        for x in range(tree.child_start[k], tree.child_start[k + 1]):
            c = tree.child[x]
            row = 0
            for y in range(tree.scope_start[c], tree.scope_start[c + 1] - 1):
                row = row * tree.states[tree.scope[y]] + chosen[tree.scope[y]]
            at = tree.message_start[c] + row * s
            for a in range(s):
                scores[a] += messages.values[at + a]
        chosen[k] = np.argmax(scores[:s])
        assignment[tree.variable[k]] = chosen[k]


@kernel
def draw(tree, potentials, messages, uniform, out):
    """Write one sample per column to `out`, row ``v`` for variable ``v``, from uniforms by bucket.

    The states of a variable are written for all samples at once, while its conditional table is
    at hand.
    """
    n, n_samples = uniform.shape
    walk = new_walk(tree.largest[2])
    clique = np.empty(tree.largest[0])
    local = np.empty(tree.largest[1])
    row = np.empty(n_samples, np.int64)
    for k in range(n - 1, -1, -1):
        s = tree.states[k]
        in_logs = not is_safe(k, tree, potentials, messages)
        cells = fill_clique(k, tree, potentials, messages, in_logs, walk, local, clique)
        _condition_rows(clique, s, cells // s, in_logs)
        row[:] = 0
        for y in range(tree.scope_start[k], tree.scope_start[k + 1]):
            j = tree.scope[y]
            chosen = out[tree.variable[j]]
            for r in range(n_samples):
                row[r] = row[r] * tree.states[j] + chosen[r]
        mine = out[tree.variable[k]]
        for r in range(n_samples):
            mine[r] = _pick(clique[row[r] * s : row[r] * s + s], uniform[k, r])


@helper
def _pick(probabilities, u):
    """Return the state in whose share of [0, 1) `u` lies; never one of probability zero."""
    last = 0
    for a in range(probabilities.shape[0]):
        if probabilities[a] > 0.0:
            last = a
            u -= probabilities[a]
            if u < 0.0:
                break
    return last
