"""The network of a model for other programs: GraphML and GEXF files, graphs of networkx.

Nodes have the name of the variable, its number of states and its categories; edges have their
strength and the given columns. In files, categories are JSON text, because neither format has lists
that all programs read. Text is escaped, so that any name can be read back; the few characters that
XML cannot express are refused. The same model gives the same bytes.

pgmpy stores potentials, not their logarithms, so each factor is divided by its largest entry on
export: the distribution is the same, log Z is not.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.atomic import replace_file
from edgegraft.errors import DataError, MissingExtraError, ModelError, import_extra
from edgegraft.model import PairwiseMRF
from edgegraft.model.export import edge_attributes
from edgegraft.model.file import Columns
from edgegraft.table import Schema

if TYPE_CHECKING:
    import networkx
    from pgmpy.models import DiscreteMarkovNetwork

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPES = {"b": "boolean", "i": "long", "f": "double"}


def write_graphml(
    path: str | os.PathLike[str],
    model: PairwiseMRF,
    edge_columns: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write the network of a model as GraphML; arguments as in :func:`~edgegraft.io.export`."""
    attributes = edge_attributes(model, edge_columns)
    node_types = {"name": "string", "n_states": "long", "categories": "string", "kind": "string"}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ]
    for k, (name, kind) in enumerate(node_types.items()):
        lines.append(f'<key id="v{k}" for="node" attr.name="{name}" attr.type="{kind}"/>')
    for k, (title, kind) in enumerate(_titles(attributes)):
        lines.append(f'<key id="e{k}" for="edge" attr.name={title} attr.type="{kind}"/>')
    lines.append('<graph edgedefault="undirected">')
    for i, described in enumerate(_nodes(model)):
        data = "".join(
            f'<data key="v{k}">{escape(text, {chr(13): "&#13;"})}</data>'
            for k, text in enumerate(described)
        )
        lines.append(f'<node id="n{i}">{data}</node>')
    for (i, j), row in _edges(model, attributes):
        cells = map(_number, row)
        data = "".join(f'<data key="e{k}">{cell}</data>' for k, cell in enumerate(cells))
        lines.append(f'<edge source="n{i}" target="n{j}">{data}</edge>')
    replace_file(path, "\n".join([*lines, "</graph>", "</graphml>", ""]))


def write_gexf(
    path: str | os.PathLike[str],
    model: PairwiseMRF,
    edge_columns: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write the network of a model as GEXF 1.2, for Gephi.

    The name of a variable is the label of its node; the strength of an edge, with its sign if it is
    known, is its weight if finite. Arguments as in :func:`~edgegraft.io.export`.
    """
    attributes = edge_attributes(model, edge_columns)
    weights = attributes.pop("weight", attributes["strength"])  # Gephi has such a column itself
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">',
        '<graph defaultedgetype="undirected" mode="static">',
        '<attributes class="node" mode="static">',
        '<attribute id="0" title="n_states" type="long"/>',
        '<attribute id="1" title="categories" type="string"/>',
        '<attribute id="2" title="kind" type="string"/>',
        "</attributes>",
        '<attributes class="edge" mode="static">',
    ]
    for k, (title, kind) in enumerate(_titles(attributes)):
        lines.append(f'<attribute id="{k}" title={title} type="{kind}"/>')
    lines += ["</attributes>", "<nodes>"]
    for i, (name, *described) in enumerate(_nodes(model)):
        lines.append(f'<node id="{i}" label={quoteattr(name)}>{_values(described)}</node>')
    lines += ["</nodes>", "<edges>"]
    for k, ((i, j), row) in enumerate(_edges(model, attributes)):
        cells = [_number(value) for value in row]
        weight = f' weight="{_number(float(weights[k]))}"' if np.isfinite(weights[k]) else ""
        lines.append(f'<edge id="{k}" source="{i}" target="{j}"{weight}>{_values(cells)}</edge>')
    replace_file(path, "\n".join([*lines, "</edges>", "</graph>", "</gexf>", ""]))


def to_networkx(
    model: PairwiseMRF, edge_columns: Mapping[str, ArrayLike] | None = None
) -> networkx.Graph:
    """Return the network of a model as an undirected graph.

    Parameters
    ----------
    model : PairwiseMRF
    edge_columns : dict of name to array, optional
        As for :func:`~edgegraft.io.export`.

    Returns
    -------
    networkx.Graph
        Nodes are the names of the variables, in order, with ``n_states``, ``categories`` and
        ``kind``; edges have ``strength`` and the given columns, as Python numbers.

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
    networkx = import_extra("networkx", "networkx", "a graph of networkx")
    graph = networkx.Graph()
    for variable in model.schema:
        graph.add_node(
            variable.name,
            n_states=variable.n_states,
            categories=list(variable.categories),
            kind=variable.kind,
        )
    for (i, j), row in _edges(model, attributes):
        graph.add_edge(model.names[i], model.names[j])
        # Not keyword arguments, because a column may have any name.
        graph.edges[model.names[i], model.names[j]].update(zip(attributes, row, strict=True))
    return graph


def _nodes(model: PairwiseMRF) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, number of states, categories and kind of variables, as text valid in XML."""
    for variable in model.schema:
        categories = json.dumps(variable.categories, ensure_ascii=False)
        if _NO_XML.search(categories):
            categories = json.dumps(variable.categories)
        name = _writable(variable.name, f"variable {variable.name!r}")
        yield name, str(variable.n_states), categories, variable.kind


def _titles(attributes: Columns) -> Iterator[tuple[str, str]]:
    for name, values in attributes.items():
        yield quoteattr(_writable(name, f"edge column {name!r}")), _TYPES[values.dtype.kind]


def _edges(
    model: PairwiseMRF, attributes: Mapping[str, Any]
) -> Iterator[tuple[list[int], tuple[Any, ...]]]:
    rows = zip(*(values.tolist() for values in attributes.values()), strict=True)
    yield from zip(model.edges.tolist(), rows, strict=True)


def _values(cells: list[str]) -> str:
    inner = "".join(
        f'<attvalue for="{k}" value={quoteattr(cell)}/>' for k, cell in enumerate(cells)
    )
    return f"<attvalues>{inner}</attvalues>"


def _number(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        # Spelled as in XML Schema.
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    return repr(value)


def _writable(text: str, what: str) -> str:
    found = _NO_XML.search(text)
    if found:
        raise ModelError(
            f"{what} has the character U+{ord(found[0]):04X} in its name, which XML cannot hold: "
            "rename it, or export a CSV or Parquet file"
        )
    return text


def to_pgmpy(model: PairwiseMRF) -> DiscreteMarkovNetwork:
    """Return a model as a Markov network of pgmpy, with the same names and categories.

    A model whose potentials differ so much in a factor (by more than about 1e307) that the smaller
    ones would become zero is refused with a ModelError.
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

    Variables keep the order of the network's nodes, categories the order of the first factor that
    contains them; factors over the same variables are multiplied. A factor over three variables or
    more, a negative or infinite entry, and a node that is in no factor or has a name that is not
    text are refused with a ModelError.
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
