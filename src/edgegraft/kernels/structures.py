"""Data structures that kernels share, and walks of graphs.

*A hash map from pair ids to integers, and a hash set of edges*, by open addressing. `keys` has a
power-of-two length and holds -1 in free slots; the `values` of a map run beside it. The owner keeps
it at most half full, so that probes stay short. Nothing is ever deleted.

*A binary heap of vertices whose keys change*, the smallest first: each is in it at most once. Keys
are pairs compared lexicographically, ties go to the smaller vertex, so that what is popped depends
on the keys alone and not on the history of the heap.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import helper, kernel


@helper
def slot_of(keys, key):
    """Return the slot of `key`, or the free slot where it belongs."""
    mask = keys.shape[0] - 1
    # Fibonacci hashing: consecutive ids, the common case, land far apart.
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def find(keys, values, wanted):
    """Return the value of each wanted key, -1 if it is absent."""
    out = np.empty(wanted.shape[0], np.int64)
    for k in range(wanted.shape[0]):
        slot = slot_of(keys, wanted[k])
        out[k] = values[slot] if keys[slot] != -1 else -1
    return out


@kernel
def insert(keys, values, new_keys, new_values):
    """Set the value of each key, one after another; return the value it had, -1 if it is new."""
    old = np.empty(new_keys.shape[0], np.int64)
    for k in range(new_keys.shape[0]):
        slot = slot_of(keys, new_keys[k])
        old[k] = values[slot] if keys[slot] != -1 else -1
        keys[slot] = new_keys[k]
        values[slot] = new_values[k]
    return old


@helper
def join(keys, a, b, n):
    """Add the edge between the vertices `a` and `b` of `n` to a set."""
    key = min(a, b) * n + max(a, b)
    keys[slot_of(keys, key)] = key


@helper
def joined(keys, a, b, n):
    """Return whether a set has the edge between `a` and `b`."""
    key = min(a, b) * n + max(a, b)
    return keys[slot_of(keys, key)] == key


@helper
def enlarged(keys):
    """Return a set with twice the slots."""
    larger = np.full(2 * keys.shape[0], -1, np.int64)
    for key in keys:
        if key != -1:
            larger[slot_of(larger, key)] = key
    return larger


class Heap(NamedTuple):
    """Vertices ``items[:length[0]]`` in heap order; ``place[v]`` is where ``v`` is, or -1."""

    items: np.ndarray  # int64 (n,)
    place: np.ndarray  # int64 (n,)
    key: np.ndarray  # float64 (n, 2)
    length: np.ndarray  # int64 (1,)


@helper
def empty_heap(n):
    """Return a heap with capacity for the vertices ``0..n-1``."""
    place = np.full(n, -1, np.int64)
    return Heap(np.empty(n, np.int64), place, np.empty((n, 2)), np.zeros(1, np.int64))


@helper
def put(heap, v, first, second):
    """Add `v` with the key ``(first, second)``, or give it that key."""
    heap.key[v, 0] = first
    heap.key[v, 1] = second
    if heap.place[v] < 0:
        heap.place[v] = heap.length[0]
        heap.items[heap.length[0]] = v
        heap.length[0] += 1
    _sift_down(heap, _sift_up(heap, heap.place[v]))


@helper
def discard(heap, v):
    """Remove `v` if it is there."""
    at = heap.place[v]
    if at < 0:
        return
    heap.place[v] = -1
    heap.length[0] -= 1
    last = heap.items[heap.length[0]]
    if last != v:
        heap.items[at] = last
        heap.place[last] = at
        _sift_down(heap, _sift_up(heap, at))


@helper
def pop(heap):
    """Remove and return the vertex of the smallest key, -1 if the heap is empty."""
    if heap.length[0] == 0:
        return -1
    v = heap.items[0]
    discard(heap, v)
    return v


@helper
def _before(heap, v, w):
    for part in range(2):
        if heap.key[v, part] != heap.key[w, part]:
            return heap.key[v, part] < heap.key[w, part]
    return v < w


@helper
def _sift_up(heap, at):
    v = heap.items[at]
    while at > 0:
        above = (at - 1) // 2
        if not _before(heap, v, heap.items[above]):
            break
        heap.items[at] = heap.items[above]
        heap.place[heap.items[at]] = at
        at = above
    heap.items[at] = v
    heap.place[v] = at
    return at


@helper
def _sift_down(heap, at):
    v = heap.items[at]
    while 2 * at + 1 < heap.length[0]:
        below = 2 * at + 1
        if below + 1 < heap.length[0] and _before(heap, heap.items[below + 1], heap.items[below]):
            below += 1
        if not _before(heap, heap.items[below], v):
            break
        heap.items[at] = heap.items[below]
        heap.place[heap.items[at]] = at
        at = below
    heap.items[at] = v
    heap.place[v] = at


@kernel
def depth_first(parent):
    """Return the order of a forest's nodes in which every subtree is contiguous, root last.

    `parent` names a later node, or -1. Roots keep their order, siblings reverse theirs.
    """
    n = parent.shape[0]
    subtree = np.ones(n, np.int64)
    for k in range(n):
        if parent[k] >= 0:
            subtree[parent[k]] += subtree[k]
    free = np.zeros(n, np.int64)  # first place that is not taken in a node's stretch
    order = np.empty(n, np.int64)
    taken = n
    for k in range(n - 1, -1, -1):
        if parent[k] < 0:
            taken -= subtree[k]
            free[k] = taken
        else:
            free[k] = free[parent[k]]
            free[parent[k]] += subtree[k]
        order[free[k] + subtree[k] - 1] = k
    return order


@kernel
def sweep_levels(start, neighbour, roots):
    """Return the distance of each vertex from a far end of its component.

    The end is the vertex found last from the first of `roots` (a permutation) in the component.
    """
    n = roots.shape[0]
    level = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    for root in roots:
        if level[root] < 0:
            reached = _breadth_first(root, start, neighbour, level, queue)
            end = queue[reached - 1]
            for x in range(reached):
                level[queue[x]] = -1
            _breadth_first(end, start, neighbour, level, queue)
    return level


@helper
def _breadth_first(root, start, neighbour, level, queue):
    queue[0] = root
    level[root] = 0
    reached = 1
    done = 0
    while done < reached:
        v = queue[done]
        done += 1
        for x in range(start[v], start[v + 1]):
            if level[neighbour[x]] < 0:
                level[neighbour[x]] = level[v] + 1
                queue[reached] = neighbour[x]
                reached += 1
    return reached
