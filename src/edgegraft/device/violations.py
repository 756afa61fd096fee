"""Pairs of two-state columns whose score may exceed a level, each pair compared once.

With ``r_i`` the residuals of a column's second state, ``x_i`` its cells less their mean and ``f_i``
a factor, the norm of a pair's gradient over ``f_i f_j`` is

    2 |sum (r_i x_j + x_i r_j)| / (f_i f_j N)

if all residuals of a column add up to zero. All pairs are products in half precision. What rounding
(by Cauchy and Schwarz) and sums that are not quite zero can add to them is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats
from edgegraft.device.columns import columns_on
from edgegraft.device.device import Tensor, half_product, slices, torch_module
from edgegraft.device.partners import CELLS, even_blocks
from edgegraft.device.pseudolikelihood import point_at
from edgegraft.table.blocks import TableRows

_ROWS = 8192  # of a product: their number bounds the error of its sums
_HALF, _SUM = 2.0**-11, 2.0**-23  # relative errors of a number and of an addition


def suits_violations(block: TableRows) -> bool:
    """Return whether a block is on a device, complete, and of two-state columns alone."""
    table = block.table
    two = bool((np.asarray(block.schema.n_states) == 2).all())
    return block.device is not None and two and not table.n_missing.any()


def pairs_that_may_exceed(
    block: TableRows,
    theta: Floats,
    layout: Layout,
    factors: Floats,
    level: Callable[[], float],
    dtype: type[np.floating],
) -> Iterator[Edges]:
    """Yield all pairs, edges too, whose gradient's norm over both `factors` may exceed the level.

    The norm is that of the mean loss. `level` is asked again for every tile of pairs.
    """
    tiles = _Tiles(block, theta, layout, factors, dtype)
    for own in even_blocks(layout.n_variables):
        mine = tiles.cells(own)
        for other in slices(own.start, layout.n_variables, CELLS // len(mine)):
            yield tiles.above(own, mine, other, level())


class _Tiles:
    """Residuals of all columns on the device, and their products with the cells of others."""

    def __init__(
        self,
        block: TableRows,
        theta: Floats,
        layout: Layout,
        factors: Floats,
        dtype: type[np.floating],
    ) -> None:
        torch = torch_module()
        self._columns = columns = columns_on(block, dtype)
        self._total, n, n_rows = block.weight, layout.n_variables, columns.n_rows
        self._factor = columns.device.put(factors[columns.order])[:, None]
        self._mean = columns.shares[1::2, None].double()
        columns.device.check(2.0 * n * n_rows, "residuals of all columns")
        self._left = torch.empty((n, n_rows), dtype=torch.float16, device=columns.device.name)
        sums, first = torch.zeros((n, 1), dtype=torch.float64, device=self._left.device), 0
        for step, residuals in point_at(block, columns, theta, layout).again():
            own, rows = residuals[1::2], slice(first, first + step.shown.shape[1])
            self._left[:, rows] = (own / self._factor).half()
            sums += own.sum(1, keepdim=True, dtype=torch.float64)
            first = rows.stop
        share = 2 * _HALF + 2 * _SUM * (min(_ROWS, n_rows) + n_rows / _ROWS)
        norms = self._mean * (1 - self._mean) * n_rows / self._factor**2
        left = torch.linalg.vector_norm(self._left, dim=1, keepdim=True, dtype=torch.float32)
        #: Two products of columns that bound what a pair's sum may be off by.
        self._errors = (
            (2.0 * sums.abs() / self._factor, 1 / self._factor),
            (share * left.double(), norms.sqrt()),
        )

    def cells(self, own: slice) -> Tensor:
        """Return the cells of some columns less their mean, over the factor, in half precision."""
        zero, one = (((x - self._mean[own]) / self._factor[own]).half() for x in (0, 1))
        return torch_module().where(self._columns.codes[own] == 1, one, zero)

    def above(self, own: slice, mine: Tensor, other: slice, level: float) -> Edges:
        """Return the pairs of two slices that may exceed the level, none of them twice."""
        torch = torch_module()
        left = self._left
        factors = (left[own], self.cells(other)), (mine, left[other])
        found = torch.zeros((len(mine), other.stop - other.start), device=left.device)
        for rows in slices(0, left.shape[1], _ROWS):
            for a, b in factors:
                found += half_product(a[:, rows], b[:, rows])
        found.abs_()
        for u, v in self._errors:
            for a, b in ((u, v), (v, u)):
                found.addr_(a[own, 0].float(), b[other, 0].float())
        i, j = (found > 0.5 * level * self._total).nonzero(as_tuple=True)
        i, j = i + own.start, j + other.start
        places = torch.stack((i, j), 1)[i < j].cpu().numpy()
        return np.asarray(np.sort(self._columns.order[places], axis=1))
