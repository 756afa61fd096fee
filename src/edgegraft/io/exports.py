"""Export to every file format, chosen by the suffix of the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from edgegraft.io.edge_table import write_csv, write_edge_parquet
from edgegraft.io.graph_files import write_gexf, write_graphml
from edgegraft.io.uai_write import model_to_uai
from edgegraft.model import PairwiseMRF


def _uai(path: Any, model: PairwiseMRF, edge_columns: Any) -> None:
    model_to_uai(path, model)


_WRITERS: dict[str, Callable[[Any, PairwiseMRF, Any], None]] = {
    "csv": write_csv,
    "gexf": write_gexf,
    "graphml": write_graphml,
    "parquet": write_edge_parquet,
    "uai": _uai,
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
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    own = suffixes[-2:-1] if packed else suffixes[-1:]
    name = format or "".join(own).removeprefix(".")
    known = ", ".join(FORMATS)
    if format is not None and format not in FORMATS:
        raise ValueError(f"there is no export format {format!r}; choose one of {known}")
    if name not in FORMATS:
        raise ValueError(
            f"'{path}' does not end in the suffix of a known format ({known}); change the name, "
            "or give the format"
        )
    if packed and name == "parquet":
        raise ValueError(f"'{path}': Parquet files are compressed as they are; leave out .gz")
    return name
