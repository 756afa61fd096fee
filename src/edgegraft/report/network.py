"""Content of a picture of a network: edges, their signs, groups of variables, positions.

Files and pages are drawn from the same :class:`Network`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ModelError
from edgegraft.model import PairwiseMRF
from edgegraft.model.evidence import variable_index
from edgegraft.report.layout import bend_edges, lay_out
from edgegraft.report.style import LIMITS, for_json, group_style, sign_colour
from edgegraft.study.centrality import communities

ColourBy = Literal["community"] | Mapping[str, Hashable] | None


class Network(NamedTuple):
    """A part of a model's network, ready to be drawn: n variables, m edges."""

    names: tuple[str, ...]
    variables: Integers  # their column numbers
    edges: Integers  # (m, 2) positions in `names`, weakest first: strong edges are drawn on top
    which: Integers  # the position of each edge in the model
    strength: Floats  # infinite if a pair of categories is forbidden
    sign: Integers  # 1, -1, or 0 for edges without a sign
    spots: Floats  # (n, 2) positions
    bends: Floats  # (m, 2) middle control points of the edges, which are quadratic curves
    group: Integers  # the largest group is 0; -1 for variables without one
    group_names: tuple[str, ...]  # empty for communities, which have no names
    largest: float | None = None  # strength of the widest line, if several pictures share a scale

    def weights(self) -> Floats:
        """Return the strengths as shares of the largest; forbidden pairs count as the largest."""
        finite = finite_strengths(self.strength)
        largest = self.largest or finite.max(initial=0.0)
        return np.clip(finite / largest, 0.0, 1.0) if largest > 0 else np.ones(len(finite))

    def node_strength(self) -> Floats:
        """Return the sum of the weights of each variable's edges."""
        total = np.bincount(self.edges.ravel(), np.repeat(self.weights(), 2), len(self.names))
        return np.asarray(total, np.float64)

    def sizes(self) -> Floats:
        """Return the radii of dots as shares of the largest."""
        total = self.node_strength()
        return np.asarray(np.sqrt(total / max(total.max(initial=0.0), 1e-300)))


def build_network(
    model: PairwiseMRF,
    *,
    min_strength: float | None = None,
    top: int | None = None,
    around: str | None = None,
    colour_by: ColourBy = "community",
    strengths: ArrayLike | None = None,
    signs: ArrayLike | None = None,
    seed: int = 0,
) -> Network:
    """Choose edges, find groups and lay the variables out; see ``plot_network``."""
    values = model.edge_strengths() if strengths is None else _check_strengths(model, strengths)
    which = _choose(model, values, min_strength, top, around)
    which = which[np.argsort(values[which], kind="stable")]
    drawn = model.edges[which]
    variables = np.unique(drawn)
    if around is not None:
        variables = np.union1d(variables, [model.schema.index(around)])
    elif len(which) == model.n_edges > 0:
        n_alone = model.n_variables - len(variables)
        if n_alone <= max(LIMITS.alone, len(variables)):
            variables = np.arange(model.n_variables)
    local = np.searchsorted(variables, drawn)
    if isinstance(colour_by, Mapping):
        group, group_names = _given_groups(model, colour_by, variables)
    elif colour_by == "community":
        group = communities(len(variables), local, finite_strengths(values[which]), seed=seed)
        group_names = ()
    elif colour_by is None:
        group, group_names = np.zeros(len(variables), np.int64), ()
    else:
        raise ValueError(
            f"colour_by must be 'community', None or a dict of variable to group, "
            f"found {colour_by!r}"
        )
    spots = lay_out(len(variables), local, group, seed)
    signs = model.edge_columns.get("sign") if signs is None else signs
    known_signs = edge_signs(model) if signs is None else np.asarray(signs).astype(np.int64)
    return Network(
        tuple(model.names[v] for v in variables),
        variables,
        local,
        which,
        values[which],
        known_signs[which],
        spots,
        bend_edges(spots, local),
        group,
        group_names,
    )


def drawing(network: Network) -> dict[str, list[dict[str, Any]]]:
    """Return a network in plain types, for the scripts of pages.

    Sizes are shares of the largest; the ends of edges are positions among the nodes.

    >>> model = PairwiseMRF.from_potentials(
    ...     {"a": [0, 1], "b": [0, 1], "alone": [0, 1]}, edges={("a", "b"): [[1, 0], [0, 1]]}
    ... )
    >>> found = drawing(build_network(model))
    >>> [node["name"] for node in found["nodes"]], found["edges"][0]["ends"]
    (['a', 'b', 'alone'], [0, 1])
    """
    sizes = network.sizes()
    down = np.array([1.0, -1.0])  # the vertical axis of pages points downwards
    corner = (network.spots * down).min(0, initial=np.inf)
    spots, bends = (
        (points * down - corner).round(3).tolist() for points in (network.spots, network.bends)
    )
    nodes, edges = [], []
    for k, name in enumerate(network.names):
        style = group_style(int(network.group[k]))
        nodes.append(
            {
                "name": name,
                "variable": int(network.variables[k]),
                "x": spots[k][0],
                "y": spots[k][1],
                "size": round(float(sizes[k]), 3),
                "colour": style.colour,
                "shape": style.shape,
            }
        )
    for k, weight in enumerate(network.weights().tolist()):
        edges.append(
            {
                "ends": network.edges[k].tolist(),
                "bend": bends[k],
                "weight": round(weight, 4),
                "strength": for_json(float(network.strength[k]), 3),
                "colour": sign_colour(int(network.sign[k])),
            }
        )
    return {"nodes": nodes, "edges": edges}


def edge_signs(model: PairwiseMRF) -> Integers:
    """Return the sign of each edge of two variables with two categories, 0 for other edges.

    It is the sign of the log odds ratio: 1 if the two first categories, and the two second ones,
    go together.

    >>> model = PairwiseMRF.from_potentials(
    ...     {"rain": [False, True], "dry": [False, True]},
    ...     edges={("rain", "dry"): [[-1.0, 0.0], [0.0, -1.0]]},
    ... )
    >>> edge_signs(model)
    array([-1])
    """
    layout = model.layout
    signs = np.zeros(layout.n_edges, np.int64)
    binary = np.flatnonzero((layout.states[layout.edges] == 2).all(axis=1))
    at = np.asarray(layout.edge_offset)[binary, None] + np.arange(4)
    a, b, c, d = model.theta[at].T
    # Compared instead of subtracted: forbidden pairs on both sides would give inf - inf.
    with np.errstate(invalid="ignore"):
        signs[binary] = np.sign((a + d > b + c).astype(np.int64) - (a + d < b + c))
    return signs


def finite_strengths(values: Floats) -> Floats:
    """Return strengths in which edges with a forbidden pair have the largest of the others."""
    largest = values[np.isfinite(values)].max(initial=0.0)
    return np.where(np.isfinite(values), values, largest if largest > 0 else 1.0)


def _check_strengths(model: PairwiseMRF, strengths: ArrayLike) -> Floats:
    values = np.asarray(strengths, np.float64)
    if values.shape != (model.n_edges,) or np.isnan(values).any():
        raise ModelError(
            f"strengths must have one number for each of the model's {model.n_edges:,} edges, "
            f"found shape {values.shape}" + (" with NaN" if np.isnan(values).any() else "")
        )
    return values


def _choose(
    model: PairwiseMRF,
    values: Floats,
    min_strength: float | None,
    top: int | None,
    around: str | None,
) -> Integers:
    """Return the positions of the edges to draw."""
    chosen = np.ones(model.n_edges, np.bool_) if min_strength is None else values >= min_strength
    if around is not None:
        centre = variable_index(model.schema, around)
        near = np.zeros(model.n_variables, np.bool_)
        near[model.edges[(model.edges == centre).any(axis=1) & chosen]] = True
        chosen = chosen & near[model.edges].all(axis=1)
    which = np.flatnonzero(chosen)
    if top is None:
        return which
    if top < 1:
        raise ValueError(f"top must be at least 1, found {top}")
    return which[np.argsort(-values[which], kind="stable")[:top]]


def _given_groups(
    model: PairwiseMRF, colour_by: Mapping[str, Hashable], variables: Integers
) -> tuple[Integers, tuple[str, ...]]:
    for name in colour_by:
        variable_index(model.schema, name)
    labels = [colour_by.get(model.names[v]) for v in variables]
    sizes = Counter(label for label in labels if label is not None)
    order = sorted(sizes, key=lambda label: (-sizes[label], str(label)))
    place = {label: k for k, label in enumerate(order)}
    group = np.array([place.get(label, -1) for label in labels], np.int64)
    return group, tuple(str(label) for label in order)
