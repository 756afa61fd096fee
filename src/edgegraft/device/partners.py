"""The strongest partners of every variable out of all pairs, on a device.

    chi-square / N = sum over a, b of (n_ab - n_a n_b / N)^2 / (n_a n_b)

Counts of a tile of variables with a tile of others are one matrix product of zeros and ones, exact
in half precision with sums in single precision. Of each tile only the strongest partners are kept,
so memory does not grow with the square of the variables. Of two states one is enough: its squared
difference is over its variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.device.columns import EXACT_ROWS, DeviceColumns, Group, columns_on
from edgegraft.device.device import Device, Tensor, slices, to_host, torch_module
from edgegraft.device.products import half_product
from edgegraft.table.blocks import TableRows


def partners(device: Device, block: TableRows, k: int) -> tuple[NDArray[np.int64], Floats] | None:
    """Return the `k` strongest partners of each variable and their dependence, in no order.

    None if rows have weights or missing cells, or are too many for exact counts.
    """
    torch = torch_module()
    if block.weights is not None or block.table.n_missing.any() or block.n_rows > EXACT_ROWS:
        return None
    columns, n = columns_on(device, block), len(block.schema)
    parts = [part for group in columns.groups for part in _parts(columns, group)]
    k, order = max(1, min(k, n - 1)), columns.order
    partner, strength = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf)
    for one in parts:
        best, place = torch.empty(one.n, 0, device=device.name), one.names[:0].expand(one.n, 0)
        left = columns.shown(torch.bfloat16, one.states)
        for other in parts:
            found = _dependence(left, one, columns, other)
            found.masked_fill_(one.names[:, None] == other.names, -torch.inf)
            strongest, at = found.topk(min(k, other.n), 1)
            best, place = torch.cat((best, strongest), 1), torch.cat((place, other.names[at]), 1)
            best, at = best.topk(min(k, best.shape[1]), 1)
            place = place.gather(1, at)
        own = order[one.names.cpu().numpy()]
        strength[own, : best.shape[1]] = to_host(best)
        partner[own, : best.shape[1]] = order[place.cpu().numpy()]
    partner[~np.isfinite(strength)] = -1
    return partner, strength


class _Part:
    """Some variables of the same number of states; of two states, the second."""

    def __init__(self, columns: DeviceColumns, group: Group, own: slice, first: int) -> None:
        torch, start = torch_module(), group.first + own.start * group.states
        self.n = own.stop - own.start
        stop = start + self.n * group.states
        self.states = slice(start + 1, stop, 2) if group.states == 2 else slice(start, stop)
        self.names = first + torch.arange(own.start, own.stop, device=columns.device.name)
        sums = columns.shown(torch.bfloat16, self.states).sum(1, dtype=torch.float64)
        self.shares = (sums / columns.n_rows).float()
        variance = self.shares * (1 - self.shares) if group.states == 2 else self.shares
        self.weights = (variance > 0) / variance.clamp(min=1e-30)
        seen = (variance > 0).view(self.n, -1).sum(1)
        self.free = seen if group.states == 2 else (seen - 1).clamp(min=0)


def _parts(columns: DeviceColumns, group: Group) -> list[_Part]:
    """Return a group in parts: indicators of one take its share of memory, and so do counts."""
    most = columns.device.at_once
    size = min(most // (2 * columns.n_rows * group.states), int((most / 32) ** 0.5) // group.states)
    first = int(np.flatnonzero(columns.start[columns.order] == group.first)[-1])
    return [_Part(columns, group, own, first) for own in slices(0, group.n, size)]


def _dependence(left: Tensor, one: _Part, columns: DeviceColumns, other: _Part) -> Tensor:
    """Return chi-square / N of all pairs, less its expectation under independence."""
    right = left if other is one else columns.shown(left.dtype, other.states)
    found = half_product(left, right)
    found /= columns.n_rows
    found -= one.shares[:, None] * other.shares  # centred: the sum loses no digits
    found.square_()
    found *= one.weights[:, None] * other.weights
    found = found.view(one.n, len(left) // one.n, other.n, -1).sum((1, 3))
    return found - one.free[:, None] * other.free / columns.n_rows
