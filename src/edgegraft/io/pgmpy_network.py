"""Models as Markov networks of pgmpy, and back.

pgmpy stores potentials, not their logarithms, so each factor is divided by its largest entry on
export: the distribution is the same, log Z is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import DataError, MissingExtraError, ModelError
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema

if TYPE_CHECKING:
    from pgmpy.models import DiscreteMarkovNetwork


def to_pgmpy(model: PairwiseMRF) -> DiscreteMarkovNetwork:
    """Return a model as a Markov network of pgmpy, with the same names and categories.

    Raises
    ------
    MissingExtraError
        pgmpy is not installed.
    ModelError
        The potentials of a factor differ so much (by a factor of more than about 1e307) that the
        smaller ones would become zero.
    """
    try:
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.models import DiscreteMarkovNetwork
    except ImportError as error:
        raise MissingExtraError("pgmpy", "pgmpy", "a Markov network of pgmpy") from error
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(model.names)
    network.add_edges_from((model.names[i], model.names[j]) for i, j in model.edges)
    layout = model.layout
    scopes = [(i,) for i in range(layout.n_variables)] + [tuple(e) for e in layout.edges.tolist()]
    tables = [layout.node(model.theta, i) for i in range(layout.n_variables)]
    tables += [layout.edge(model.theta, k) for k in range(layout.n_edges)]
    for scope, table in zip(scopes, tables, strict=True):
        variables = [model.schema[v] for v in scope]
        names = [variable.name for variable in variables]
        labels = {variable.name: list(variable.categories) for variable in variables}
        network.add_factors(DiscreteFactor(names, table.shape, _scaled(table, names), labels))
    return network


def from_pgmpy(network: DiscreteMarkovNetwork) -> PairwiseMRF:
    """Return a Markov network of pgmpy as a model.

    Variables keep the order of the network's nodes, categories that of the first factor that
    contains them; factors over the same variables are multiplied.

    Raises
    ------
    ModelError
        A factor joins three variables or more, has a negative or infinite entry, or a node is
        in no factor or has a name that is not text.
    """
    factors = [(list(factor.variables), factor) for factor in network.get_factors()]
    labels = _labels(network, factors)
    nodes: dict[str, NDArray[np.float64]] = {}
    edges: dict[tuple[str, str], NDArray[np.float64]] = {}
    for scope, factor in factors:
        logs = _logs(scope, factor, labels)
        if len(scope) == 1:
            nodes[scope[0]] = nodes.get(scope[0], 0.0) + logs
        elif (scope[1], scope[0]) in edges:
            edges[scope[1], scope[0]] = edges[scope[1], scope[0]] + logs.T
        else:
            key = (scope[0], scope[1])
            edges[key] = edges.get(key, 0.0) + logs
    try:
        schema = Schema.from_categories(labels)
    except DataError as error:
        raise ModelError(f"the network has states that cannot be categories: {error}") from error
    return PairwiseMRF.from_potentials(schema, nodes, edges)


def _scaled(table: NDArray[np.float64], names: list[str]) -> NDArray[np.float64]:
    largest = table.max()
    values = np.exp(table - largest) if np.isfinite(largest) else np.zeros_like(table)
    if ((values == 0) & np.isfinite(table)).any():
        smallest = table[np.isfinite(table)].min()
        raise ModelError(
            f"the log-potentials of {tuple(names)!r} reach from {smallest:g} to {largest:g}, "
            "too far apart for the plain numbers of pgmpy"
        )
    return values


def _labels(network: Any, factors: list[tuple[list[str], Any]]) -> dict[str, list[Any]]:
    """Return the categories of every node, in the order of the nodes."""
    found: dict[Any, list[Any]] = {}
    for scope, factor in factors:
        if len(scope) not in (1, 2):
            raise ModelError(
                f"a factor joins the {len(scope)} variables {scope!r}: a pairwise model has "
                "factors over one or two"
            )
        for name in scope:
            found.setdefault(name, [_plain(label) for label in factor.state_names[name]])
    for name in network.nodes():
        if not isinstance(name, str):
            raise ModelError(f"node {name!r} is a {type(name).__name__}: rename it to text")
        if name not in found:
            raise ModelError(f"node {name!r} is in no factor, so its states are not known")
    return {name: found[name] for name in network.nodes()}


def _logs(scope: list[str], factor: Any, labels: dict[str, list[Any]]) -> NDArray[np.float64]:
    """Return the logs of a factor, with its states in the order of `labels`."""
    values = np.asarray(factor.values, np.float64)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ModelError(f"the factor over {scope!r} has an entry that is negative or not finite")
    for axis, name in enumerate(scope):
        own = [_plain(label) for label in factor.state_names[name]]
        if len(own) != len(labels[name]) or set(own) != set(labels[name]):
            raise ModelError(f"node {name!r} has the states {labels[name]!r} and also {own!r}")
        values = values.take([own.index(label) for label in labels[name]], axis)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
