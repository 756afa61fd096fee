"""Names for the arrays that cross module borders; kernels name dtypes with their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Edges = NDArray[np.int64]  # shape (m, 2): one pair of variables per row
Ids = NDArray[np.int64]  # one pair per number: see edgegraft.core.pairs
Tree = dict[str, Any]  # JSON values, arrays and trees of them by name: what files hold
