"""Counts of pairs of states, and sums of products of contrasts, on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Edges
from edgegraft.device.columns import DeviceColumns, columns_on
from edgegraft.device.device import torch_module
from edgegraft.device.pair_sums import PairTablesOnDevice, worth_all
from edgegraft.table.blocks import TableRows

_EXACT_ROWS = 1 << 24  # up to which sums of ones are exact in single precision


def count_on_device(block: TableRows, edges: Edges) -> NDArray[Any]:
    """Return the tables of a block's rows, one after another."""
    exact = block.weights is None and block.table.n_rows <= _EXACT_ROWS
    columns = columns_on(block, np.float32 if exact else np.float64)
    states = block.schema.n_states
    out = PairTablesOnDevice(columns, edges, states, both=False)
    if worth_all(columns, edges, states):
        out.read(block.derive("all pairs", lambda _: _all_pairs(columns)))
    else:
        for step in columns.steps():
            out.add(_weighted(step.shown, step.weights), step.shown)
    tables = out.tables()
    return np.rint(tables).astype(np.int64) if block.weights is None else tables


def _all_pairs(columns: DeviceColumns) -> Any:
    """Return the counts of all pairs of states.

    Without weights they are exact in half precision with sums in single precision, as GPUs have it.
    """
    torch = torch_module()
    plain = columns.weights is None and columns.device.is_gpu
    dtype = torch.bfloat16 if plain else torch.float64
    total = None
    for rows in columns.row_slices(dtype.itemsize):
        for first in range(rows.start, rows.stop, _EXACT_ROWS):
            part = slice(first, min(first + _EXACT_ROWS, rows.stop))
            shown = columns.show(part, dtype)
            weights = None if columns.weights is None else columns.weights[part]
            left = _weighted(shown, weights)
            product = torch.mm(left, shown.T, out_dtype=torch.float32) if plain else left @ shown.T
            total = product.double() if total is None else total + product
    return total


def _weighted(shown: Any, weights: Any) -> Any:
    return shown if weights is None else shown * weights
