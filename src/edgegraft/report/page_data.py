"""What the scripts of a page are given: plain values, checked to be JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.learn.selection.path import PathPoint
from edgegraft.report.escape import as_number, for_json
from edgegraft.report.network import drawing
from edgegraft.report.page_model import ModelSummary
from edgegraft.report.palette import NEGATIVE, NEUTRAL, POSITIVE
from edgegraft.report.trajectory_plots import check_trace, path_measure

Json = dict[str, Any]

_MAX_CELLS = 40_000  # of interaction tables; the strongest edges have theirs
_MAX_POINTS = 500  # of a line


def network_data(about: ModelSummary) -> Json:
    """Return the network: variables with their spots and probabilities, edges with their tables."""
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
    """Return what the charts of the run and of the path show, of those that are given."""
    charts: Json = {}
    if trace is not None:
        charts["trace"] = _trace_chart(check_trace(trace))
    if points:
        charts["path"] = _path_chart(points)
    return charts


def _facts(about: ModelSummary, which: int) -> list[list[str]]:
    return [
        [name.replace("_", " "), as_number(values[which].item())]
        for name, values in about.attributes.items()
    ]


def _tables(about: ModelSummary) -> dict[int, Json]:
    """Return the interaction tables of the strongest edges, as many as there is room for."""
    found: dict[int, Json] = {}
    room = _MAX_CELLS
    for which in about.order.tolist():
        table = about.table(which)
        room -= table.values.size
        if room < 0:
            break
        found[which] = {
            "rows": table.rows,
            "columns": table.columns,
            "values": [[for_json(value, 3) for value in row] for row in table.values.tolist()],
            "whole": list(table.whole),
        }
    return found


def _trace_chart(columns: dict[str, np.ndarray]) -> Json:
    x, n = columns["seconds"], len(columns["seconds"])
    kept = np.unique(np.linspace(0, n - 1, min(n, _MAX_POINTS)).round().astype(np.int64))
    left = [_line("objective", columns["objective"][kept], POSITIVE)]
    if "held_out" in columns:
        left.append(_line("held out", columns["held_out"][kept], NEGATIVE, dashed=True))
    name, title = ("recall", "recall") if "recall" in columns else ("n_edges", "edges")
    return {
        "x": {"title": "seconds", "values": _values(x[kept]), "log": False, "reverse": False},
        "left": {"title": "nats per row", "lines": left},
        "right": {
            "title": title,
            "lines": [_line(title, columns[name][kept], NEUTRAL)],
            "from": 0,
        },
        "mark": None,
    }


def _path_chart(points: Sequence[PathPoint]) -> Json:
    penalties = np.array([point.penalty for point in points])
    title, values, best = path_measure(points)
    edges = np.array([point.n_edges for point in points], np.float64)
    return {
        "x": {
            "title": "penalty",
            "values": _values(penalties),
            "log": bool((penalties > 0).all()),
            "reverse": True,
        },
        "left": {"title": "edges", "lines": [_line("edges", edges, POSITIVE)], "from": 0},
        "right": {"title": title, "lines": [_line(title, values, NEGATIVE, dashed=True)]},
        "mark": best,
    }


def _line(name: str, values: np.ndarray, colour: str, *, dashed: bool = False) -> Json:
    return {"name": name, "values": _values(values), "colour": colour, "dashed": dashed}


def _values(values: np.ndarray) -> list[float | None]:
    return [for_json(value, 6) for value in values.tolist()]
