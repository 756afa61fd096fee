"""Data for the scripts of a page: plain values, checked to be JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Floats
from edgegraft.learn.selection.path import PathPoint
from edgegraft.report.escape import as_number, for_json
from edgegraft.report.network import drawing
from edgegraft.report.page_model import ModelSummary
from edgegraft.report.trajectory_plots import Chart, Side, path_chart, trace_chart

Json = dict[str, Any]

_MAX_CELLS = 40_000  # total of interaction tables; only the strongest edges have them
_MAX_POINTS = 500  # points per line


def network_data(about: ModelSummary) -> Json:
    """Return the network: variables with positions and probabilities, edges with tables."""
    network = about.network
    found = drawing(network)
    for node in found["nodes"]:
        shares = about.likeliest(node["variable"])
        node["marginals"] = [[label, for_json(p)] for label, p in shares]
    tables = _tables(about)
    for edge, which in zip(found["edges"], network.which.tolist(), strict=True):
        edge |= {"facts": _facts(about, which), "table": tables.get(which)}
    return found


def chart_data(trace: Mapping[str, ArrayLike] | None, points: Sequence[PathPoint] | None) -> Json:
    """Return the data of the charts of the search and of the path, if given."""
    charts = {}
    if trace is not None:
        charts["trace"] = _chart(trace_chart(trace))
    if points:
        charts["path"] = _chart(path_chart(points))
    return charts


def _facts(about: ModelSummary, which: int) -> list[list[str]]:
    return [
        [name.replace("_", " "), as_number(values[which].item())]
        for name, values in about.attributes.items()
    ]


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
    mark = None if chart.mark is None else int(np.searchsorted(kept, chart.mark))
    return chart._asdict() | {"x": numbers(chart.x), "mark": mark} | sides
