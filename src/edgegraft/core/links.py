"""Graphs as SciPy's graph routines take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from edgegraft.core.types import Edges


def link_matrix(values: NDArray[Any], edges: Edges, n: int) -> Any:
    """Return a sparse matrix with a value for each edge among `n` vertices.

    Its indices are 32-bit integers: older releases of SciPy refuse others.

    >>> link_matrix(np.ones(1), np.array([(0, 2)]), 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [0., 0., 0.]])
    """
    return coo_array((values, tuple(edges.T.astype(np.int32))), shape=(n, n))
