"""From codes to labels that can be fitted again: a bin is a number inside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.table import Schema, Variable

Codes = NDArray[np.integer[Any]]


def labels(schema: Schema, codes: Codes) -> Any:
    """Return codes as an Arrow table of labels, binned columns as the middles of their bins."""
    table = schema.decode(codes)
    for k, variable in enumerate(schema):
        if variable.edges is not None:
            middle = middles(variable)
            values = np.append(middle, np.nan)[codes[:, k]]
            if (codes[:, k] >= 0).all():
                values = values.astype(middle.dtype)
            table = table.set_column(k, variable.name, [values])
    return table


def middles(variable: Variable) -> NDArray[Any]:
    """Return a number inside of each bin; whole where the column holds whole numbers.

    Examples
    --------
    >>> middles(Variable("age", ("[0, 3)", "[3, 4)", "[4, 9]"), "int64", True, (0, 3, 4, 9)))
    array([1, 3, 6])
    """
    edges = np.array(variable.edges, np.float64)
    low, high = edges[:-1], edges[1:]
    middle = low + (high - low) / 2
    if variable.dtype.startswith(("double", "float", "half", "decimal")):
        return np.asarray(middle)
    whole = np.floor(middle)
    return np.asarray(np.where(whole < low, np.ceil(middle), whole).astype(np.int64))
