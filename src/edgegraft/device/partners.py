"""The strongest partners of every variable out of all pairs, on a device.

    chi-square / N = sum over a, b of n_ab^2 / (n_a n_b) - 1

Counts of a tile of variables with a tile of others are one matrix product of zeros and ones, exact
in half precision with sums in single precision. Of each tile only the strongest partners are kept,
so memory does not grow with the square of the variables. Of two states one is enough; very many
two-state columns are compared by :mod:`~edgegraft.device.binary_partners`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.device import binary_partners
from edgegraft.device.columns import DeviceColumns, Group, columns_on
from edgegraft.device.device import Tensor, torch_module
from edgegraft.table.blocks import TableRows

_EXACT_ROWS = 1 << 24  # up to which sums of ones are exact in single precision
_CELLS = 1 << 28  # of the counts of a tile
_TILE = 4096  # variables


def can_screen(block: TableRows) -> bool:
    """Return whether all pairs can be compared on the block's device."""
    table = block.table
    few = table.n_rows <= _EXACT_ROWS and block.weights is None
    return block.device is not None and few and not table.n_missing.any()


def screen_on_device(block: TableRows, k: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the `k` strongest partners of each variable and their dependence, in no order."""
    torch = torch_module()
    columns = columns_on(block, np.float32)
    n = len(block.schema)
    k = max(1, min(k, n - 1))
    order = columns.order
    partner, strength = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf)
    if binary_partners.suits(columns):
        best = binary_partners.strongest_pairs(columns, k)
        place = best[1].cpu().numpy()
        partner[order] = np.where(place >= 0, order[place], -1)
        strength[order] = best[0].cpu().numpy()
        return partner, strength
    for group in columns.groups:
        tile = max(1, min(_TILE, group.n, _CELLS // group.states // max(1, columns.n_states)))
        for first in range(0, group.n, tile):
            own = slice(first, min(first + tile, group.n))
            best = _strongest(columns, group, own, k)
            at = order[columns.first_of[group] + np.arange(own.start, own.stop)]
            found = torch.isfinite(best[0])
            others = best[1].masked_fill(~found, 0).cpu().numpy()
            partner[at] = np.where(found.cpu().numpy(), order[others], -1)
            strength[at] = best[0].double().cpu().numpy()
    return partner, strength


def _strongest(columns: DeviceColumns, group: Group, own: slice, k: int) -> tuple[Tensor, Tensor]:
    """Return dependence and place of the strongest partners of some variables of a group."""
    torch = torch_module()
    device = columns.device.name
    n_own = own.stop - own.start
    score = torch.full((n_own, 0), -torch.inf, device=device)
    place = torch.empty((n_own, 0), dtype=torch.int64, device=device)
    left = _states_shown(columns, group, own)
    mine = columns.first_of[group] + torch.arange(own.start, own.stop, device=device)
    for other in columns.groups:
        states = max(1, other.states)
        tile = max(1, min(other.n, _CELLS // max(1, n_own * group.states * states)))
        for first in range(0, other.n, tile):
            theirs = slice(first, min(first + tile, other.n))
            found = _dependence(columns, group, own, left, other, theirs)
            names = columns.first_of[other] + torch.arange(first, theirs.stop, device=device)
            found.masked_fill_(mine[:, None] == names, -torch.inf)
            best, at = found.topk(min(k, found.shape[1]), 1)
            score = torch.cat((score, best), 1)
            place = torch.cat((place, names[at]), 1)
            if score.shape[1] > k:
                score, at = score.topk(k, 1)
                place = place.gather(1, at)
    return score, place


def _states_shown(columns: DeviceColumns, group: Group, chosen: slice) -> Tensor:
    """Return the zeros and ones of variables in half precision; one state of two suffices."""
    start = group.first + chosen.start * group.states
    rows = slice(start, group.first + chosen.stop * group.states)
    if group.states == 2:
        rows = slice(start + 1, rows.stop, 2)
    return columns.show_states(rows)


def _dependence(
    columns: DeviceColumns, group: Group, own: slice, left: Tensor, other: Group, theirs: slice
) -> Tensor:
    """Return chi-square / N of all pairs, less its expectation under independence."""
    n_rows = float(columns.n_rows)
    right = left if (other, theirs) == (group, own) else _states_shown(columns, other, theirs)
    counts = _multiply(left, right)
    mine, yours = (_shares(columns, g, at) for g, at in ((group, own), (other, theirs)))
    counts /= n_rows
    counts -= mine[:, None] * yours  # centred: the sum loses no digits
    if group.states == other.states == 2:
        spread = mine * (1 - mine), yours * (1 - yours)
        counts.square_()
        counts /= (spread[0][:, None] * spread[1]).clamp(min=1e-30)
        free = (spread[0] > 0)[:, None] & (spread[1] > 0)
        return counts - free / n_rows
    return _of_tables(counts, mine, yours, group.states, other.states, n_rows)


def _of_tables(
    counts: Tensor, mine: Tensor, yours: Tensor, tall: int, wide: int, n_rows: float
) -> Tensor:
    """Return the same for tables; those of two states have one row or column of them."""
    shape = (1 if tall == 2 else tall), (1 if wide == 2 else wide)
    one, other = mine.view(-1, shape[0]), yours.view(-1, shape[1])
    tables = counts.view(len(one), shape[0], len(other), shape[1]).square()
    weights = []
    for shares, states in ((one, tall), (other, wide)):
        variance = shares * (1 - shares) if states == 2 else shares
        weights.append((variance > 0) / variance.clamp(min=1e-30))
    found = (tables * weights[0][:, :, None, None] * weights[1]).sum((1, 3))
    free = [
        ((shares > 0).sum(1) - 1).clamp(min=0) if states > 2 else (shares * (1 - shares) > 0).sum(1)
        for shares, states in ((one, tall), (other, wide))
    ]
    return found - free[0][:, None] * free[1] / n_rows


def _shares(columns: DeviceColumns, group: Group, chosen: slice) -> Tensor:
    """Return the shares of the rows that the states of variables have."""
    start = group.first + chosen.start * group.states
    rows = slice(start, group.first + chosen.stop * group.states)
    if group.states == 2:
        rows = slice(start + 1, rows.stop, 2)
    return columns.shares[rows]


def _multiply(left: Tensor, right: Tensor) -> Any:
    torch = torch_module()
    if left.is_cuda:
        return torch.mm(left, right.T, out_dtype=torch.float32)
    return left.float() @ right.float().T
