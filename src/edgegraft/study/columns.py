"""Answers as columns: in plain types, and with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from numpy.typing import NDArray

NORMAL = 1.959963984540054  # standard errors of an interval of 95 %


def plain_columns(columns: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Return columns as lists of plain values; what is not a finite number is None."""
    return {
        name: [None if isinstance(cell, float) and not isfinite(cell) else cell for cell in cells]
        for name, cells in ((name, values.tolist()) for name, values in columns.items())
    }


def plain_rows(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return columns as rows of plain values; what is not a finite number is None.

    Examples
    --------
    >>> import numpy as np
    >>> plain_rows({"name": np.array(["a"], object), "effect": np.array([np.nan])})
    [{'name': 'a', 'effect': None}]
    """
    cells = zip(*plain_columns(columns).values(), strict=True)
    return [dict(zip(columns, own, strict=True)) for own in cells]
