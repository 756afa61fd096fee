"""A hash map from pair ids to integers, and a hash set of edges: open addressing.

`keys` has a power-of-two length and holds -1 in free slots; the `values` of a map run beside it.
The owner keeps it at most half full, so that probes stay short. Nothing is ever deleted.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
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


@kernel
def join(keys, a, b, n):
    """Add the edge between the vertices `a` and `b` of `n` to a set."""
    key = min(a, b) * n + max(a, b)
    keys[slot_of(keys, key)] = key


@kernel
def joined(keys, a, b, n):
    """Return whether a set has the edge between `a` and `b`."""
    key = min(a, b) * n + max(a, b)
    return keys[slot_of(keys, key)] == key


@kernel
def enlarged(keys):
    """Return a set with twice the slots."""
    larger = np.full(2 * keys.shape[0], -1, np.int64)
    for key in keys:
        if key != -1:
            larger[slot_of(larger, key)] = key
    return larger
