"""Models as graphs of networkx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from edgegraft.errors import MissingExtraError
from edgegraft.io.edge_table import edge_attributes
from edgegraft.model import PairwiseMRF

if TYPE_CHECKING:
    import networkx


def to_networkx(
    model: PairwiseMRF, edge_columns: Mapping[str, ArrayLike] | None = None
) -> networkx.Graph:
    """Return the network of a model as an undirected graph.

    Parameters
    ----------
    model : PairwiseMRF
    edge_columns : dict of name to array, optional
        One number for each of the model's edges, in their order: q-values, frequencies.

    Returns
    -------
    networkx.Graph
        Nodes are the names of the variables, in order, with ``n_states`` and ``categories``;
        edges have ``strength`` and the columns given, as Python's numbers.

    Raises
    ------
    MissingExtraError
        networkx is not installed.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> to_networkx(model, {"q_value": [0.01]}).edges["smoker", "cancer"]
    {'strength': 1.0, 'q_value': 0.01}
    """
    attributes = edge_attributes(model, edge_columns)
    try:
        import networkx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx", "a graph of networkx") from error
    graph = networkx.Graph()
    for variable in model.schema:
        graph.add_node(
            variable.name, n_states=variable.n_states, categories=list(variable.categories)
        )
    rows = zip(*(values.tolist() for values in attributes.values()), strict=True)
    for (i, j), row in zip(model.edges.tolist(), rows, strict=True):
        graph.add_edge(model.names[i], model.names[j])
        # Not as keywords: a column may be called anything.
        graph.edges[model.names[i], model.names[j]].update(zip(attributes, row, strict=True))
    return graph
