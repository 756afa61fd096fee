"""The network of a model for other programs: GraphML and GEXF files, graphs of networkx.

Nodes have the name of the variable, its number of states and its categories; edges have their
strength and the given columns. In files, categories are JSON text, because neither format has lists
that all programs read. Text is escaped, so that any name can be read back; the few characters that
XML cannot express are refused. The same model gives the same bytes.
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
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file
from edgegraft.errors import ModelError, import_extra
from edgegraft.model import PairwiseMRF
from edgegraft.model.file import Columns, check_edge_columns

if TYPE_CHECKING:
    import networkx

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TYPES = {"b": "boolean", "i": "long", "f": "double"}


def edge_attributes(model: PairwiseMRF, edge_columns: Mapping[str, ArrayLike] | None) -> Columns:
    """Return the columns of the edges in the model's order, the strength before the others.

    Given columns replace the model's own; ``weight`` is the strength with the sign of the edge.
    """
    checked = {**model.edge_columns, **check_edge_columns(edge_columns, model.n_edges)}
    strength = checked.pop("strength") if "strength" in checked else model.edge_strengths()
    if "sign" in checked:
        checked["weight"] = np.where(checked["sign"] < 0, -strength, strength)
    return {"strength": strength, **checked}


def write_graphml(
    path: str | os.PathLike[str],
    model: PairwiseMRF,
    edge_columns: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write the network of a model as GraphML; arguments as in :func:`~edgegraft.io.export`."""
    attributes = edge_attributes(model, edge_columns)
    node_types = {"name": "string", "n_states": "long", "categories": "string"}
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
    known, is its weight if finite. Arguments are those of :func:`~edgegraft.io.export`.
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
        One number for each of the model's edges, in their order: q-values, frequencies.

    Returns
    -------
    networkx.Graph
        Nodes are the names of the variables, in order, with ``n_states`` and ``categories``;
        edges have ``strength`` and the given columns, as Python numbers.

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
            variable.name, n_states=variable.n_states, categories=list(variable.categories)
        )
    for (i, j), row in _edges(model, attributes):
        graph.add_edge(model.names[i], model.names[j])
        # Not keyword arguments, because a column may have any name.
        graph.edges[model.names[i], model.names[j]].update(zip(attributes, row, strict=True))
    return graph


def _nodes(model: PairwiseMRF) -> Iterator[tuple[str, str, str]]:
    """Yield name, number of states and categories of each variable, as text valid in XML."""
    for variable in model.schema:
        categories = json.dumps(variable.categories, ensure_ascii=False)
        if _NO_XML.search(categories):
            categories = json.dumps(variable.categories)
        name = _writable(variable.name, f"variable {variable.name!r}")
        yield name, str(variable.n_states), categories


def _titles(attributes: Columns) -> Iterator[tuple[str, str]]:
    """Yield the quoted name and the type of each column."""
    for name, values in attributes.items():
        yield quoteattr(_writable(name, f"edge column {name!r}")), _TYPES[values.dtype.kind]


def _edges(
    model: PairwiseMRF, attributes: Mapping[str, Any]
) -> Iterator[tuple[list[int], tuple[Any, ...]]]:
    """Yield the two ends of each edge and its values."""
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
