"""A candidate stream as plain arrays, and back.

Pairs are stored by id in ascending order: the heap's order is total, so its layout and that of the
hash table carry nothing. The level that unseen pairs are drawn from is stored as it is, since how
many random words a draw takes depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats, Ids
from edgegraft.kernels.search.pair_moves import out_pairs
from edgegraft.kernels.search.pair_queue import FROZEN, QUEUED, SEEN, PairQueue
from edgegraft.kernels.search.unseen import LEFT, LISTED, READY, Levels

Arrays = dict[str, NDArray[Any]]

_DTYPES = {
    "default_priority": np.float64,
    "salt": np.uint64,
    "salted": np.bool_,
    "boosts": np.float64,
    "queued": np.int64,
    "queued_priorities": np.float64,
    "frozen": np.int64,
    "frozen_offsets": np.float64,
    "out": np.int64,
    "ready": np.bool_,
    "listed": np.bool_,
    "members": np.int64,
    "partners": np.int64,
    "level": np.float64,
    "left": np.int64,
}


class Members(NamedTuple):
    """Where the sampling of unseen pairs has come to."""

    member: Ids
    partner: Ids
    level: float
    left: Ids | None  # None: the level is not listed


class Stored(NamedTuple):
    """A stream's state, checked."""

    default_priority: float
    salted: bool
    salt: np.uint64
    boosts: Floats
    queued: Ids
    queued_keys: Floats
    frozen: Ids
    frozen_keys: Floats
    out: Ids
    members: Members | None


def export(
    default_priority: float, salted: bool, boosts: Floats, queue: PairQueue, levels: Levels
) -> Arrays:
    """Return the arrays of a stream's state."""
    queued, queued_keys = _by_id(queue.ids, queue.keys, int(queue.size[QUEUED]))
    frozen, frozen_keys = _by_id(queue.frozen_ids, queue.frozen_keys, int(queue.size[FROZEN]))
    out = np.empty(int(queue.size[SEEN]) - len(queued) - len(frozen), np.int64)
    out_pairs(queue, out)
    ready, listed = bool(levels.now[READY]), bool(levels.now[LISTED])
    values = (
        default_priority,
        queue.salt[0],
        salted,
        boosts.copy(),
        queued,
        queued_keys,
        frozen,
        frozen_keys,
        np.sort(out),
        ready,
        ready and listed,
        levels.member.copy() if ready else (),
        levels.partner.copy() if ready else (),
        levels.level[0] if ready else 0.0,
        levels.left[: int(levels.now[LEFT])].copy() if ready and listed else (),
    )
    return {
        name: np.asarray(value, dtype)
        for (name, dtype), value in zip(_DTYPES.items(), values, strict=True)
    }


def read(state: Mapping[str, NDArray[Any]]) -> Stored:
    """Check a state and return its parts; a part that is missing or does not fit is an error."""
    missing = sorted(set(_DTYPES) - set(state))
    if missing:
        raise ValueError(f"the stream's state lacks {', '.join(missing)}")
    part: Arrays = {
        name: np.ascontiguousarray(state[name], dtype) for name, dtype in _DTYPES.items()
    }
    for name in ("default_priority", "salt", "salted", "ready", "listed", "level"):
        part[name] = part[name].reshape(())
    _check_pairs(part)
    left = part["left"] if part["listed"] else None
    members = Members(part["members"], part["partners"], float(part["level"]), left)
    return Stored(
        float(part["default_priority"]),
        bool(part["salted"]),
        np.uint64(part["salt"]),
        part["boosts"],
        part["queued"],
        part["queued_priorities"],
        part["frozen"],
        part["frozen_offsets"],
        part["out"],
        members if part["ready"] else None,
    )


def _check_pairs(part: Arrays) -> None:
    n = len(part["boosts"])
    ids = np.concatenate((part["queued"], part["frozen"], part["out"]))
    first, second = np.divmod(ids, max(n, 1))
    if (ids < 0).any() or (first >= second).any():
        raise ValueError(f"the stream's state names pairs that {n} variables do not have")
    if len(np.unique(ids)) < len(ids):
        raise ValueError("the stream's state has a pair in two places")
    for pairs, keys in (("queued", "queued_priorities"), ("frozen", "frozen_offsets")):
        if len(part[pairs]) != len(part[keys]):
            raise ValueError(
                f"the stream's state has {len(part[pairs])} {pairs} pairs but "
                f"{len(part[keys])} {keys}"
            )


def _by_id(ids: Ids, keys: Floats, size: int) -> tuple[Ids, Floats]:
    order = np.argsort(ids[:size])
    return ids[:size][order], keys[:size][order]
