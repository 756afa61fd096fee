"""An open-addressing map from pair ids to positions, for batches.

`keys` has a power-of-two length and holds -1 where it is free; `values` runs beside it. It is
kept at most half full by its owner, so that probes stay short.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def _home(key, mask):
    # Fibonacci hashing: consecutive ids, the common case, land far apart.
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@kernel
def insert(keys, values, new_keys, new_values):
    """Set the value of each new key (replacing one that is there); return how many were new."""
    mask = keys.shape[0] - 1
    added = 0
    for k in range(new_keys.shape[0]):
        slot = _home(new_keys[k], mask)
        while keys[slot] != -1 and keys[slot] != new_keys[k]:
            slot = (slot + 1) & mask
        added += keys[slot] == -1
        keys[slot] = new_keys[k]
        values[slot] = new_values[k]
    return added
