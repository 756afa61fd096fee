"""Checks of edges, parameters and row weights: each refusal names what was found and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import DataError, EdgeError, ModelError

if TYPE_CHECKING:
    from edgegraft.core.layout import Layout

#: Weight of all rows together. More rows than this are not counted exactly, and far fewer are none.
MIN_WEIGHT, MAX_WEIGHT = 1e-6, 2.0**53


def check_edges(edges: ArrayLike, n_variables: int | None = None) -> Edges:
    """Return `edges` as an ``(m, 2)`` integer array, refusing those that are not pairs.

    Either variable may come first, and an edge may be listed more than once.

    >>> check_edges([(2, 0)], 3)
    array([[2, 0]])
    >>> check_edges([(0, 1), (0, 3)], 3)
    Traceback (most recent call last):
    edgegraft.errors.EdgeError: edge 1, (0, 3), names a variable outside 0..2
    """
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise EdgeError(
            "edges must be an integer array of shape (m, 2), found shape "
            f"{array.shape} of {array.dtype}"
        )
    array = np.ascontiguousarray(array, np.int64)
    above = n_variables is not None and array.max() >= n_variables
    if not above and array.min() >= 0 and (array[:, 0] != array[:, 1]).all():
        return array
    last = "" if n_variables is None else n_variables - 1
    outside = array < 0 if n_variables is None else (array < 0) | (array >= n_variables)
    for what, bad in (
        (f"names a variable outside 0..{last}", outside.any(axis=1)),
        ("joins a variable to itself", array[:, 0] == array[:, 1]),
    ):
        if bad.any():
            k = int(np.argmax(bad))
            raise EdgeError(f"edge {k}, ({array[k, 0]}, {array[k, 1]}), {what}")
    return array


def check_theta(
    theta: ArrayLike,
    layout: Layout,
    names: Sequence[Any] | None = None,
    *,
    finite: bool = False,
    what: str = "theta",
) -> Floats:
    """Return `theta` as a contiguous array of log-potentials of `layout`, or refuse it.

    Log-potentials are finite, or minus infinity for an impossible state unless `finite` is set.
    Refusals name variables by `names`, by default by number, and the array itself by `what`.

    >>> from edgegraft.core import Layout
    >>> check_theta([0.0, float("nan")], Layout([2]))
    Traceback (most recent call last):
    edgegraft.errors.ModelError: a log-potential of variable 0 is nan: it must be finite or -inf
    """
    values = np.require(theta, np.float64, ["C", "W"])
    if values.shape != (layout.n_parameters,):
        raise ModelError(
            f"{what} has shape {values.shape}: the layout has {layout.n_parameters} parameters"
        )
    bad = ~np.isfinite(values)
    if not finite:
        bad &= values != -np.inf
    if bad.any():
        at = int(np.argmax(bad))
        owner = owner_of(layout, at, names)
        allowed = "finite; a ridge keeps it so" if finite else "finite or -inf"
        raise ModelError(f"a log-potential of {owner} is {values[at]}: it must be {allowed}")
    return values


def owner_of(layout: Layout, at: int, names: Sequence[Any] | None = None) -> str:
    """Return which variable or edge position `at` of a parameter vector belongs to."""
    named = range(layout.n_variables) if names is None else names
    if at < layout.node_offset[-1]:
        i = int(np.searchsorted(layout.node_offset, at, side="right")) - 1
        return f"variable {named[i]!r}"
    k = int(np.searchsorted(layout.edge_offset, at, side="right")) - 1
    i, j = layout.edges[k].tolist()
    return f"edge ({named[i]!r}, {named[j]!r})"


def check_codes(codes: ArrayLike, names: Sequence[str], states: Integers) -> NDArray[Any]:
    """Return rows of codes as an array, refusing what is neither a state of its column nor -1.

    >>> check_codes([[0, 3]], ["sex", "age"], np.array([2, 3]))
    Traceback (most recent call last):
    edgegraft.errors.DataError: row 0, column 'age' holds the code 3: its codes are 0 to 2, and ...
    """
    array = np.asarray(codes)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DataError(
            f"codes have shape {array.shape}: expected (rows, {len(names)}), one column per "
            "variable"
        )
    if array.dtype.kind not in "iub":
        raise DataError(
            f"codes have the type {array.dtype}: expected integers; pass categories as a table, "
            "not as codes"
        )
    if not array.size:
        return array
    bad = (array.min(axis=0) < -1) | (array.max(axis=0) >= states)
    if bad.any():
        i = int(np.argmax(bad))
        row = int(np.argmax((array[:, i] < -1) | (array[:, i] >= states[i])))
        raise DataError(
            f"row {row}, column '{names[i]}' holds the code {array[row, i]}: its codes are 0 to "
            f"{states[i] - 1}, and -1 for a missing cell"
        )
    return array


def check_weights(weights: ArrayLike, n_rows: int) -> Floats:
    """Return a copy of row weights, read-only as kernels expect, refusing what cannot be one.

    >>> check_weights([1, 1e300], 2)
    Traceback (most recent call last):
    edgegraft.errors.DataError: the weights add up to 1e+300 rows, ... 1e+300, in row 1. ...
    """
    try:
        array = np.array(weights, np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"weights must be an array of one number per row, found {str(weights)[:40]!r}: for a "
            "column of the table, give its cells and leave it out with drop="
        ) from None
    if array.shape != (n_rows,):
        raise DataError(f"weights have shape {array.shape}, but the table has {n_rows} rows")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"the weight of row {row} is {array[row]}: weights must be finite and not negative"
        )
    if not array.any():
        raise DataError("all weights are zero: no row counts")
    row = int(np.argmax(array))
    with np.errstate(over="ignore"):
        total = float(array.sum())
    if not MIN_WEIGHT <= total <= MAX_WEIGHT:
        raise DataError(
            f"the weights add up to {total:.3g} rows, and must add up to {MIN_WEIGHT:g} at least "
            f"and {MAX_WEIGHT:g} at most; the largest is {array[row]:.3g}, in row {row}. A "
            "row of weight 2 counts as two rows: scale them to add up to the number of rows"
        )
    array.flags.writeable = False
    return array
