"""Pairs that were never seen, drawn uniformly from a level without listing them.

A *level* is a set of blocks, each all pairs between two runs of `member` (or within one):

    blocks[b] = (first, size, other first, other size, ordered pairs up to and with this block)

Pairs are drawn by rejection of those seen, which is exact and takes one or two tries as long as a
fair part is unseen. A run of `MAX_REJECTIONS` shows that nearly all were seen: what is left
is then listed, at a cost that the pairs seen have paid for, and drawn from the list.

Unordered pairs are drawn as ordered ones: ``2 s t`` of them between two runs, ``s (s - 1)`` within
one, so no square root is needed to find the pair of a number. `keys` and `values` are a hash map
that holds every pair seen; a pair that is drawn is entered there with the value `OUT`.
"""

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.structures import slot_of

OUT = 0
MAX_REJECTIONS = 32  # in a row; happens to one draw in 29 with a tenth unseen


@kernel
def draw_from_level(keys, values, n, member, blocks, words, out):
    """Write unseen pairs to `out` until it is full or too many are rejected; return how many."""
    count = 0
    rejected = 0
    while count < out.shape[0] and rejected < MAX_REJECTIONS:
        pair = _pair_at(n, member, blocks, _below(words, blocks[-1, 4]))
        slot = slot_of(keys, pair)
        rejected += 1
        if keys[slot] == -1:
            rejected = 0
            keys[slot] = pair
            values[slot] = OUT
            out[count] = pair
            count += 1
    return count


@kernel
def draw_from_list(keys, values, left, n_left, words, out):
    """Write unseen pairs of ``left[:n_left]`` to `out`; return how many, and the new `n_left`."""
    count = 0
    while count < out.shape[0] and n_left > 0:
        k = _below(words, n_left)
        pair = left[k]
        n_left -= 1
        left[k] = left[n_left]
        slot = slot_of(keys, pair)
        if keys[slot] == -1:  # it may have been prioritised since it was listed
            keys[slot] = pair
            values[slot] = OUT
            out[count] = pair
            count += 1
    return count, n_left


@kernel
def _pair_at(n, member, blocks, number):
    """Return the pair of an ordered pair's number within the level."""
    low, high = 0, blocks.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if number < blocks[middle, 4]:
            high = middle
        else:
            low = middle + 1
    if low > 0:
        number -= blocks[low - 1, 4]
    first, size, other, other_size = blocks[low, 0], blocks[low, 1], blocks[low, 2], blocks[low, 3]
    if first == other:
        x = number // (size - 1)
        y = number - x * (size - 1)
        y += y >= x
    else:
        number >>= 1  # both orders of a pair
        x = number // other_size
        y = number - x * other_size
    i, j = member[first + x], member[other + y]
    return min(i, j) * n + max(i, j)


@kernel
def _below(words, limit):
    """Return a uniform integer in ``0 .. limit - 1``, without bias."""
    mask = np.uint64(limit - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    while True:
        drawn = np.int64(_next_word(words) & mask)
        if drawn < limit:
            return drawn


@njit(inline="always")
def _next_word(words):
    """Advance a xoshiro256++ generator of four words; return 64 random bits."""
    mixed = words[0] + words[3]
    mixed = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + words[0]
    shifted = words[1] << np.uint64(17)
    words[2] ^= words[0]
    words[3] ^= words[1]
    words[1] ^= words[2]
    words[0] ^= words[3]
    words[2] ^= shifted
    words[3] = (words[3] << np.uint64(45)) | (words[3] >> np.uint64(19))
    return mixed
