"""Mutual information of pairs, from their tables.

    I(i; j) = sum_ab p_ab log( p_ab / (p_a p_b) )    in nats

with the margins of the table itself, so that each pair speaks of the rows in which both cells
are known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.tables import PairTables
from edgegraft.kernels.counting.information import mutual_information as kernel


def mutual_information(tables: PairTables) -> NDArray[np.float64]:
    """Return the plug-in mutual information of each pair, in nats; 0 for an empty table.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.counts import PairCounts
    >>> counts = PairCounts(PackedTable.from_codes([[0, 0], [1, 1]]))
    >>> mutual_information(counts.pairs([(0, 1)])).round(6)
    array([0.693147])
    """
    out = np.empty(len(tables))
    kernel(tables.values, tables.shapes, tables.offsets, out)
    return out
