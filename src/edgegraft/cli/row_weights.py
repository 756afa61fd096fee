"""Row weights that stand in a column of the table itself."""

from __future__ import annotations

import math
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.data.frames import open_source
from edgegraft.data.options import PackOptions
from edgegraft.data.text_types import read_number
from edgegraft.data.wording import listing
from edgegraft.errors import DataError

Floats = NDArray[np.float64]


def read_weights(path: Path, name: str, options: PackOptions) -> Floats:
    """Return a column of a file as row weights: every cell a number, none of them negative.

    Parameters
    ----------
    path : Path
    name : str
        Of the column.
    options : PackOptions
        How the file is read.
    """
    weights: list[float] = []
    with open_source(path, options) as source:
        if name not in source.names:
            near = get_close_matches(name, source.names, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {listing(source.names)}"
            raise DataError(f"--weights names column '{name}', which the table lacks: {hint}")
        missing = options.missing_labels(source.from_text)
        for batch in source.batches([name]):
            for cell in batch.column(0).to_pylist():
                weights.append(_weight(name, cell, missing, len(weights)))
    if weights and not any(weights):
        raise DataError(f"--weights: every cell of column '{name}' is zero, so no row counts")
    return np.array(weights, np.float64)


def _weight(name: str, cell: Any, missing: Collection[Any], row: int) -> float:
    number = read_number(cell.strip()) if isinstance(cell, str) else cell
    unknown = cell in missing or (isinstance(cell, float) and math.isnan(cell))
    if isinstance(number, int | float) and not unknown and 0 <= number < math.inf:
        return float(number)
    found = "the cell is missing" if unknown else f"{cell!r} was found"
    raise DataError(
        f"--weights: column '{name}', row {row} (counted from 0): {found} where a weight, a "
        "number that is not negative, must stand; give rows that should not count the weight 0"
    )
