"""Candidate pairs: the strongest partners of a variable, pairs that were never seen.

*Partners* are bounded heaps, filled as pairs stream by. Row ``i`` of `partner` and `score` is a
heap of the ``k`` best so far, its smallest at the root (-1: empty). The order is total, larger
score first and then the smaller partner, so the result does not depend on the order of the pairs.

*Unseen pairs* are drawn uniformly from a level without listing them. A *level* is a set of blocks,
each all pairs between two runs of `member` (or within one):

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

from edgegraft.kernels.compiler import helper, kernel
from edgegraft.kernels.counting import TILE, add_tile
from edgegraft.kernels.structures import slot_of

BLOCK = 128  # variables per side of a block whose planes stay in cache together


@helper
def offer(partner, score, i, j, value):
    """Let `j` into the heap of `i` if it is good enough."""
    k = partner.shape[1]
    if not _worse(score[i, 0], partner[i, 0], value, j):
        return
    at = 0
    while 2 * at + 1 < k:
        below = 2 * at + 1
        other = below + 1
        if other < k and _worse(
            score[i, other], partner[i, other], score[i, below], partner[i, below]
        ):
            below = other
        if not _worse(score[i, below], partner[i, below], value, j):
            break
        score[i, at] = score[i, below]
        partner[i, at] = partner[i, below]
        at = below
    score[i, at] = value
    partner[i, at] = j


@helper
def _worse(score, partner, other_score, other_partner):
    if score != other_score:
        return score < other_score
    return partner > other_partner


@kernel
def offer_pairs(partner, score, edges, values):
    """Offer the ends of each pair to each other."""
    for e in range(edges.shape[0]):
        i, j = edges[e, 0], edges[e, 1]
        offer(partner, score, i, j, values[e])
        offer(partner, score, j, i, values[e])


@kernel
def offer_binary(words, ones, n_rows, partner, score, first, step):
    """Offer all pairs of complete two-state variables to each other.

    Only every `step`-th row of blocks, from block `first` on: the share of one thread. There is one
    plane per variable, so a register tile counts 16 pairs at once. The score is the squared
    correlation of the two columns, chi-square / N, less its expectation under independence.
    """
    n = words.shape[0]
    counts = np.zeros(TILE * TILE, np.int64)
    scale = np.zeros(n)  # 1 / (N variance); a constant column depends on nothing
    for i in range(n):
        if 0 < ones[i] < n_rows:
            scale[i] = 1.0 / (ones[i] * (1.0 - ones[i] / n_rows))
    for left in range(first * BLOCK, n, step * BLOCK):
        for right in range(left, n, BLOCK):
            for i in range(left, min(left + BLOCK, n), TILE):
                for j in range(max(right, i), min(right + BLOCK, n), TILE):
                    high, wide = min(TILE, n - i), min(TILE, n - j)
                    counts[:] = 0
                    add_tile(words, i, words, j, 0, words.shape[1], high, wide, counts, 0, TILE)
                    _offer_tile(counts, ones, scale, n_rows, i, j, high, wide, partner, score)


@helper
def _offer_tile(counts, ones, scale, n_rows, i, j, high, wide, partner, score):
    for a in range(i, i + high):
        for b in range(max(j, a + 1), j + wide):
            both = counts[(a - i) * TILE + b - j]
            lift = both - np.float64(ones[a] * ones[b]) / n_rows
            value = lift * lift * (scale[a] * scale[b]) - 1.0 / n_rows
            if value >= score[a, 0]:
                offer(partner, score, a, b, value)
            if value >= score[b, 0]:
                offer(partner, score, b, a, value)


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


@helper
def _pair_at(n, member, blocks, number):
    """Return the pair of an ordered pair's number within the level."""
    b = np.searchsorted(blocks[:, 4], number, "right")
    if b > 0:
        number -= blocks[b - 1, 4]
    first, size, other, other_size = blocks[b, 0], blocks[b, 1], blocks[b, 2], blocks[b, 3]
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


@helper
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
