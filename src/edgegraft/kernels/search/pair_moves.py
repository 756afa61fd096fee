"""Batches of pairs moved between the states of a queue: queued, frozen, out.

Each function takes the pairs' ids; the owner has checked them and reserved room.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel
from edgegraft.kernels.search.pair_queue import (
    FROZEN,
    OUT,
    QUEUED,
    change_key,
    heapify,
    mark_seen,
    push,
    slot_of,
    take_out,
    write,
)


@kernel
def count_out(queue, pairs):
    """Return how many leading pairs are out: all of them, or the index of the first that is not."""
    for k in range(pairs.shape[0]):
        slot = slot_of(queue.slot_id, pairs[k])
        if queue.slot_id[slot] == -1 or queue.slot_place[slot] != OUT:
            return k
    return pairs.shape[0]


@kernel
def put_out(queue, pairs):
    """Take pairs out of wherever they are."""
    for k in range(pairs.shape[0]):
        _release(queue, slot_of(queue.slot_id, pairs[k]), pairs[k])


@kernel
def set_keys(queue, pairs, keys, thaw):
    """Queue unseen (and, with `thaw`, frozen) pairs, change the keys of queued ones.

    Pairs that are out stay so. Return the number of pairs that have their key now.
    """
    done = 0
    for k in range(pairs.shape[0]):
        slot = slot_of(queue.slot_id, pairs[k])
        unseen = queue.slot_id[slot] == -1
        if not unseen and queue.slot_place[slot] >= 0:
            change_key(queue, queue.slot_place[slot], keys[k])
        elif unseen or (thaw and queue.slot_place[slot] <= -2):
            _release(queue, slot, pairs[k])
            push(queue, slot, pairs[k], keys[k])
        else:
            continue
        done += 1
    return done


@kernel
def requeue(queue, pairs, keys):
    """Queue pairs that are out."""
    for k in range(pairs.shape[0]):
        push(queue, slot_of(queue.slot_id, pairs[k]), pairs[k], keys[k])


@kernel
def freeze(queue, pairs, keys):
    """Freeze pairs, wherever they are; one that is frozen already gets the new key."""
    for k in range(pairs.shape[0]):
        slot = slot_of(queue.slot_id, pairs[k])
        _release(queue, slot, pairs[k])
        at = queue.size[FROZEN]
        queue.size[FROZEN] = at + 1
        queue.frozen_ids[at] = pairs[k]
        queue.frozen_keys[at] = keys[k]
        queue.slot_place[slot] = -2 - at


@kernel
def thaw_all(queue):
    """Queue every frozen pair with the key it was frozen with."""
    first = queue.size[QUEUED]
    for k in range(queue.size[FROZEN]):
        pair = queue.frozen_ids[k]
        write(queue, first + k, slot_of(queue.slot_id, pair), pair, queue.frozen_keys[k])
    queue.size[QUEUED] += queue.size[FROZEN]
    queue.size[FROZEN] = 0
    heapify(queue)


@kernel
def queue_all(queue, key):
    """Queue every pair with the same key; the queue is empty."""
    n = queue.seen_degree.shape[0]
    at = 0
    for i in range(n):
        for j in range(i + 1, n):
            pair = np.int64(i) * n + j
            slot = slot_of(queue.slot_id, pair)
            mark_seen(queue, slot, pair)
            write(queue, at, slot, pair, key)
            at += 1
    queue.size[QUEUED] = at
    heapify(queue)


@kernel
def lower_keys(queue, marked, by):
    """Lower the key of every queued pair by `by` for each marked variable that it has.

    One pass over the entries and one over the heap: hubs touch a good part of the queue at once,
    and a sequential pass is then faster than looking for their pairs.
    """
    n = queue.seen_degree.shape[0]
    touched = False
    for at in range(queue.size[QUEUED]):
        i = queue.ids[at] // n
        j = queue.ids[at] - i * n
        if marked[i]:
            queue.keys[at] -= by
            touched = True
        if marked[j]:
            queue.keys[at] -= by
            touched = True
    if touched:
        heapify(queue)


@kernel
def out_pairs(queue, out):
    """Write the ids of the pairs that are out; return how many there are."""
    count = 0
    for slot in range(queue.slot_id.shape[0]):
        if queue.slot_id[slot] != -1 and queue.slot_place[slot] == OUT:
            out[count] = queue.slot_id[slot]
            count += 1
    return count


@kernel
def _release(queue, slot, pair):
    if queue.slot_id[slot] == -1:
        mark_seen(queue, slot, pair)
        return
    place = queue.slot_place[slot]
    if place >= 0:
        take_out(queue, place)
    elif place <= -2:
        _leave_frozen(queue, -2 - place)
    queue.slot_place[slot] = OUT


@kernel
def _leave_frozen(queue, at):
    last = queue.size[FROZEN] - 1
    queue.size[FROZEN] = last
    if at != last:
        moved = queue.frozen_ids[last]
        queue.frozen_ids[at] = moved
        queue.frozen_keys[at] = queue.frozen_keys[last]
        queue.slot_place[slot_of(queue.slot_id, moved)] = -2 - at
