"""Row weights that are a column of the table itself."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection
from typing import Any

import numpy as np

from edgegraft.core.text import suggestion
from edgegraft.core.types import Floats
from edgegraft.errors import Argument, DataError
from edgegraft.ingest.cells import read_number
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions


def read_weights(X: Any, name: str, options: ReadOptions) -> Floats:
    """Return the column `name` as row weights: every cell a number, none of them negative."""
    weights = array("d")  # a list would take four times the memory
    with open_source(X, options) as source:
        if name not in source.names:
            hint = suggestion(name, source.names)
            raise DataError(
                Argument("weights"), f" names column '{name}', which the table lacks: {hint}"
            )
        missing = options.missing_labels(source.from_text)
        for batch in source.batches([name]):
            first = len(weights)
            for cell in batch.column(0).to_pylist():
                weight = _weight(cell, missing)
                if weight is None:
                    raise _refused(name, cell, missing, source.place(first)(len(weights) - first))
                weights.append(weight)
    if weights and not any(weights):
        raise DataError(f"every cell of the weights' column '{name}' is zero, so no row counts")
    return np.array(weights, np.float64)


def _weight(cell: Any, missing: Collection[Any]) -> float | None:
    """Return a cell as a weight, None if it is not one."""
    number = read_number(cell.strip()) if isinstance(cell, str) else cell
    if not isinstance(number, int | float) or _is_missing(cell, missing):
        return None
    return float(number) if 0 <= number < math.inf else None


def _is_missing(cell: Any, missing: Collection[Any]) -> bool:
    return cell in missing or (isinstance(cell, float) and math.isnan(cell))


def _refused(name: str, cell: Any, missing: Collection[Any], row: str) -> DataError:
    found = "the cell is missing" if _is_missing(cell, missing) else f"{cell!r} was found"
    return DataError(
        f"weights in column '{name}', row {row} (counted from 0): {found}, expected a number that "
        "is not negative; give rows that should not count the weight 0"
    )
