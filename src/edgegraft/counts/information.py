"""Mutual information of pairs, from their tables.

    I(i; j) = sum_ab p_ab log( p_ab / (p_a p_b) )    in nats

with the margins of the table itself, so that each pair is judged by the rows in which both cells
are known.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core.tables import PairTables
from edgegraft.core.types import Floats, Integers


def mutual_information(tables: PairTables) -> Floats:
    """Return the plug-in mutual information of each pair, in nats; 0 for an empty table.

    Examples
    --------
    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.counts import PairCounts
    >>> counts = PairCounts(PackedTable.from_codes([[0, 0], [1, 1]]))
    >>> mutual_information(counts.pairs([(0, 1)])).round(6)
    array([0.693147])
    """
    owner = np.repeat(np.arange(len(tables)), np.diff(tables.offsets))
    start, wide = tables.offsets[owner], tables.shapes[owner, 1]
    place = np.arange(len(owner))
    cell = place - start
    first = _entropies(tables, owner, start + cell // wide)
    second = _entropies(tables, owner, start + cell % wide)
    return np.maximum(first + second - _entropies(tables, owner, place), 0.0)


def _entropies(tables: PairTables, owner: Integers, state: Integers) -> Floats:
    """Return the entropy of each table's states, which are numbered from the table's offset."""
    counts = np.bincount(state, tables.values, len(owner))
    totals = np.bincount(owner, tables.values, len(tables))
    totals[totals == 0] = 1.0  # of an empty table, whose entropy is zero
    logs = np.log(counts, out=np.zeros(len(counts)), where=counts > 0)
    return np.log(totals) - np.bincount(owner, counts * logs, len(tables)) / totals
