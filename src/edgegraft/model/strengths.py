"""How strong the edges of a model are.

    w' = w in zero-sum gauge;    s_ij = || w'_ij without the states left out ||_F

The average-product correction takes from each strength what the two variables' mean strengths
explain, which removes the share that is due to one variable alone (its entropy, its history):

    s_ij - s_i. s_.j / s_..      s_i. = mean over j of s_ij,   s_.. = mean over all pairs

With the gap left out and the correction made, these are the scores of plmDCA.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.errors import ModelError
from edgegraft.kernels.solver.gauge import strengths
from edgegraft.table import Schema
from edgegraft.table.schema import Label

Correction = Literal["apc"]


def edge_strengths(
    schema: Schema,
    layout: Layout,
    theta: NDArray[np.float64],
    without: Label | Iterable[Label] | None,
    correction: Correction | None,
) -> NDArray[np.float64]:
    """Return the strength of each edge; see :meth:`PairwiseMRF.edge_strengths`."""
    if correction not in (None, "apc"):
        raise ValueError(f"correction must be None or 'apc', found {correction!r}")
    out = np.empty(layout.n_edges)
    counted = _counted(schema, without)
    strengths(
        theta, layout.states, layout.edges, layout.node_offset, layout.edge_offset, counted, out
    )
    return out if correction is None else _correct(schema, layout, out)


def _counted(schema: Schema, without: Label | Iterable[Label] | None) -> NDArray[np.bool_]:
    """Return which states of which variables count, all variables' states in one array."""
    if without is None:
        return np.ones(int(schema.n_states.sum()), np.bool_)
    if isinstance(without, str) or not isinstance(without, Iterable):
        without = (without,)
    plain = [label.item() if isinstance(label, np.generic) else label for label in without]
    # With the type, because 0, 0.0 and False are equal and not the same category.
    left_out = {(type(label), label) for label in plain}
    states = [(type(label), label) for variable in schema for label in variable.categories]
    unknown = left_out.difference(states)
    if unknown:
        found = ", ".join(sorted(repr(label) for _, label in unknown))
        raise ModelError(
            f"no variable has the category {found}: `without` takes categories of "
            "the variables, in their own type"
        )
    return np.array([state not in left_out for state in states], np.bool_)


def _correct(schema: Schema, layout: Layout, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(raw).all():
        i, j = layout.edges[int(np.argmax(~np.isfinite(raw)))]
        raise ModelError(
            f"edge ({schema.names[i]!r}, {schema.names[j]!r}) forbids a pair of states, so its "
            "strength is infinite and no average-product correction exists; use correction=None"
        )
    n = layout.n_variables
    first, second = layout.edges.T
    by_variable = np.bincount(layout.edges.ravel(), np.repeat(raw, 2), n) / max(n - 1, 1)
    mean = by_variable.mean() if n else 0.0
    if mean == 0:
        return raw
    return np.asarray(raw - by_variable[first] * by_variable[second] / mean)
