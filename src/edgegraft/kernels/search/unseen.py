"""Pairs that were never seen, drawn uniformly from the best level without listing them.

Every variable has a boost ``B_i``; the priority of an unseen pair is ``default - (B_i + B_j)``, so
all pairs of two classes of equal boosts share one priority. A *level* is the set of class pairs
with one sum ``B_i + B_j``; levels are visited from the largest sum down, and a variable of which
every pair was seen belongs to no class. Within a level pairs are drawn by rejection of those seen,
which is exact and takes one or two tries as long as a fair part is unseen. A run of `PATIENCE`
rejections says that nearly all were seen: what is left is then listed, at a cost that the pairs
seen have paid for, and drawn from the list.

Unordered pairs are drawn as ordered ones: ``2 s_a s_b`` of them between two classes,
``s_a (s_a - 1)`` within one, so no square root is needed to find the pair of a number.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.search.pair_queue import is_unseen

PATIENCE = 32  # rejections in a row; happens to one draw in 29 with a tenth unseen
CHOSEN, TOTAL, LISTED, LEFT, READY = 0, 1, 2, 3, 4  # what `now` holds

# What a draw answers in place of a pair.
EXHAUSTED, NO_ROOM = -1, -2


class Levels(NamedTuple):
    """Classes of variables and the level that draws come from."""

    member: np.ndarray  # int64: variables that have unseen pairs, class after class
    first: np.ndarray  # int64 (classes + 1,): where each class begins in `member`
    boost: np.ndarray  # float64 (classes,): descending
    partner: np.ndarray  # int64 (classes,): the class that each row of classes has come to
    rows: np.ndarray  # int64 (classes,): rows whose class pair is of this level
    share: np.ndarray  # int64 (classes,): ordered pairs up to and with that class pair
    left: np.ndarray  # int64 (room,): what is left of a listed level
    now: np.ndarray  # int64 (5,): class pairs and ordered pairs here, listed?, left, ready?
    level: np.ndarray  # float64 (1,): the sum of boosts here


@kernel
def next_word(state):
    """Advance a xoshiro256++ generator of four words; return 64 random bits."""
    mixed = state[0] + state[3]
    mixed = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return mixed


@kernel
def below(state, limit):
    """Return a uniform integer in ``0 .. limit - 1``, without bias."""
    mask = np.uint64(limit - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    while True:
        drawn = np.int64(next_word(state) & mask)
        if drawn < limit:
            return drawn


@kernel
def next_level(levels, forward):
    """Go to the best level (with `forward`, the best below this one) that has pairs.

    Row ``a`` of classes has come to class ``partner[a] >= a``; sums fall along a row, so the best
    level left is the largest of the rows' present sums. Returns False where there is none.
    """
    n_classes = levels.boost.shape[0]
    while True:
        if forward:
            for k in range(levels.now[CHOSEN]):
                levels.partner[levels.rows[k]] += 1
        forward = True
        best = -np.inf
        for a in range(n_classes):
            if levels.partner[a] < n_classes:
                best = max(best, levels.boost[a] + levels.boost[levels.partner[a]])
        if best == -np.inf:
            levels.now[CHOSEN] = 0
            levels.now[TOTAL] = 0
            return False
        choose_level(levels, best)
        if levels.now[TOTAL] > 0:
            return True


@kernel
def choose_level(levels, level):
    """Gather the class pairs of a level from where the rows have come to."""
    n_classes = levels.boost.shape[0]
    chosen = 0
    total = 0
    for a in range(n_classes):
        b = levels.partner[a]
        if b < n_classes and levels.boost[a] + levels.boost[b] == level:
            size = levels.first[a + 1] - levels.first[a]
            if a == b:
                total += size * (size - 1)
            else:
                total += 2 * size * (levels.first[b + 1] - levels.first[b])
            levels.rows[chosen] = a
            levels.share[chosen] = total
            chosen += 1
    levels.level[0] = level
    levels.now[CHOSEN] = chosen
    levels.now[TOTAL] = total
    levels.now[LISTED] = 0
    levels.now[LEFT] = 0


@kernel
def draw_unseen(queue, levels, state):
    """Return an unseen pair of this level, EXHAUSTED if there is none, NO_ROOM to list them.

    The pair stays unseen: the caller marks it.
    """
    if levels.now[LISTED] == 0:
        # A level of a few pairs is listed at once: that is cheaper than patience.
        tries = PATIENCE if levels.now[TOTAL] > 2 * PATIENCE else 0
        for _ in range(tries):
            pair = _pair_at(queue, levels, below(state, levels.now[TOTAL]))
            if is_unseen(queue, pair):
                return pair
        if not list_level(queue, levels):
            return NO_ROOM
    while levels.now[LEFT] > 0:
        k = below(state, levels.now[LEFT])
        pair = levels.left[k]
        levels.now[LEFT] -= 1
        levels.left[k] = levels.left[levels.now[LEFT]]
        if is_unseen(queue, pair):  # it may have been prioritised since it was listed
            return pair
    return EXHAUSTED


@kernel
def list_level(queue, levels):
    """List the unseen pairs of this level; False (and LEFT says how many) if there is no room."""
    n = np.int64(queue.seen_degree.shape[0])
    count = 0
    for k in range(levels.now[CHOSEN]):
        a = levels.rows[k]
        b = levels.partner[a]
        for x in range(levels.first[a], levels.first[a + 1]):
            start = x + 1 if a == b else levels.first[b]
            for y in range(start, levels.first[b + 1]):
                i, j = levels.member[x], levels.member[y]
                pair = min(i, j) * n + max(i, j)
                if is_unseen(queue, pair):
                    if count < levels.left.shape[0]:
                        levels.left[count] = pair
                    count += 1
    levels.now[LEFT] = count
    levels.now[LISTED] = count <= levels.left.shape[0]
    return count <= levels.left.shape[0]


@kernel
def _pair_at(queue, levels, number):
    """Return the pair of an ordered pair's number within the level."""
    n = np.int64(queue.seen_degree.shape[0])
    k = 0
    if levels.now[CHOSEN] > 8:
        k = np.searchsorted(levels.share[: levels.now[CHOSEN]], number, side="right")
    else:
        while number >= levels.share[k]:
            k += 1
    if k > 0:
        number -= levels.share[k - 1]
    a = levels.rows[k]
    b = levels.partner[a]
    size_a = levels.first[a + 1] - levels.first[a]
    size_b = levels.first[b + 1] - levels.first[b]
    if a == b:
        x = number // (size_a - 1)
        y = number - x * (size_a - 1)
        y += y >= x
    else:
        number >>= 1  # both orders of a pair
        x = number // size_b
        y = number - x * size_b
    i = levels.member[levels.first[a] + x]
    j = levels.member[levels.first[b] + y]
    return min(i, j) * n + max(i, j)
