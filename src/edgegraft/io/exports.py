"""Models and rows for other programs: rows as text or Parquet, models by the suffix of a file."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file, suffix_of
from edgegraft.errors import DataError, ModelError
from edgegraft.ingest.output import write_parquet
from edgegraft.io.graph_files import edge_attributes, write_gexf, write_graphml
from edgegraft.io.uai_write import model_to_uai
from edgegraft.model import PairwiseMRF

if TYPE_CHECKING:
    import pyarrow as pa

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLOCK = 65536  # rows converted to Python values at a time


def check_format(path: Path | None) -> None:
    """Refuse a name without the suffix of a format for rows."""
    if path is not None and not _is_parquet(path) and suffix_of(path) not in _DELIMITERS:
        raise DataError(
            f"rows cannot be written to '{path}': use a name that ends in .csv or .tsv (also with "
            ".gz) or in .parquet"
        )


def write_rows(
    path: Path | None, columns: Mapping[str, Sequence[Any]] | pa.Table, line_end: str = "\n"
) -> None:
    """Write columns atomically to a file by its suffix, or to stdout as CSV.

    `pack` reads the text back; None is an empty cell.
    """
    if not isinstance(columns, Mapping):
        columns = dict(zip(columns.column_names, columns.columns, strict=True))
    if path is not None and _is_parquet(path):
        write_parquet(path, columns)
        return
    out = sys.stdout if path is None else io.StringIO()
    delimiter = "," if path is None else _DELIMITERS.get(suffix_of(path), ",")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=line_end)
    writer.writerow(columns)
    for first in range(0, max(map(len, columns.values()), default=0), _BLOCK):
        parts = [values[first : first + _BLOCK] for values in columns.values()]
        plain = [part.to_pylist() if hasattr(part, "to_pylist") else part for part in parts]
        writer.writerows(zip(*(map(as_text, part) for part in plain), strict=True))
    if path is not None and isinstance(out, io.StringIO):
        replace_file(path, out.getvalue())


def as_text(value: Any) -> str:
    """Return a cell as text files have it."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return str(value)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


_ENDS = ("first", "second")


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


def _write_csv(path: Any, model: PairwiseMRF, edge_columns: Any) -> None:
    """Write the edges as CSV in UTF-8; NaN is an empty cell."""
    table = _text_table(model, edge_columns)
    for name, values in table.items():
        if not isinstance(values, list):
            table[name] = [None if value != value else value for value in values.tolist()]
    write_rows(Path(path), table, line_end="\r\n")  # as RFC 4180 has it


_WRITERS: dict[str, Callable[[Any, PairwiseMRF, Any], None]] = {
    "csv": _write_csv,
    "gexf": write_gexf,
    "graphml": write_graphml,
    "parquet": lambda path, model, columns: write_parquet(path, _text_table(model, columns)),
    "uai": lambda path, model, columns: model_to_uai(path, model),
}
FORMATS = tuple(_WRITERS)


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
        By default that of the suffix of `path`. CSV and Parquet list the edges, GEXF and
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
    _WRITERS[_chosen(Path(path), format)](path, model, edge_columns)


def _chosen(path: Path, format: str | None) -> str:
    name = format or suffix_of(path).removeprefix(".")
    known = ", ".join(FORMATS)
    if format is not None and format not in FORMATS:
        raise ValueError(f"there is no export format {format!r}; choose one of {known}")
    if name not in FORMATS:
        raise ValueError(
            f"'{path}' does not end in the suffix of a known format ({known}); change the name, "
            "or give the format"
        )
    if name == "parquet" and path.suffix.lower() == ".gz":
        raise ValueError(f"'{path}': Parquet files are compressed as they are; leave out .gz")
    return name


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
