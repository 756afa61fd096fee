"""Results as JSON, and their comparison.

Integers, strings and booleans must be equal. Floats may differ by 1e-9, relative or absolute.
p- and q-values are compared by their logarithms, because a relative error of a statistic becomes
the same relative error of ``log p``.

The BLAS computes scores of all pairs, gradients of samples and what follows from them in single
precision, and its last digits differ between processors. These are compared with a tolerance of
1e-5, or, if the environment variable GOLDEN_STRICT is set, like all others. On x86-64 the tests
make NumPy, OpenBLAS and numba use the instructions with which the results were stored
(`tests/__init__.py`).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

TOLERANCE = 1e-9
SINGLE = 1e-5
_BY_LOGARITHM = ("p_value", "q_value")
_IN_SINGLE = ("largest", "grid")


def plain(value: Any) -> Any:
    """Return a result as lists, dicts and Python numbers, as in JSON."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def differences(
    found: Any, expected: Any, where: str = "", *, tolerance: float = TOLERANCE
) -> list[str]:
    """Return the differences between two results, one line each; empty if they agree."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = [
            f"{where}: {key!r} is in one only" for key in sorted(found.keys() ^ expected.keys())
        ]
        for key in sorted(expected.keys() & found.keys()):
            place = f"{where}.{key}".lstrip(".")
            lines += differences(found[key], expected[key], place, tolerance=tolerance)
        return lines
    if _is_floats(expected) and _is_floats(found):
        return _float_differences(found, expected, where, tolerance)
    if isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return [f"{where}: {len(found)} entries, expected {len(expected)}"]
        lines = []
        for k, (one, other) in enumerate(zip(found, expected, strict=True)):
            lines += differences(one, other, f"{where}[{k}]", tolerance=tolerance)
        return lines
    same = type(found) is type(expected) and found == expected
    return [] if same else [f"{where}: {found!r}, expected {expected!r}"]


def _is_floats(value: Any) -> bool:
    """Return whether a value is a float or a list of floats (None: missing)."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, float) or item is None for item in value)
    return isinstance(value, float)


def _float_differences(found: Any, expected: Any, where: str, tolerance: float) -> list[str]:
    if "GOLDEN_STRICT" in os.environ:
        tolerance = TOLERANCE
    elif where.endswith(_IN_SINGLE):
        tolerance = SINGLE
    one, other = (np.atleast_1d(np.array(value, np.float64)) for value in (found, expected))
    if one.shape != other.shape:
        return [f"{where}: {len(one)} numbers, expected {len(other)}"]
    if where.endswith(_BY_LOGARITHM):
        one, other = np.log(one), np.log(other)
    same = np.isclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    if same.all():
        return []
    k = int(np.argmin(same))
    largest = np.nanmax(np.abs(one - other))
    return [
        f"{where}[{k}]: {one[k]!r}, expected {other[k]!r} "
        f"({(~same).sum()} of {len(same)} numbers differ, by up to {largest:.3g})"
    ]
