"""An indexed max-heap of nodes in arrays: the next node to update is the one most out of date.

``heap[:size]`` holds nodes, ``place[i]`` where node ``i`` is (-1: not in it), ``key[i]`` its
priority. Keys only grow while a node waits, so one sift up restores the order.
"""

from __future__ import annotations

from edgegraft.kernels.compiler import kernel


@kernel
def push_or_raise(heap, place, key, size, i):
    """Put node `i` in its place after its key grew; return the new size."""
    if place[i] < 0:
        place[i] = size
        heap[size] = i
        size += 1
    at = place[i]
    while at > 0:
        parent = (at - 1) >> 1
        other = heap[parent]
        if key[other] >= key[i]:
            break
        heap[at] = other
        place[other] = at
        at = parent
    heap[at] = i
    place[i] = at
    return size


@kernel
def remove(heap, place, key, size, i):
    """Take node `i` out, wherever it is; return the new size."""
    at = place[i]
    place[i] = -1
    size -= 1
    last = heap[size]
    if last == i:
        return size
    place[last] = at
    heap[at] = last
    push_or_raise(heap, place, key, size, last)
    _sift_down(heap, place, key, size, place[last])
    return size


@kernel
def _sift_down(heap, place, key, size, at):
    i = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        other = heap[child]
        if key[i] >= key[other]:
            break
        heap[at] = other
        place[other] = at
        at = child
    heap[at] = i
    place[i] = at
