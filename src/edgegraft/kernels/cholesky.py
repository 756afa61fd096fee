"""Cholesky factors by LAPACK without the interpreter's lock, so that threads work at once.

Of symmetric matrices the lower triangle is given. The wrappers of SciPy hold the lock while they
work, and so one thread would factor while all others wait.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_int, c_void_p
from functools import cache

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LOWER = b"U"  # the lower triangle of rows is the upper one of LAPACK's columns


@cache
def _routine(name: str, n_arguments: int) -> Callable[..., None]:
    """Return a routine of LAPACK, called without the lock."""
    address = get_cython_function_address("scipy.linalg.cython_lapack", name)
    return CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)


def factorise(matrix: Floats) -> Floats | None:
    """Return the Cholesky factor of a matrix in its lower triangle; None if it has none.

    >>> factor = factorise(np.array([[4.0, np.nan], [2.0, 5.0]]))
    >>> solve(factor, np.array([8.0, 12.0]))
    array([1., 2.])
    >>> invert(factor)
    array([[ 0.3125, -0.125 ],
           [-0.125 ,  0.25  ]])
    """
    factor = np.array(matrix, np.float64, order="C")
    n, failed = c_int(len(factor)), c_int()
    _routine("dpotrf", 5)(_LOWER, byref(n), factor.ctypes.data, byref(n), byref(failed))
    return None if failed.value else factor


def solve(factor: Floats, rows: Floats) -> Floats:
    """Return the solution for a vector, or for each row of several."""
    out = np.array(rows, np.float64, order="C")
    n, count, failed = c_int(len(factor)), c_int(out.size // len(factor)), c_int()
    _routine("dpotrs", 8)(
        *(_LOWER, byref(n), byref(count), factor.ctypes.data, byref(n)),
        *(out.ctypes.data, byref(n), byref(failed)),
    )
    return out


def invert(factor: Floats) -> Floats:
    """Return the inverse, whole."""
    inverse = factor.copy()
    n, failed = c_int(len(factor)), c_int()
    _routine("dpotri", 5)(_LOWER, byref(n), inverse.ctypes.data, byref(n), byref(failed))
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)
