"""Greedy elimination orderings: which variable to sum out next, without ever going over a budget.

Summing out ``v`` makes its remaining neighbours ``N_v`` a clique and costs one table of
``prod s_u`` cells over ``{v} | N_v``. The greedy rule takes the vertex of least

    fill(v) = sum of c_a * c_b over the pairs (a, b) of N_v that are not yet joined

(``c = 1``: min-fill, ``c = s``: weighted min-fill), of equals the one of the smallest table.
Three things keep it near-linear on sparse graphs: a heap in which only the vertices whose key
changed move, a hash set of edges (a fill count is ``d^2 / 2`` probes), and the budget itself: a
vertex whose table would not fit is not a candidate, so its fill is never counted and ``d`` stays at
a few dozen whatever the hubs' degrees.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.structures import discard, empty_heap, enlarged, join, joined, pop, put


class GrowingLists(NamedTuple):
    """Growing adjacency lists: those of ``v`` are ``pool[first[v] : first[v] + length[v]]``.

    A list may still name eliminated vertices; it is cleared of them when it is next read, so
    that removing a vertex from a hub's list costs nothing.
    """

    first: np.ndarray
    length: np.ndarray
    room: np.ndarray
    degree: np.ndarray  # living neighbours
    size: np.ndarray  # log2 of the cells of the table that elimination would make now
    fill: np.ndarray  # weight of the missing pairs; only up to date while `size` is affordable
    gone: np.ndarray
    end: np.ndarray  # (1,) first free place of the pool


class Rule(NamedTuple):
    """What is minimised."""

    weight: np.ndarray  # (n,) c of the fill
    bias: np.ndarray  # (n,) added to the fill: noise, or a direction to sweep in


@kernel
def eliminate(start, neighbour, log_states, rule, max_log, max_cells):
    """Order all vertices, or stop when the next table or the running total is over budget.

    `start` and `neighbour` are adjacency lists in both directions; logarithms are to base 2, and
    `max_cells` is of all messages together. Returns the order, the neighbours of each vertex at its
    elimination as lists (`scope_start`, `scope`), the cells of all tables, and the vertex whose
    table is the smallest that is left if it stopped, otherwise -1.
    """
    n = log_states.shape[0]
    pool, lists = _copy_lists(start, neighbour, log_states)
    order = np.empty(n, np.int64)
    scope_start = np.zeros(n + 1, np.int64)
    scope = np.empty(2 * n + 16, np.int64)
    done, cells, messages = _peel(pool, lists, log_states, order, scope_start, scope)
    keys, n_keys = _hash_edges(pool, lists)
    heap = empty_heap(n)
    for v in range(n):
        if not lists.gone[v]:
            _score(v, pool, lists, keys, rule, max_log, heap)
    blocking = -1
    while done < n:
        v = pop(heap)
        if v < 0:
            for w in range(n):
                if not lists.gone[w] and (blocking < 0 or lists.size[w] < lists.size[blocking]):
                    blocking = w
            break
        messages += 2.0 ** (lists.size[v] - log_states[v])
        if messages > max_cells:
            blocking = v
            break
        cells += 2.0 ** lists.size[v]
        d = _living(v, pool, lists)
        scope = _with_room(scope, scope_start[done], d)
        members = scope[scope_start[done] : scope_start[done] + d]
        for x in range(d):
            members[x] = pool[lists.first[v] + x]
        order[done] = v
        done += 1
        scope_start[done] = scope_start[done - 1] + d
        lists.gone[v] = True
        pool, keys, n_keys = _join(
            members, log_states, pool, lists, keys, n_keys, rule, max_log, heap
        )
        for a in members:
            lists.degree[a] -= 1
            lists.size[a] -= log_states[v]
        for a in members:
            _score(a, pool, lists, keys, rule, max_log, heap)
    scope_start = scope_start[: done + 1]
    return order[:done], scope_start, scope[: scope_start[done]], cells, blocking


@helper
def _peel(pool, lists, log_states, order, scope_start, scope):
    """Eliminate vertices of at most one neighbour for as long as there are any.

    Their tables are tables of edges, which every order needs, so nothing better exists. Going on
    with the neighbour as soon as it is bare keeps a tree's buckets next to their parents.
    """
    done = 0
    cells = 0.0
    messages = 0.0
    for first in range(order.shape[0]):
        v = first
        while not lists.gone[v] and lists.degree[v] <= 1:
            following = v
            cells += 2.0 ** lists.size[v]
            messages += 2.0 ** (lists.size[v] - log_states[v])
            scope_start[done + 1] = scope_start[done]
            if lists.degree[v] == 1:
                _living(v, pool, lists)
                following = pool[lists.first[v]]
                scope[scope_start[done]] = following
                scope_start[done + 1] += 1
                lists.degree[following] -= 1
                lists.size[following] -= log_states[v]
            order[done] = v
            done += 1
            lists.gone[v] = True
            v = following
    return done, cells, messages


@helper
def _copy_lists(start, neighbour, log_states):
    n = log_states.shape[0]
    degree = start[1:] - start[:-1]
    size = log_states.copy()
    for v in range(n):
        for x in range(start[v], start[v + 1]):
            size[v] += log_states[neighbour[x]]
    first = start[:-1].copy()
    gone = np.zeros(n, np.bool_)
    end = np.array([neighbour.shape[0]])
    lists = GrowingLists(first, degree.copy(), degree.copy(), degree, size, np.zeros(n), gone, end)
    return neighbour.copy(), lists


@helper
def _rank(v, lists, rule, heap):
    """Put `v` in the place of its fill, then of its size."""
    put(heap, v, lists.fill[v] + rule.bias[v], lists.size[v])


@helper
def _score(v, pool, lists, keys, rule, max_log, heap):
    """Count the fill of `v` and rank it; not a candidate if its table is unaffordable."""
    if lists.size[v] > max_log:
        discard(heap, v)
        return
    d = _living(v, pool, lists)
    own = pool[lists.first[v] : lists.first[v] + d]
    fill = 0.0
    n = lists.gone.shape[0]
    for x in range(d):
        for y in range(x):
            if not joined(keys, own[x], own[y], n):
                fill += rule.weight[own[x]] * rule.weight[own[y]]
    lists.fill[v] = fill
    _rank(v, lists, rule, heap)


@helper
def _living(v, pool, lists):
    """Clear the list of `v` of eliminated vertices and return its length."""
    first = lists.first[v]
    kept = 0
    for x in range(first, first + lists.length[v]):
        if not lists.gone[pool[x]]:
            pool[first + kept] = pool[x]
            kept += 1
    lists.length[v] = kept
    return kept


@helper
def _join(members, log_states, pool, lists, keys, n_keys, rule, max_log, heap):
    """Make `members` a clique; common neighbours of a new edge lose that pair from their fill."""
    n = log_states.shape[0]
    for x in range(members.shape[0]):
        for y in range(x):
            a = members[x]
            b = members[y]
            if joined(keys, a, b, n):
                continue
            few = a if lists.degree[a] < lists.degree[b] else b
            other = a + b - few
            for z in range(_living(few, pool, lists)):
                w = pool[lists.first[few] + z]
                if lists.size[w] <= max_log and joined(keys, w, other, n):
                    lists.fill[w] -= rule.weight[a] * rule.weight[b]
                    _rank(w, lists, rule, heap)
            if 2 * n_keys >= keys.shape[0]:
                keys = enlarged(keys)
            join(keys, a, b, n)
            n_keys += 1
            pool = _append(a, b, pool, lists)
            pool = _append(b, a, pool, lists)
            lists.size[a] += log_states[b]
            lists.size[b] += log_states[a]
    return pool, keys, n_keys


@helper
def _append(v, new, pool, lists):
    """Add `new` to the list of `v`, moving the list to the end of the pool when it is full."""
    if lists.length[v] == lists.room[v] and _living(v, pool, lists) == lists.room[v]:
        length = lists.length[v]
        end = lists.end[0]
        room = 2 * length + 4
        pool = _with_room(pool, end, room)
        for x in range(length):
            pool[end + x] = pool[lists.first[v] + x]
        lists.first[v] = end
        lists.room[v] = room
        lists.end[0] = end + room
    pool[lists.first[v] + lists.length[v]] = new
    lists.length[v] += 1
    lists.degree[v] += 1
    return pool


@helper
def _with_room(values, used, extra):
    """Return `values`, copied to twice the length if `extra` more would not fit."""
    if used + extra <= values.shape[0]:
        return values
    larger = np.empty(2 * (used + extra), values.dtype)
    for k in range(used):  # a slice would take 1.5 s to compile
        larger[k] = values[k]
    return larger


@helper
def _hash_edges(pool, lists):
    """Return the hash set of the edges between living vertices, and their number."""
    n = lists.gone.shape[0]
    n_keys = 0
    for v in range(n):
        if not lists.gone[v]:
            n_keys += lists.degree[v]
    n_keys //= 2
    slots = 16
    while slots < 4 * n_keys:
        slots *= 2
    keys = np.full(slots, -1, np.int64)
    for v in range(n):
        if not lists.gone[v]:
            for x in range(_living(v, pool, lists)):
                w = pool[lists.first[v] + x]
                if v < w:
                    join(keys, v, w, n)
    return keys, n_keys
