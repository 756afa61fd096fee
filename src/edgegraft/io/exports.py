"""Models and rows for other programs: rows as text or Parquet, models by the suffix of a file."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file, suffix_of
from edgegraft.errors import DataError, ModelError
from edgegraft.ingest.output import write_parquet
from edgegraft.io.graph_files import edge_attributes, write_gexf, write_graphml
from edgegraft.io.uai_write import model_to_uai
from edgegraft.model import PairwiseMRF

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLOCK = 65536  # rows converted to Python values at a time


def check_format(path: Path | None) -> None:
    """Refuse a name without the suffix of a format for rows."""
    if path is not None and not _is_parquet(path) and suffix_of(path) not in _DELIMITERS:
        raise DataError(
            f"rows cannot be written to '{path}': use a name that ends in .csv or .tsv (also with "
            ".gz) or in .parquet"
        )


def write_rows(path: Path | None, table: Any) -> None:
    """Write an Arrow table atomically to a file by its suffix, or to stdout as CSV."""
    if path is not None and _is_parquet(path):
        write_parquet(path, {name: table.column(name) for name in table.column_names})
        return
    blocks = (table.slice(first, _BLOCK).to_pydict() for first in range(0, table.num_rows, _BLOCK))
    write_blocks(path, table.column_names, blocks)


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of values to a file by its suffix."""
    if _is_parquet(path):
        write_parquet(path, columns)
    else:
        write_blocks(path, list(columns), [columns])


def write_blocks(
    path: Path | None, names: Sequence[str], blocks: Iterable[Mapping[str, Sequence[Any]]]
) -> None:
    """Write blocks of named columns as delimited text, to a file or to stdout."""
    if path is None:
        write_text(sys.stdout, names, blocks)
        return
    check_format(path)
    out = io.StringIO()
    write_text(out, names, blocks, _DELIMITERS[suffix_of(path)])
    replace_file(path, out.getvalue())


def write_text(
    out: TextIO,
    names: Sequence[str],
    blocks: Iterable[Mapping[str, Sequence[Any]]],
    delimiter: str = ",",
    line_end: str = "\n",
) -> None:
    """Write blocks of named columns as text that `pack` reads back; None is an empty cell."""
    writer = csv.writer(out, delimiter=delimiter, lineterminator=line_end)
    writer.writerow(names)
    for block in blocks:
        columns = [[_cell(value) for value in block[name]] for name in names]
        writer.writerows(zip(*columns, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
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
        One number for each of the model's edges, in their order. A column named ``strength``
        replaces the model's own strengths.

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
    out = io.StringIO()
    write_text(out, list(table), [table], line_end="\r\n")  # as RFC 4180 has it
    replace_file(path, out.getvalue())


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
