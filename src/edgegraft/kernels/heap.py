"""A binary heap of vertices whose keys change, the smallest first: each is in it at most once.

Keys are pairs compared lexicographically, ties go to the smaller vertex, so that what is popped
depends on the keys alone and not on the history of the heap.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel


class Heap(NamedTuple):
    """Vertices ``items[:length[0]]`` in heap order; ``place[v]`` is where ``v`` is, or -1."""

    items: np.ndarray  # int64 (n,)
    place: np.ndarray  # int64 (n,)
    key: np.ndarray  # float64 (n, 2)
    length: np.ndarray  # int64 (1,)


@kernel
def empty_heap(n):
    """Return a heap with capacity for the vertices ``0..n-1``."""
    place = np.full(n, -1, np.int64)
    return Heap(np.empty(n, np.int64), place, np.empty((n, 2)), np.zeros(1, np.int64))


@kernel
def put(heap, v, first, second):
    """Add `v` with the key ``(first, second)``, or give it that key."""
    heap.key[v, 0] = first
    heap.key[v, 1] = second
    if heap.place[v] < 0:
        heap.place[v] = heap.length[0]
        heap.items[heap.length[0]] = v
        heap.length[0] += 1
    _sift_down(heap, _sift_up(heap, heap.place[v]))


@kernel
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


@kernel
def pop(heap):
    """Remove and return the vertex of the smallest key, -1 if the heap is empty."""
    if heap.length[0] == 0:
        return -1
    v = heap.items[0]
    discard(heap, v)
    return v


@kernel
def _before(heap, v, w):
    for part in range(2):
        if heap.key[v, part] != heap.key[w, part]:
            return heap.key[v, part] < heap.key[w, part]
    return v < w


@kernel
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


@kernel
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
