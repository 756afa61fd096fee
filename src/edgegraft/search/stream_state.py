"""A candidate stream as plain arrays, and back.

Pairs are stored by id in ascending order: what is drawn does not depend on how they are held. The
level that unseen pairs are drawn from is stored as it is, since the number of random words that a
draw takes depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats, Ids

Arrays = dict[str, NDArray[Any]]

_SCALARS = {
    "default_priority": np.float64,
    "salt": np.uint64,
    "salted": np.bool_,
    "ready": np.bool_,
    "listed": np.bool_,
    "level": np.float64,
}
_DTYPES = _SCALARS | {
    "boosts": np.float64,
    "queued": np.int64,
    "queued_priorities": np.float64,
    "frozen": np.int64,
    "frozen_offsets": np.float64,
    "out": np.int64,
    "members": np.int64,
    "partners": np.int64,
    "left": np.int64,
}


def export(
    queue: tuple[Ids, Floats], frozen: tuple[Ids, Floats], unseen: dict[str, Any], **parts: Any
) -> Arrays:
    """Return the arrays of a stream's state."""
    for name, numbers, (ids, values) in (
        ("queued", "queued_priorities", queue),
        ("frozen", "frozen_offsets", frozen),
    ):
        order = np.argsort(ids)
        parts |= {name: ids[order], numbers: values[order]}
    parts |= unseen
    return {name: np.asarray(parts[name], dtype) for name, dtype in _DTYPES.items()}


def read(state: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the parts of a state; one that is missing or does not fit is an error."""
    missing = sorted(set(_DTYPES) - set(state))
    if missing:
        raise ValueError(f"the stream's state lacks {', '.join(missing)}")
    part: Arrays = {
        name: np.ascontiguousarray(state[name], dtype) for name, dtype in _DTYPES.items()
    }
    part |= {name: part[name].reshape(()) for name in _SCALARS}
    n = len(part["boosts"])
    ids = np.concatenate((part["queued"], part["frozen"], part["out"]))
    first, second = np.divmod(ids, max(n, 1))
    if (ids < 0).any() or (first >= second).any():
        raise ValueError(f"the stream's state names pairs that {n} variables do not have")
    if not np.diff(np.sort(ids)).all():
        raise ValueError("the stream's state has a pair in two places")
    for pairs, numbers in (("queued", "queued_priorities"), ("frozen", "frozen_offsets")):
        if len(part[pairs]) != len(part[numbers]):
            raise ValueError(
                f"the stream's state has {len(part[pairs])} {pairs} pairs but "
                f"{len(part[numbers])} {numbers}"
            )
    return part
