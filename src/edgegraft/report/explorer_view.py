"""The network and the interaction tables of a model, as the explorer's page takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.model import PairwiseMRF
from edgegraft.report.network import build_network
from edgegraft.report.palette import group_style, sign_colour

Json = dict[str, Any]

#: A browser draws this many lines smoothly; the strongest are drawn.
MAX_DRAWN = 4000
#: Rows and columns of a table that is shown; the most affected categories are chosen.
MAX_CATEGORIES = 24


def network_view(model: PairwiseMRF) -> Json:
    """Return spots and colours of the variables, and the edges between them.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"a": [0, 1], "b": [0, 1], "alone": [0, 1]}, edges={("a", "b"): [[1, 0], [0, 1]]}
    ... )
    >>> view = network_view(model)
    >>> [node["variable"] for node in view["nodes"]], view["edges"][0]["ends"]
    ([0, 1], [0, 1])
    """
    network = build_network(model, top=MAX_DRAWN)
    weights, sizes = network.weights(), network.node_strength()
    largest = sizes.max(initial=0.0)
    nodes = []
    for k, variable in enumerate(network.variables.tolist()):
        style = group_style(int(network.group[k]))
        nodes.append(
            {
                "variable": variable,
                "x": float(network.spots[k, 0]),
                "y": -float(network.spots[k, 1]),  # pages count downwards
                "size": float(sizes[k] / largest) if largest > 0 else 0.0,
                "colour": style.colour,
            }
        )
    edges = [
        {
            "ends": network.variables[network.edges[k]].tolist(),
            "strength": _finite(network.strength[k]),
            "weight": float(weights[k]),
            "colour": sign_colour(int(network.sign[k])),
        }
        for k in range(len(network.edges))
    ]
    return {"nodes": nodes, "edges": edges}


def interaction_tables(model: PairwiseMRF, strengths: Floats, i: int) -> list[Json]:
    """Return a variable's neighbours, strongest first, with tables of `model` as it is.

    Rows are the categories of the variable. A forbidden pair is None, and so is the strength of
    its edge. Of variables with many categories those are kept whose entries are largest.
    """
    edges = model.edges
    own = np.flatnonzero((edges == i).any(axis=1))
    own = own[np.argsort(-strengths[own], kind="stable")]
    found = []
    for k in own.tolist():
        table = model.layout.edge(model.theta, k)
        if edges[k, 0] != i:
            table = table.T
        rows, columns = _largest(table), _largest(table.T)
        found.append(
            {
                "variable": int(edges[k].sum() - i),
                "strength": _finite(strengths[k]),
                "rows": rows.tolist(),
                "columns": columns.tolist(),
                "table": [[_finite(cell) for cell in row] for row in table[np.ix_(rows, columns)]],
            }
        )
    return found


def _largest(table: Floats) -> NDArray[np.int64]:
    """Return the rows to show, in order; those with forbidden pairs count as largest."""
    size = np.abs(table).max(axis=1)
    return np.sort(np.argsort(-size, kind="stable")[:MAX_CATEGORIES])


def _finite(value: Any) -> float | None:
    """Return a number, or None for an infinite one, which JSON does not have."""
    return float(value) if np.isfinite(value) else None
