"""An indexed min-heap over pairs of variables, of which almost all are never stored.

A pair ``(i, j)``, ``i < j``, of ``n`` variables is the id ``i * n + j``: up to 1e10 of them, far
too many for the dense `place` array of an ordinary indexed heap. Here a hash table (open
addressing, a power of two of slots, at most half full, nothing is ever deleted) says of every
pair that was ever seen where it is now:

    place >= 0    position in the heap
    place == OUT  in the caller's hands
    place <= -2   frozen, as entry ``-2 - place`` of the frozen arrays
    no slot       unseen

The heap's order is total: smaller key first, equal keys in the order of a keyed mixing of their
ids, which is a random permutation. What is popped depends on the entries alone, not on the
history of the heap. Owners reserve room before they call: no kernel here allocates.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel

OUT = -1
SEEN, QUEUED, FROZEN = 0, 1, 2  # what `size` counts


class PairQueue(NamedTuple):
    """Every pair that is not unseen, and where it is."""

    slot_id: np.ndarray  # int64 (power of two,): pair of the slot, -1 where it is free
    slot_place: np.ndarray  # int64, beside it
    ids: np.ndarray  # int64 (room,): the heap
    keys: np.ndarray  # float64
    slots: np.ndarray  # int64: the entry's slot
    frozen_ids: np.ndarray  # int64 (room,)
    frozen_keys: np.ndarray  # float64
    size: np.ndarray  # int64 (3,): pairs seen, queued, frozen
    seen_degree: np.ndarray  # int64 (n,): pairs seen of each variable
    salt: np.ndarray  # uint64 (1,): which permutation orders equal keys


@kernel
def slot_of(slot_id, pair):
    """Return the slot of `pair`, or the free slot where it belongs."""
    mask = slot_id.shape[0] - 1
    mixed = np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(20)) & mask
    while slot_id[slot] != -1 and slot_id[slot] != pair:
        slot = (slot + 1) & mask
    return slot


@kernel
def is_unseen(queue, pair):
    """Say whether `pair` was never seen."""
    return queue.slot_id[slot_of(queue.slot_id, pair)] == -1


@kernel
def mark_seen(queue, slot, pair):
    """Give an unseen pair its slot; it is then out."""
    n = queue.seen_degree.shape[0]
    queue.slot_id[slot] = pair
    queue.slot_place[slot] = OUT
    queue.size[SEEN] += 1
    queue.seen_degree[pair // n] += 1
    queue.seen_degree[pair % n] += 1


@kernel
def push(queue, slot, pair, key):
    """Put a pair that is out into the heap."""
    at = queue.size[QUEUED]
    queue.size[QUEUED] = at + 1
    write(queue, at, slot, pair, key)
    _sift_up(queue, at)


@kernel
def write(queue, at, slot, pair, key):
    """Write a pair to position `at`, whatever the order: a sift or `heapify` follows."""
    queue.ids[at] = pair
    queue.keys[at] = key
    queue.slots[at] = slot
    queue.slot_place[slot] = at


@kernel
def change_key(queue, at, key):
    """Give the entry at position `at` another key."""
    queue.keys[at] = key
    _sift_down(queue, _sift_up(queue, at))


@kernel
def take_out(queue, at):
    """Remove the entry at position `at`; its pair is then out. Return the pair."""
    pair = queue.ids[at]
    queue.slot_place[queue.slots[at]] = OUT
    last = queue.size[QUEUED] - 1
    queue.size[QUEUED] = last
    if at != last:
        write(queue, at, queue.slots[last], queue.ids[last], queue.keys[last])
        _sift_down(queue, _sift_up(queue, at))
    return pair


@kernel
def heapify(queue):
    """Restore the order of the whole heap, in linear time."""
    for at in range(queue.size[QUEUED] // 2 - 1, -1, -1):
        _sift_down(queue, at)


@kernel
def rehash(queue, slot_id, slot_place):
    """Move every pair to the larger, empty arrays of slots."""
    for old in range(queue.slot_id.shape[0]):
        pair = queue.slot_id[old]
        if pair == -1:
            continue
        slot = slot_of(slot_id, pair)
        place = queue.slot_place[old]
        slot_id[slot] = pair
        slot_place[slot] = place
        if place >= 0:
            queue.slots[place] = slot


@kernel
def _mix(pair, salt):
    # The finaliser of SplitMix64, a bijection: two pairs are never equal.
    word = np.uint64(pair) ^ salt
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def _before(queue, key, pair, other_key, other_pair):
    if key != other_key:
        return key < other_key
    return _mix(pair, queue.salt[0]) < _mix(other_pair, queue.salt[0])


@kernel
def _sift_up(queue, at):
    # Places lie scattered over the hash table: an entry that stays is not written again.
    start, pair, key, slot = at, queue.ids[at], queue.keys[at], queue.slots[at]
    while at > 0:
        above = (at - 1) >> 1
        if not _before(queue, key, pair, queue.keys[above], queue.ids[above]):
            break
        write(queue, at, queue.slots[above], queue.ids[above], queue.keys[above])
        at = above
    if at != start:
        write(queue, at, slot, pair, key)
    return at


@kernel
def _sift_down(queue, at):
    start, pair, key, slot = at, queue.ids[at], queue.keys[at], queue.slots[at]
    size = queue.size[QUEUED]
    ids, keys = queue.ids, queue.keys
    while 2 * at + 1 < size:
        below = 2 * at + 1
        other = below + 1
        if other < size and _before(queue, keys[other], ids[other], keys[below], ids[below]):
            below = other
        if not _before(queue, keys[below], ids[below], key, pair):
            break
        write(queue, at, queue.slots[below], ids[below], keys[below])
        at = below
    if at != start:
        write(queue, at, slot, pair, key)
    return at
