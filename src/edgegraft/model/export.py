"""Models for other programs: a table of the edges, and files by their suffix.

Formats other than tables are plug-ins (:mod:`edgegraft.plugins`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft import plugins
from edgegraft.core.atomic import suffix_of
from edgegraft.errors import ModelError
from edgegraft.ingest.output import write_parquet, write_rows
from edgegraft.model.file import Columns, check_edge_columns
from edgegraft.model.mrf import PairwiseMRF

_ENDS = ("first", "second")


def edge_attributes(model: PairwiseMRF, edge_columns: Mapping[str, ArrayLike] | None) -> Columns:
    """Return the columns of the edges in the model's order, the strength before the others.

    Given columns replace the model's own; ``weight`` is the strength with the sign of the edge.
    """
    checked = {**model.edge_columns, **check_edge_columns(edge_columns, model.n_edges)}
    strength = checked.pop("strength") if "strength" in checked else model.edge_strengths()
    if "sign" in checked:
        checked["weight"] = np.where(checked["sign"] < 0, -strength, strength)
    return {"strength": strength, **checked}


def edge_table(
    model: PairwiseMRF, edge_columns: Mapping[str, ArrayLike] | None = None
) -> dict[str, Any]:
    """Return the edges as columns of a table, strongest first.

    Parameters
    ----------
    model : PairwiseMRF
    edge_columns : dict of name to array, optional
        As for :func:`export`. A column named ``strength`` replaces the model's own strengths.

    Returns
    -------
    dict of str to list or array
        The names of the two variables as ``first`` and ``second``, ``strength``, and the given
        columns; suitable for a data frame.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> edge_table(model, {"q_value": [0.01]})
    {'first': ['smoker'], 'second': ['cancer'], 'strength': array([1.]), 'q_value': array([0.01])}
    """
    attributes = edge_attributes(model, edge_columns)
    for name in _ENDS:
        if name in attributes:
            raise ModelError(f"an edge column cannot be called {name!r}: the variables are")
    order = np.argsort(-attributes["strength"].astype(np.float64), kind="stable")
    ends = {
        name: [model.names[v] for v in model.edges[order, side]] for side, name in enumerate(_ENDS)
    }
    return ends | {name: values[order] for name, values in attributes.items()}


def export(
    model: PairwiseMRF,
    path: str | os.PathLike[str],
    format: str | None = None,
    edge_columns: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write a model for other programs, atomically.

    Parameters
    ----------
    model : PairwiseMRF
    path : path-like
        An existing file is replaced. All formats except Parquet are compressed if the name ends in
        ``.gz``.
    format : {"csv", "gexf", "graphml", "parquet", "uai"}, optional
        By default given by the suffix of `path`. CSV and Parquet list the edges, GEXF and
        GraphML are the network, UAI is the model with its potentials and without its names.
    edge_columns : dict of name to array, optional
        One number for each of the model's edges, in their order: p-values, q-values,
        frequencies. UAI files cannot contain them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "edges.csv"
    ...     export(model, path, edge_columns={"q_value": [0.01]})
    ...     print(path.read_text(), end="")
    first,second,strength,q_value
    smoker,cancer,1.0,0.01
    """
    name = _format_of(Path(path), format)
    write = _TABLES.get(name) or plugins.find("exports", name)
    write(path, model, edge_columns)


def formats() -> list[str]:
    """Return the formats of :func:`export`, by name."""
    return sorted([*_TABLES, *plugins.names("exports")])


def _format_of(path: Path, format: str | None) -> str:
    name = format or suffix_of(path).removeprefix(".")
    known = ", ".join(formats())
    if name not in formats():
        if format is not None:
            raise ValueError(f"there is no export format {format!r}; choose one of {known}")
        raise ValueError(
            f"'{path}' does not end in the suffix of a known format ({known}); change the name, "
            "or give the format"
        )
    if name == "parquet" and path.suffix.lower() == ".gz":
        raise ValueError(f"'{path}': Parquet files are compressed as they are; leave out .gz")
    return name


def _write_csv(path: Any, model: PairwiseMRF, edge_columns: Any) -> None:
    """Write the edges as CSV in UTF-8; NaN is an empty cell."""
    table = _text_table(model, edge_columns)
    for name, values in table.items():
        if not isinstance(values, list):
            table[name] = [None if value != value else value for value in values.tolist()]
    write_rows(Path(path), table, line_end="\r\n")  # as RFC 4180 has it


def _text_table(model: PairwiseMRF, edge_columns: Any) -> dict[str, Any]:
    """Return the table of the edges, having refused names that cannot be encoded as text."""
    for name in model.names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ModelError(
                f"variable {name!r} has half of a surrogate pair in its name, which is not text: "
                "rename it"
            ) from error
    return edge_table(model, edge_columns)


#: Formats that are the table of edges.
_TABLES: dict[str, Callable[[Any, PairwiseMRF, Any], None]] = {
    "csv": _write_csv,
    "parquet": lambda path, model, columns: write_parquet(path, _text_table(model, columns)),
}
