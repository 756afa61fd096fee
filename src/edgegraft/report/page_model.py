"""Content of a page about a model, computed once, and the data of its scripts: plain values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ConvergenceWarning, ModelError
from edgegraft.model import NodeMarginals, PairwiseMRF
from edgegraft.report.network import Network, build_network, drawing, finite_strengths
from edgegraft.report.page_html import as_number, for_json
from edgegraft.report.trajectory_plots import Chart, Side, trace_chart

MAX_DRAWN = 3000  # edges that a browser moves smoothly
MAX_TABLE = 12  # rows and columns of an interaction table
MAX_CATEGORIES = 12  # categories of a variable that are shown with probabilities
_MAX_CELLS = 40_000  # total of interaction tables; only the strongest edges have them
_MAX_POINTS = 500  # points per line

Json = dict[str, Any]


@dataclass(frozen=True)
class InteractionTable:
    """An interaction table in zero-sum gauge, for the categories that it affects most."""

    rows: list[str]  # categories shown
    columns: list[str]
    values: Floats
    whole: tuple[int, ...]  # shape of the complete table


@dataclass(frozen=True)
class ModelSummary:
    """A model with the data that its page needs."""

    model: PairwiseMRF
    zero_sum: PairwiseMRF
    attributes: dict[str, NDArray[Any]]  # columns of the edges, strengths first
    order: Integers  # edges by strength
    degree: Integers  # edges per variable
    total: Floats  # sum of their strengths; forbidden pairs count as the strongest edge
    network: Network
    marginals: NodeMarginals | None
    marginals_note: str  # how they were obtained, or why there are none

    def table(self, edge: int) -> InteractionTable:
        """Return the interaction table of an edge, by its position in the model."""
        model = self.zero_sum
        table = model.layout.edge(model.theta, edge)
        variables = [model.schema[int(v)] for v in model.edges[edge]]
        rows, columns = (largest_rows(side, MAX_TABLE) for side in (table, table.T))
        return InteractionTable(
            [str(variables[0].categories[k]) for k in rows],
            [str(variables[1].categories[k]) for k in columns],
            table[np.ix_(rows, columns)],
            table.shape,
        )

    def likeliest(self, variable: int, limit: int = MAX_CATEGORIES) -> list[tuple[str, float]]:
        """Return the most likely categories of a variable, in their own order, if known."""
        if self.marginals is None:
            return []
        entry = self.model.schema[variable]
        values = self.marginals.array(entry.name)
        best = np.sort(np.argsort(-values, kind="stable")[:limit])
        return [(str(entry.categories[k]), float(values[k])) for k in best]


def describe(model: PairwiseMRF, attributes: dict[str, NDArray[Any]]) -> ModelSummary:
    """Compute the content of a page about a model whose edges have these columns."""
    strengths = attributes["strength"].astype(np.float64)
    finite = finite_strengths(strengths)
    ends = model.edges.ravel()
    marginals, note = _marginals(model)
    return ModelSummary(
        model,
        model.zero_sum(),
        attributes,
        np.argsort(-strengths, kind="stable"),
        np.bincount(ends, minlength=model.n_variables),
        np.bincount(ends, np.repeat(finite, 2), model.n_variables).astype(np.float64),
        build_network(model, top=MAX_DRAWN, strengths=strengths, signs=attributes.get("sign")),
        marginals,
        note,
    )


def network_data(about: ModelSummary) -> Json:
    """Return the network: variables with positions and probabilities, edges with tables."""
    network = about.network
    found = drawing(network)
    for node in found["nodes"]:
        shares = about.likeliest(node["variable"])
        node["marginals"] = [[label, for_json(p)] for label, p in shares]
    tables = _tables(about)
    for edge, which in zip(found["edges"], network.which.tolist(), strict=True):
        columns = about.attributes.items()
        facts = [[name.replace("_", " "), as_number(v[which].item())] for name, v in columns]
        edge |= {"facts": facts, "table": tables.get(which)}
    return found


def chart_data(trace: Mapping[str, ArrayLike] | None) -> Json:
    """Return the data of the chart of the search, if given."""
    return {} if trace is None else {"trace": _chart(trace_chart(trace))}


def _marginals(model: PairwiseMRF) -> tuple[NodeMarginals | None, str]:
    """Return the marginals, and a sentence on how far they can be trusted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page reports it instead
        try:
            answer = model.marginals()
        except ModelError as error:
            return None, f"The model has no marginals: {error}."
    if answer.engine.exact:
        return answer, "Probabilities are those of the model, exact."
    trust = (
        "converged"
        if answer.info.converged
        else "did NOT converge, so they may be far from correct"
    )
    return answer, (
        f"Probabilities are those of the model, approximated by {answer.engine.name}, which "
        f"{trust}."
    )


def largest_rows(table: Floats, limit: int) -> Integers:
    """Return the rows of a table with the largest entries, in their order; forbidden pairs count.

    >>> largest_rows(np.array([[0.0, 1.0], [-3.0, 0.0], [-np.inf, 0.0]]), 2)
    array([1, 2])
    """
    size = np.abs(table).max(axis=1)
    return np.sort(np.argsort(-size, kind="stable")[:limit])


def _tables(about: ModelSummary) -> dict[int, Json]:
    """Return the interaction tables of the strongest edges, as many as fit on the page."""
    found: dict[int, Json] = {}
    left = _MAX_CELLS
    for which in about.order.tolist():
        table = about.table(which)
        left -= table.values.size
        if left < 0:
            break
        found[which] = {
            "rows": table.rows,
            "columns": table.columns,
            "values": [[for_json(value, 3) for value in row] for row in table.values.tolist()],
            "whole": list(table.whole),
        }
    return found


def _chart(chart: Chart) -> Json:
    n = len(chart.x)
    kept = np.unique(np.linspace(0, n - 1, min(n, _MAX_POINTS)).round().astype(np.int64))

    def numbers(values: Floats) -> list[float | None]:
        return [for_json(value, 6) for value in values[kept].tolist()]

    def side(axis: Side) -> Json:
        lines = [line._asdict() | {"values": numbers(line.values)} for line in axis.lines]
        return axis._asdict() | {"lines": lines}

    sides = {"left": side(chart.left), "right": side(chart.right)}
    return chart._asdict() | {"x": numbers(chart.x)} | sides
