"""The edges of a model as columns, shared by all exports."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file
from edgegraft.errors import ModelError
from edgegraft.ingest.output import write_parquet
from edgegraft.model import PairwiseMRF
from edgegraft.model.file import Columns, check_edge_columns

_ENDS = ("first", "second")


def edge_attributes(model: PairwiseMRF, edge_columns: Mapping[str, ArrayLike] | None) -> Columns:
    """Return the columns of the edges in the model's order, the strength before those given.

    A given column named ``strength`` replaces the model's own.
    """
    checked = check_edge_columns(edge_columns, model.n_edges)
    strength = checked.pop("strength") if "strength" in checked else model.edge_strengths()
    return {"strength": strength, **checked}


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


def write_csv(
    path: str | os.PathLike[str],
    model: PairwiseMRF,
    edge_columns: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write the edges as a CSV file in UTF-8, strongest first; see :func:`edge_table`.

    Numbers have enough digits to be read back exactly; NaN is an empty cell.
    """
    _require_text(model)
    table = edge_table(model, edge_columns)
    out = io.StringIO()
    writer = csv.writer(out)  # line ends follow RFC 4180; cells that contain them are quoted
    writer.writerow(table)
    writer.writerows(zip(*(_cells(values) for values in table.values()), strict=True))
    replace_file(path, out.getvalue())


def write_edge_parquet(
    path: str | os.PathLike[str],
    model: PairwiseMRF,
    edge_columns: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Write the edges as a Parquet file, strongest first; see :func:`edge_table`."""
    _require_text(model)
    write_parquet(path, edge_table(model, edge_columns))


def _require_text(model: PairwiseMRF) -> None:
    """Refuse names that cannot be encoded as text."""
    for name in model.names:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ModelError(
                f"variable {name!r} has half of a surrogate pair in its name, which is not text: "
                "rename it"
            ) from error


def _cells(values: Any) -> list[str]:
    if isinstance(values, list):
        return values
    if values.dtype == np.bool_:
        return ["true" if value else "false" for value in values]
    return ["" if value != value else repr(value) for value in values.tolist()]
