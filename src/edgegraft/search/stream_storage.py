"""The arrays behind a candidate stream: how they are made and how they grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.kernels.search.pair_queue import FROZEN, QUEUED, SEEN, PairQueue, rehash
from edgegraft.kernels.search.unseen import LEFT, LISTED, READY, Levels, choose_level, next_level
from edgegraft.search.stream_state import Members

_LEAST_ROOM = 256
_LISTED_ROOM = 1024  # pairs left of a level that are listed without another allocation


def empty_queue(n_variables: int) -> PairQueue:
    """Return a queue in which every pair is unseen."""
    return PairQueue(
        slot_id=np.full(2 * _LEAST_ROOM, -1, np.int64),
        slot_place=np.empty(2 * _LEAST_ROOM, np.int64),
        ids=np.empty(_LEAST_ROOM, np.int64),
        keys=np.empty(_LEAST_ROOM),
        slots=np.empty(_LEAST_ROOM, np.int64),
        frozen_ids=np.empty(_LEAST_ROOM, np.int64),
        frozen_keys=np.empty(_LEAST_ROOM),
        size=np.zeros(3, np.int64),
        seen_degree=np.zeros(n_variables, np.int64),
        salt=np.zeros(1, np.uint64),
    )


def with_room(queue: PairQueue, seen: int, queued: int, frozen: int) -> PairQueue:
    """Return the queue with room for that many more pairs of each kind."""
    if 2 * (int(queue.size[SEEN]) + seen) > len(queue.slot_id):
        n_slots = 1 << (2 * (int(queue.size[SEEN]) + seen) - 1).bit_length()
        slot_id = np.full(n_slots, -1, np.int64)
        slot_place = np.empty(n_slots, np.int64)
        rehash(queue, slot_id, slot_place)
        queue = queue._replace(slot_id=slot_id, slot_place=slot_place)
    needed = int(queue.size[QUEUED]) + queued
    if needed > len(queue.ids):
        queue = queue._replace(
            ids=_longer(queue.ids, needed),
            keys=_longer(queue.keys, needed),
            slots=_longer(queue.slots, needed),
        )
    needed = int(queue.size[FROZEN]) + frozen
    if needed > len(queue.frozen_ids):
        queue = queue._replace(
            frozen_ids=_longer(queue.frozen_ids, needed),
            frozen_keys=_longer(queue.frozen_keys, needed),
        )
    return queue


def no_levels() -> Levels:
    """Return levels that are to be built before the next unseen pair is drawn."""
    return _classes(np.empty(0, np.int64), np.empty(0))


def build_levels(boosts: NDArray[np.float64], queue: PairQueue) -> Levels:
    """Sort the variables that have unseen pairs into classes; begin at the best level."""
    alive = np.flatnonzero(queue.seen_degree < len(boosts) - 1)
    member = alive[np.argsort(-boosts[alive], kind="stable")]
    levels = _classes(member, boosts)
    next_level(levels, False)
    levels.now[READY] = 1
    return levels


def resume_levels(boosts: NDArray[np.float64], members: Members) -> Levels:
    """Return the levels as they were when their state was taken."""
    levels = _classes(members.member, boosts)
    levels.partner[:] = members.partner
    choose_level(levels, members.level)
    levels.now[READY] = 1
    if members.left is not None:
        room = max(_LISTED_ROOM, len(members.left))
        levels = levels._replace(left=np.empty(room, np.int64))
        levels.left[: len(members.left)] = members.left
        levels.now[LEFT] = len(members.left)
        levels.now[LISTED] = 1
    return levels


def _classes(member: NDArray[np.int64], boosts: NDArray[np.float64]) -> Levels:
    own = boosts[member]
    first = np.flatnonzero(np.concatenate(([True], own[1:] != own[:-1]))) if len(own) else own
    n_classes = len(first)
    return Levels(
        member=np.ascontiguousarray(member, np.int64),
        first=np.append(first, len(member)).astype(np.int64),
        boost=own[np.asarray(first, np.int64)],
        partner=np.arange(n_classes),
        rows=np.empty(n_classes, np.int64),
        share=np.empty(n_classes, np.int64),
        left=np.empty(_LISTED_ROOM, np.int64),
        now=np.zeros(5, np.int64),
        level=np.zeros(1),
    )


def _longer(array: NDArray[np.generic], needed: int) -> NDArray[np.generic]:
    # Half as much again, so that appending stays linear in what is appended.
    longer = np.empty(max(needed, len(array) + len(array) // 2), array.dtype)
    longer[: len(array)] = array
    return longer
