"""The HTML report of a model: one file that needs no network, no server and no other file.

Templates of jinja2 escape all text. Small scripts draw the network and the charts, so that a page
has tens of kilobytes instead of the megabytes of a plotting library. The content security policy
allows only these scripts, by their checksums: the page sends no requests, and text from the data
could not run even if it were not escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import resources
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file
from edgegraft.core.types import Floats
from edgegraft.errors import DataError, import_extra
from edgegraft.model import PairwiseMRF
from edgegraft.model.export import edge_attributes
from edgegraft.report.answer_plots import READING_PLOTS, plot_comparison
from edgegraft.report.model_plots import trace_chart
from edgegraft.report.network import drawing
from edgegraft.report.page_content import Json, ModelSummary, describe, page_sections
from edgegraft.report.style import LIMITS, as_words, for_json
from edgegraft.study import Comparison, NetworkReading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEADINGS = {
    "summary": "Summary",
    "comparison": "Groups",
    "network": "Network",
    "reading": "Centrality",
    "edges": "Strongest edges",
    "variables": "Variables",
    "trajectory": "Search",
    "certificate": "Certificate",
    "quality": "Data quality",
    "settings": "Settings",
}
_SCRIPTS = ("elements.js", "network.js", "panel.js", "chart.js", "page.js")
_MODULE_SYNTAX = re.compile(r"^(import .*;\n|export )", re.MULTILINE)
_DPI = 120  # of pictures: with outlines of letters, vector pictures are five times as large
# "<" could end the script element, "&" is special in XHTML; JSON accepts both in escaped form.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def write_report(
    path: str | os.PathLike[str],
    model: PairwiseMRF,
    *,
    details: Mapping[str, Any] | None = None,
    edge_columns: Mapping[str, ArrayLike] | None = None,
    trace: Mapping[str, ArrayLike] | None = None,
    data_quality: Mapping[str, Any] | None = None,
    comparison: Comparison | None = None,
    reading: NetworkReading | None = None,
    title: str | None = None,
) -> None:
    """Write an HTML report of a model that works offline, on a phone and on paper.

    It contains an interactive network, the strongest edges with their interaction tables, the
    variables, and everything else that is given. The same arguments give the same bytes.

    Parameters
    ----------
    path : path
        Usually with the suffix ``.html``. An existing file is replaced atomically.
    model : PairwiseMRF
    details : dict, optional
        Details that the model was saved with (:func:`edgegraft.read_details`): ``source``,
        ``settings``, ``certificate``, ``versions``, ``data_quality``, and any others.
    edge_columns : dict of name to array, optional
        One number for each of the model's edges, in their order: q-values, frequencies. A column
        named ``strength`` replaces the model's own strengths.
    trace : dict of columns, optional
        ``trace_`` of an estimator, ``SearchState.trace()``, or the columns of a ``Monitor``.
    data_quality : dict, optional
        Result of :func:`~edgegraft.report.data_quality`.
    comparison : Comparison, optional
        Result of :func:`edgegraft.compare`, for a section about groups.
    reading : NetworkReading, optional
        Result of :func:`edgegraft.read_network`, for a section about variables.
    title : str, optional

    Raises
    ------
    MissingExtraError
        jinja2, which fills the page in, is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "survey.html"
    ...     write_report(page, model, title="Survey")
    ...     "<title>Survey</title>" in page.read_text(encoding="utf-8")
    True
    """
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"'{path}' cannot be written: there is no folder '{folder}'")
    for what, value in (("details", details), ("data_quality", data_quality)):
        if value is not None and not isinstance(value, Mapping):
            raise DataError(f"{what} must be a dict, found {type(value).__name__}")
    facts = dict(details or {})
    quality = facts.pop("data_quality", None) if data_quality is None else data_quality
    facts.pop("data_quality", None)
    charts = {} if trace is None else {"trace": _chart(trace_chart(trace))}
    about = describe(model, edge_attributes(model, edge_columns))
    content = {
        "title": title or f"A network of {model.n_variables:,} variables",
        "n_edges": model.n_edges,
        "n_variables": model.n_variables,
        "sections": page_sections(
            about,
            facts,
            quality,
            comparison=comparison,
            reading=reading,
            has_trace=trace is not None,
        ),
        "pictures": {
            "comparison": [] if comparison is None else _pictures_of_groups(comparison),
            "reading": [] if reading is None else _pictures_of_reading(reading),
        },
        "network": _network(about),
        "charts": charts,
    }
    replace_file(path, _render(content))


def _render(content: Json) -> str:
    """Return the page."""
    jinja2 = import_extra("jinja2", "report", "a report")
    loader = jinja2.PackageLoader("edgegraft.report", "assets")
    undefined = jinja2.StrictUndefined
    environment = jinja2.Environment(
        loader=loader, undefined=undefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"words": as_words, "script_json": as_script_json}
    # All scripts are one module: a page that is a file cannot import others.
    script = _MODULE_SYNTAX.sub("", "".join(map(_asset, _SCRIPTS)))
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = environment.get_template("page.html").render(
        content, headings=_HEADINGS, style=_asset("page.css"), script=script, checksum=checksum
    )
    # Lone surrogates cannot be encoded: they are shown in escaped form.
    return str(page).encode("utf-8", "backslashreplace").decode()


def _asset(name: str) -> str:
    """Return a file of the page: a script or its style."""
    return resources.files("edgegraft.report").joinpath("assets", name).read_text("utf-8")


def as_script_json(value: Any) -> str:
    r"""Return a value as JSON that is safe inside a script element.

    Everything outside ASCII is escaped, including the line separators that JavaScript rejects.
    Numbers that JSON cannot express are refused.

    >>> as_script_json({"name": "</script>\u2028"})
    '{"name":"\\u003c/script\\u003e\\u2028"}'
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT)


def _network(about: ModelSummary) -> Json:
    """Return the network: variables with positions and probabilities, edges with tables."""
    network = drawing(about.network)
    for node in network["nodes"]:
        shares = about.likeliest(node["variable"])
        node["marginals"] = [[label, for_json(p)] for label, p in shares]
    tables = _tables(about)
    for edge, which in zip(network["edges"], about.network.which.tolist(), strict=True):
        columns = about.attributes.items()
        facts = [[name.replace("_", " "), as_words(values[which])] for name, values in columns]
        edge |= {"facts": facts, "table": tables.get(which)}
    return network


def _tables(about: ModelSummary) -> dict[int, Json]:
    """Return the interaction tables of the strongest edges, as many as fit on the page."""
    tables: dict[int, Json] = {}
    left = LIMITS.cells
    for which in about.order.tolist():
        table = about.table(which)
        left -= table.values.size
        if left < 0:
            break
        tables[which] = {
            "rows": table.rows,
            "columns": table.columns,
            "values": [[for_json(value, 3) for value in row] for row in table.values.tolist()],
            "whole": list(table.shape),
        }
    return tables


def _chart(chart: Json) -> Json:
    """Return a chart for the page's script, thinned to its pixels."""
    n = len(chart["x"])
    chosen = np.unique(np.linspace(0, n - 1, min(n, LIMITS.points)).round().astype(np.int64))

    def numbers(values: Floats) -> list[float | None]:
        return [for_json(value, 6) for value in values[chosen].tolist()]

    def side(axis: Json) -> Json:
        return axis | {
            "lines": [line | {"values": numbers(line["values"])} for line in axis["lines"]]
        }

    sides = {name: side(chart[name]) for name in ("left", "right")}
    return chart | {"x": numbers(chart["x"])} | sides


def _pictures_of_groups(comparison: Comparison) -> list[tuple[str, str]]:
    alt = "The network of each group, and the edges that differ"
    return _pictures([(alt, lambda: plot_comparison(comparison)[0])])


def _pictures_of_reading(reading: NetworkReading) -> list[tuple[str, str]]:
    if not reading.model.n_edges or reading.model.n_variables > LIMITS.rows:
        return []
    return _pictures((alt, partial(draw, reading)) for draw, alt in READING_PLOTS.values())


def _pictures(plots: Iterable[tuple[str, Callable[[], Axes]]]) -> list[tuple[str, str]]:
    """Return descriptions and pictures in base64; nothing if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return []
    import matplotlib.pyplot as plt

    drawn = []
    for alt, draw in plots:
        figure = draw().get_figure(root=True)
        assert figure is not None
        out = BytesIO()
        figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
        plt.close(figure)
        drawn.append((alt, base64.b64encode(out.getvalue()).decode()))
    return drawn
