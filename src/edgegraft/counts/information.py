"""What counts say of a table: mutual information of pairs, and the quality of the data.

Mutual information is

    I(i; j) = sum_ab p_ab log( p_ab / (p_a p_b) )    in nats

with the margins of the table itself, so that each pair is judged by the rows in which both cells
are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from edgegraft.core.pairs import PairTables
from edgegraft.core.types import Floats, Integers
from edgegraft.counts.pair_counts import PairCounts
from edgegraft.table import PackedTable
from edgegraft.table.blocks import RowStore


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


_MAX_RARE = 100


def data_quality(
    table: PackedTable | RowStore,
    *,
    dropped: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    rare_below: int = 10,
) -> dict[str, Any]:
    """Return missing cells, rare categories and omitted columns, in plain types.

    Parameters
    ----------
    table : PackedTable or RowStore
    dropped : dict of column to reason, optional
        Columns of the source that are not in the table.
    notes : iterable of str
        Decisions made while reading: the warnings of :func:`edgegraft.pack`.
    rare_below : int, default 10
        A category in fewer rows than this is rare.

    Returns
    -------
    dict
        ``n_rows``, ``missing`` (cells by variable, if any), ``rare`` (variable, category and count
        of the 100 rarest), ``n_rare`` (how many there are), ``rare_below``, ``dropped``, ``notes``.

    Examples
    --------
    >>> found = data_quality(PackedTable.from_codes([[0, 1], [1, -1], [1, 0]]), rare_below=2)
    >>> found["missing"], found["rare"][0]
    ({'x1': 1}, {'variable': 'x0', 'category': '0', 'count': 1})
    """
    margins = PairCounts(table).margins()
    rare = [
        {"variable": variable.name, "category": str(label), "count": int(count)}
        for k, variable in enumerate(table.schema)
        for label, count in zip(variable.categories, margins[k], strict=True)
        if count < rare_below
    ]
    missing = zip(table.schema.names, table.n_missing.tolist(), strict=True)
    return {
        "n_rows": int(table.n_rows),
        "missing": {name: count for name, count in missing if count},
        "rare": sorted(rare, key=lambda found: int(str(found["count"])))[:_MAX_RARE],
        "n_rare": len(rare),
        "rare_below": int(rare_below),
        "dropped": {str(name): str(reason) for name, reason in (dropped or {}).items()},
        "notes": [str(note) for note in notes],
    }
