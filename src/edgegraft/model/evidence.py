"""Evidence: from names and labels to a smaller model.

Conditioning on ``x_O = o`` leaves a pairwise model over the other variables: edges between an
observed and a free variable become terms of the free one's node vector, everything that is
fixed becomes a constant, and

    log Z(o) = constant + log Z(smaller model),    log p(o) = log Z(o) - log Z.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.tables import stretches
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ImpossibleEvidenceError, ModelError
from edgegraft.table import Schema


class Conditioned(NamedTuple):
    """A model given evidence, over the variables that are left."""

    layout: Layout
    theta: Floats
    constant: float
    free: Integers  # the variables of the smaller model, as numbers in the larger


def parse_evidence(schema: Schema, given: Mapping[str, Any] | None) -> dict[int, int]:
    """Return evidence as codes, naming what the model does not know."""
    evidence = {}
    for name, label in (given or {}).items():
        if name not in schema:
            raise ModelError(f"the model has no variable {name!r}")
        variable = schema[name]
        matches = [k for k, category in enumerate(variable.categories) if _same(category, label)]
        if not matches:
            shown = ", ".join(repr(category) for category in variable.categories[:8])
            more = f" and {variable.n_states - 8} more" if variable.n_states > 8 else ""
            raise ModelError(
                f"variable {name!r} has no category {label!r}; its categories are {shown}{more}"
            )
        evidence[schema.index(name)] = matches[0]
    return evidence


def _same(category: Any, label: Any) -> bool:
    # True == 1 in Python; a label must be of its category's kind as well as equal to it.
    if isinstance(category, bool) != isinstance(label, bool | np.bool_):
        return False
    return bool(category == label)


def condition(layout: Layout, theta: Floats, evidence: Mapping[int, int]) -> Conditioned:
    """Return the model of the variables that the evidence leaves free.

    Raises
    ------
    ImpossibleEvidenceError
        If the evidence alone has probability zero whatever the rest does.
    """
    value = np.full(layout.n_variables, -1, np.int64)
    for i, code in evidence.items():
        value[i] = code
    observed = value >= 0
    free = np.flatnonzero(~observed)
    low, high = layout.edges[:, 0], layout.edges[:, 1]
    inner = ~observed[low] & ~observed[high]
    rank = np.cumsum(~observed) - 1
    smaller = Layout(layout.states[free], rank[layout.edges[inner]])
    out = np.empty(smaller.n_parameters)
    n_nodes = int(smaller.node_offset[-1])
    out[:n_nodes] = theta[stretches(layout.node_offset[free], layout.states[free])]
    sizes = np.diff(layout.edge_offset)[inner]
    out[n_nodes:] = theta[stretches(layout.edge_offset[:-1][inner], sizes)]
    constant = _fold(layout, theta, value, out, smaller.node_offset, rank)
    if constant == -np.inf:
        raise ImpossibleEvidenceError("the evidence contradicts itself: its probability is zero")
    return Conditioned(smaller, out, constant, free)


def _fold(
    layout: Layout,
    theta: Floats,
    value: Integers,
    out: Floats,
    node_offset: Integers,
    rank: Integers,
) -> float:
    """Add the edges to observed variables to the free ones' node vectors; return the constant."""
    observed = value >= 0
    low, high = layout.edges[:, 0], layout.edges[:, 1]
    start, columns = layout.edge_offset[:-1], layout.states[high]
    constant = float(theta[layout.node_offset[:-1][observed] + value[observed]].sum())
    both = observed[low] & observed[high]
    constant += float(
        theta[start[both] + value[low[both]] * columns[both] + value[high[both]]].sum()
    )
    rows = observed[low] & ~observed[high]
    at = stretches(start[rows] + value[low[rows]] * columns[rows], columns[rows])
    np.add.at(out, stretches(node_offset[rank[high[rows]]], columns[rows]), theta[at])
    cols = ~observed[low] & observed[high]
    length = layout.states[low[cols]]
    at = stretches(start[cols] + value[high[cols]], length, np.repeat(columns[cols], length))
    np.add.at(out, stretches(node_offset[rank[low[cols]]], length), theta[at])
    return constant
