"""Properties of the data that matter for the interpretation of a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgegraft.counts.pair_counts import PairCounts
from edgegraft.table import PackedTable
from edgegraft.table.store import PlaneStore

_MAX_RARE = 100


def data_quality(
    table: PackedTable | PlaneStore,
    *,
    dropped: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    rare_below: int = 10,
) -> dict[str, Any]:
    """Return missing cells, rare categories and omitted columns, in plain types.

    Parameters
    ----------
    table : PackedTable or PlaneStore
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
