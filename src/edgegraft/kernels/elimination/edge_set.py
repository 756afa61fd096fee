"""A hash set of edges, open addressing: free slots hold -1, the length is a power of two.

An edge of a graph of ``n`` vertices is the key ``min * n + max``. The owner keeps the set at most
half full, so that probes stay short.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def _slot(keys, key):
    """Return where `key` is, or the free slot where it belongs."""
    mask = keys.shape[0] - 1
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def insert(keys, a, b, n):
    """Add the edge between `a` and `b`."""
    key = min(a, b) * n + max(a, b)
    keys[_slot(keys, key)] = key


@kernel
def joined(keys, a, b, n):
    """Say whether there is an edge between `a` and `b`."""
    key = min(a, b) * n + max(a, b)
    return keys[_slot(keys, key)] == key


@kernel
def rehash(keys):
    """Return the set with twice the slots."""
    larger = np.full(2 * keys.shape[0], -1, np.int64)
    for key in keys:
        if key != -1:
            larger[_slot(larger, key)] = key
    return larger
