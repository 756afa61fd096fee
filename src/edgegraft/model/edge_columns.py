"""Numbers that belong to edges: p-values, q-values, frequencies, one column for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import ModelError

Columns = dict[str, NDArray[Any]]

_KEPT_AS: dict[str, Any] = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}


def check_edge_columns(columns: Mapping[str, ArrayLike] | None, n_edges: int) -> Columns:
    """Return columns as arrays of bool, int64 or float64, each with one value for every edge.

    Parameters
    ----------
    columns : dict of name to values, in the order of the model's edges
    n_edges : int

    Examples
    --------
    >>> check_edge_columns({"q_value": [0.01, 0.2]}, 2)
    {'q_value': array([0.01, 0.2 ])}
    """
    checked: Columns = {}
    for name, values in (columns or {}).items():
        if not isinstance(name, str) or not name or not _encodes(name):
            raise ModelError(f"an edge column needs a name in text, found {name!r}")
        array = np.asarray(values)
        if array.shape != (n_edges,):
            raise ModelError(
                f"edge column {name!r} has shape {array.shape}: one value for each of the "
                f"{n_edges} edges was expected"
            )
        kind = _KEPT_AS.get(array.dtype.kind)
        if kind is None or array.dtype.itemsize > 8:
            raise ModelError(
                f"edge column {name!r} has the type {array.dtype}: it must hold numbers or booleans"
            )
        kept: NDArray[Any] = np.array(array, kind)
        if array.dtype.kind == "u" and (kept < 0).any():
            raise ModelError(f"edge column {name!r} holds {array.max()}, beyond 64-bit integers")
        kept.flags.writeable = False
        checked[name] = kept
    return checked


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone half of a surrogate pair
        return False
    return True
