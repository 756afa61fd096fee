"""The strongest partners of every variable out of all pairs, on a device.

    chi-square / N = sum over a, b of n_ab^2 / (n_a n_b) - 1

Counts of a tile of variables with a tile of others are one matrix product of zeros and ones, exact
in half precision with sums in single precision. Of each tile only the strongest partners are kept,
so memory does not grow with the square of the variables. Of two states one is enough.

Of very many two-state columns each pair is compared once. Correlations of all pairs are products of
standardised columns in half precision, whose error is below a hundredth. They only say which pairs
may be among the strongest of either end: those above the weakest partner that is kept so far, and
their correlations are computed again, exactly. After the first block few are: ``k log(n / block)``
of each column's pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.device.columns import DeviceColumns, Group, columns_on
from edgegraft.device.device import Tensor, half_product, slices, to_host, torch_module
from edgegraft.device.pair_sums import EXACT_ROWS
from edgegraft.table.blocks import TableRows

_TILE = 4096  # variables
BLOCK = 8192  # columns that are compared with others at a time
CELLS = 1 << 28  # pairs compared at a time
_DOUBT = 0.96  # of a correlation in half precision, whose columns are off by 2^-9 each at most
_BYTES = 1 << 28  # of columns whose pairs are compared exactly
_PADDED = 16  # rows, so that products are of whole vectors


def can_screen(block: TableRows) -> bool:
    """Return whether all pairs can be compared on the block's device."""
    table = block.table
    few = table.n_rows <= EXACT_ROWS and block.weights is None
    return block.device is not None and few and not table.n_missing.any()


def screen_on_device(block: TableRows, k: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the `k` strongest partners of each variable and their dependence, in no order."""
    torch = torch_module()
    columns = columns_on(block, np.float32)
    n = len(block.schema)
    k = max(1, min(k, n - 1))
    order = columns.order
    partner, strength = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf)
    for at, score, place in _all_strongest(columns, k):
        known = torch.isfinite(score)
        others = place.masked_fill(~known, 0).cpu().numpy()
        partner[order[at]] = np.where(known.cpu().numpy(), order[others], -1)
        strength[order[at]] = to_host(score)
    return partner, strength


def _all_strongest(columns: DeviceColumns, k: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Yield dependence and place of the strongest partners of all variables, some at a time."""
    two = len(columns.groups) == 1 and columns.groups[0].states == 2
    if two and len(columns.order) >= BLOCK:
        yield slice(None), *_strongest_pairs(columns, k)
        return
    for group in columns.groups:
        tile = min(_TILE, CELLS // group.states // max(1, columns.n_states))
        first = columns.first_of[group]
        for own in slices(0, group.n, tile):
            at = slice(first + own.start, first + own.stop)
            yield at, *_strongest(columns, group, own, k)


def _strongest(columns: DeviceColumns, group: Group, own: slice, k: int) -> tuple[Tensor, Tensor]:
    """Return dependence and place of the strongest partners of some variables of a group."""
    torch = torch_module()
    device = columns.device.name
    n_own = own.stop - own.start
    score = torch.full((n_own, 0), -torch.inf, device=device)
    place = torch.empty((n_own, 0), dtype=torch.int64, device=device)
    left = columns.show_states(_states(group, own))
    mine = columns.first_of[group] + torch.arange(own.start, own.stop, device=device)
    for other in columns.groups:
        for theirs in slices(0, other.n, CELLS // (n_own * group.states * other.states)):
            found = _dependence(columns, group, own, left, other, theirs)
            names = columns.first_of[other] + torch.arange(theirs.start, theirs.stop, device=device)
            found.masked_fill_(mine[:, None] == names, -torch.inf)
            best, at = found.topk(min(k, found.shape[1]), 1)
            score = torch.cat((score, best), 1)
            place = torch.cat((place, names[at]), 1)
            if score.shape[1] > k:
                score, at = score.topk(k, 1)
                place = place.gather(1, at)
    return score, place


def _states(group: Group, chosen: slice) -> slice:
    """Return the states of some variables of a group; one state of two suffices."""
    start = group.first + chosen.start * group.states
    stop = group.first + chosen.stop * group.states
    return slice(start + 1, stop, 2) if group.states == 2 else slice(start, stop)


def _dependence(
    columns: DeviceColumns, group: Group, own: slice, left: Tensor, other: Group, theirs: slice
) -> Tensor:
    """Return chi-square / N of all pairs, less its expectation under independence."""
    n_rows = float(columns.n_rows)
    same = (other, theirs) == (group, own)
    right = left if same else columns.show_states(_states(other, theirs))
    counts = half_product(left, right)
    mine, yours = (columns.shares[_states(g, at)] for g, at in ((group, own), (other, theirs)))
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


class _Best(NamedTuple):
    """The strongest partners so far, strongest first."""

    score: Tensor  # (n, k) squared correlation
    place: Tensor  # (n, k)
    least: Tensor  # (n,) size of the smallest correlation among them


def _strongest_pairs(columns: DeviceColumns, k: int) -> tuple[Tensor, Tensor]:
    """Return chi-square / N less its expectation, and place, of each column's `k` best partners."""
    torch = torch_module()
    n, device = columns.groups[0].n, columns.device.name
    p = (columns.shares[1::2].double() * columns.n_rows).round() / columns.n_rows
    spread = (p * (1 - p)).sqrt()
    shape = n, min(k, n - 1)
    best = _Best(
        torch.full(shape, -1.0, dtype=torch.float64, device=device),
        torch.full(shape, -1, dtype=torch.int64, device=device),
        torch.full((n,), torch.inf, device=device),
    )
    blocks = even_blocks(n)
    for own in blocks:
        _begin(columns, own, p, spread, best)
    for own in blocks:
        left = _standardised(columns, own, p, spread)
        for other in slices(own.stop, n, CELLS // len(left)):
            i, j = _hits(columns, left, own, _standardised(columns, other, p, spread), other, best)
            for at in slices(0, len(i), _BYTES // columns.n_rows):
                both = columns.codes[i[at]] & columns.codes[j[at]]
                shared = both.sum(1, dtype=torch.float64) / columns.n_rows - p[i[at]] * p[j[at]]
                value = (shared / (spread[i[at]] * spread[j[at]])).square_()
                _offer(best, i[at], j[at], value)
                _offer(best, j[at], i[at], value)
    found = best.place >= 0
    return torch.where(found, best.score - 1.0 / columns.n_rows, -torch.inf), best.place


def even_blocks(n: int) -> list[slice]:
    """Return `n` columns in blocks of about the same size."""
    count = max(1, n // BLOCK)
    return [slice(*ends) for ends in pairwise(n * b // count for b in range(count + 1))]


def _begin(columns: DeviceColumns, own: slice, p: Tensor, spread: Tensor, best: _Best) -> None:
    """Compare the columns of a block with each other."""
    shown = columns.show_states(slice(2 * own.start + 1, 2 * own.stop, 2))
    both = half_product(shown, shown).double() / columns.n_rows
    mine, size = p[own], spread[own]
    score = (both - mine[:, None] * mine).square_()
    score /= (size[:, None] * size).square_().clamp_(min=1e-30)
    score.fill_diagonal_(-1.0)
    score[size == 0] = score[:, size == 0] = -1.0  # a constant column depends on nothing
    k = min(best.score.shape[1], len(score) - 1)
    found, at = score.topk(k, 1)
    best.score[own, :k] = found
    best.place[own, :k] = torch_module().where(found >= 0, at + own.start, -1)
    best.least[own] = best.score[own, -1].clamp(min=0).sqrt().float()
    best.least[own][size == 0] = torch_module().inf


def _standardised(columns: DeviceColumns, own: slice, p: Tensor, spread: Tensor) -> Tensor:
    """Return columns of mean 0 and variance 1 in half precision, the rows padded with zeros."""
    torch = torch_module()
    mine = p[own, None]
    size = spread[own, None]
    scale = torch.where(size > 0, 1 / size.clamp(min=1e-30), 0)
    zero, one = ((x - mine) * scale for x in (0, 1))
    shown = columns.codes[own] == 1
    found = torch.where(shown, one.bfloat16(), zero.bfloat16())
    return torch.nn.functional.pad(found, (0, -found.shape[1] % _PADDED))


def _hits(
    columns: DeviceColumns, left: Tensor, own: slice, right: Tensor, other: slice, best: _Best
) -> tuple[Tensor, Tensor]:
    """Return the pairs that may be among the strongest of one of their ends."""
    torch = torch_module()
    found = torch.mm(left, right.T) if left.is_cuda else (left.float() @ right.float().T)
    found = found.abs_()
    mine, theirs = (best.least[at] * (_DOUBT * columns.n_rows) for at in (own, other))
    least = torch.minimum(mine.min(), theirs.min())
    i, j = (found > least).nonzero(as_tuple=True)
    kept = found[i, j] > torch.minimum(mine[i], theirs[j])
    return i[kept] + own.start, j[kept] + other.start


def _offer(best: _Best, target: Tensor, partner: Tensor, value: Tensor) -> None:
    """Let partners in that are stronger than the weakest so far; none of them is in already."""
    torch = torch_module()
    better = value > best.score[target, -1]
    target, partner, value = target[better], partner[better], value[better]
    if not len(target):
        return
    order = torch.argsort(value, descending=True, stable=True)
    order = order[torch.argsort(target[order], stable=True)]
    target, partner, value = target[order], partner[order], value[order]
    own, group, sizes = torch.unique_consecutive(target, return_inverse=True, return_counts=True)
    rank = torch.arange(len(target), device=target.device) - (sizes.cumsum(0) - sizes)[group]
    k = best.score.shape[1]
    first = rank < k
    group, rank = group[first], rank[first]
    score = torch.full((len(own), k), -1.0, dtype=value.dtype, device=value.device)
    place = torch.full((len(own), k), -1, dtype=torch.int64, device=value.device)
    score[group, rank], place[group, rank] = value[first], partner[first]
    found, at = torch.cat((best.score[own], score), 1).topk(k, 1)
    best.place[own] = torch.cat((best.place[own], place), 1).gather(1, at)
    best.score[own] = found
    best.least[own] = found[:, -1].clamp(min=0).sqrt().float()
