"""The HTML report of a model: one file that needs no network, no server and no other file.

Small scripts draw the network and the charts, so that a page has tens of kilobytes instead of the
megabytes of a plotting library. The content security policy allows only these scripts, by their
checksums: the page sends no requests, and text from the data could not run even if it were not
escaped.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file
from edgegraft.errors import DataError
from edgegraft.model import PairwiseMRF
from edgegraft.model.export import edge_attributes
from edgegraft.report import page_sections as parts
from edgegraft.report.answer_sections import comparison_section, reading_section
from edgegraft.report.page_html import as_script_json, as_text, asset
from edgegraft.report.page_model import chart_data, describe, network_data
from edgegraft.study.comparison import Comparison
from edgegraft.study.reading import NetworkReading

_SCRIPTS = ("elements.js", "network.js", "panel.js", "chart.js", "page.js")
_ELSEWHERE = re.compile(r"^(import .*;\n|export )", re.MULTILINE)

Section = tuple[str, str, str]


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
        networkx, which finds the communities, is not installed.

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
    kept = dict(details or {})
    quality = kept.pop("data_quality", None) if data_quality is None else data_quality
    kept.pop("data_quality", None)
    charts = chart_data(trace)
    about = describe(model, edge_attributes(model, edge_columns))
    compared = "" if comparison is None else comparison_section(comparison)
    sections = [
        ("summary", "Summary", parts.summary_section(about, kept, quality)),
        ("comparison", "Groups compared", compared),
        ("network", "Network", parts.network_section(about)),
        ("reading", "The network read", "" if reading is None else reading_section(reading)),
        ("edges", "Strongest edges", parts.edges_section(about)),
        ("variables", "Variables", parts.variables_section(about, quality)),
        ("trajectory", "How it went", parts.trajectory_section(trace is not None)),
        ("certificate", "Certificate", parts.certificate_section(kept)),
        ("quality", "Data quality", parts.quality_section(quality, model.n_variables)),
        ("settings", "To repeat it", parts.settings_section(kept)),
    ]
    title = title or f"A network of {model.n_variables:,} variables"
    replace_file(path, _page(title, sections, network_data(about), charts))


def _page(title: str, sections: Sequence[Section], network: Any, charts: Any) -> str:
    """Return the whole page; a section is its id, its heading and its content, if there is any."""
    present = [section for section in sections if section[2]]
    # All scripts are one module: a page that is a file cannot import others.
    script = _ELSEWHERE.sub("", "".join(map(asset, _SCRIPTS)))
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(asset("page.html")).substitute(
        title=as_text(title),
        policy=f"'sha256-{checksum}'",
        style=asset("page.css"),
        links="".join(f'<a href="#{name}">{head}</a>' for name, head, _ in present),
        content="\n".join(
            f'<section id="{name}"><h2>{head}</h2>\n{body}\n</section>'
            for name, head, body in present
        ),
        network=as_script_json(network),
        charts=as_script_json(charts),
        script=script,
    )
