"""The stream's draw: the best of what is queued and what is unseen, pair after pair."""

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.search.pair_queue import QUEUED, SEEN, mark_seen, slot_of, take_out
from edgegraft.kernels.search.unseen import (
    EXHAUSTED,
    NO_ROOM,
    READY,
    draw_unseen,
    next_level,
)

# Why a draw returned.
DONE, NEEDS_LEVELS, NEEDS_ROOM = 0, 1, 2


@kernel
def draw_pairs(queue, levels, default, highest_boost, state, out, count):
    """Write pairs to ``out[count:]`` until it is full or nothing is left; return (count, why).

    An unseen pair goes before a queued one of the same priority. The classes of the unseen are
    asked for (NEEDS_LEVELS) only when no bound shows that the queue is ahead of all of them.
    """
    n = queue.seen_degree.shape[0]
    n_pairs = np.int64(n) * (n - 1) // 2
    while count < out.shape[0]:
        queued = queue.size[QUEUED] > 0
        if queue.size[SEEN] == n_pairs:
            if not queued:
                return count, DONE
            out[count] = take_out(queue, 0)
            count += 1
            continue
        ready = levels.now[READY] == 1
        bound = levels.level[0] if ready else 2.0 * highest_boost
        if queued and queue.keys[0] < default - bound:
            out[count] = take_out(queue, 0)
            count += 1
            continue
        if not ready:
            return count, NEEDS_LEVELS
        pair = draw_unseen(queue, levels, state)
        if pair == NO_ROOM:
            return count, NEEDS_ROOM
        if pair == EXHAUSTED:
            next_level(levels, True)
            continue
        mark_seen(queue, slot_of(queue.slot_id, pair), pair)
        out[count] = pair
        count += 1
    return count, DONE
