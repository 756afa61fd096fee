"""Products of indicators and residuals of all rows: counts, losses and scores of pairs.

With ``x`` the zeros and ones of all states, ``W`` the tables of all edges as one symmetric matrix
and ``u`` the node vectors,

    counts = x x',    logits = W x + u,    residuals r = x - p,    scores = r x' + (r x')'

are products of whole arrays, and pairs are read off them. Products with a sparse ``W``, or of some
pairs alone, were a second path for tables of many states; those go to the processor, where the
conditionals of few neighbours are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats
from edgegraft.device.columns import EXACT_ROWS, DeviceColumns, Step, columns_on
from edgegraft.device.device import Device, Tensor, to_host, torch_module
from edgegraft.table.blocks import TableRows


def count(device: Device, block: TableRows, edges: Edges) -> NDArray[Any]:
    """Return the tables of pairs, one after another."""
    columns = columns_on(device, block)
    whole = block.derive((device, "counts"), lambda _: _counts(columns))
    tables = to_host(whole.view(-1)[columns.cells(edges)])
    return np.rint(tables).astype(np.int64) if block.weights is None else tables


def _counts(columns: DeviceColumns) -> Tensor:
    """Return the counts of all pairs of states.

    Without weights they are exact in half precision with sums in single precision, as GPUs have it.
    """
    torch = torch_module()
    plain = columns.weights is None and columns.device.is_gpu
    total = None
    for step in columns.steps(torch.bfloat16 if plain else torch.float64, EXACT_ROWS):
        left = step.shown if step.weights is None else step.shown * step.weights
        product = half_product(left, step.shown) if plain else left @ step.shown.T
        total = product.double() if total is None else total + product
    return total


def half_product(left: Tensor, right: Tensor) -> Tensor:
    """Return ``left right'`` of arrays in half precision, with sums in single precision."""
    if left.is_cuda:
        return torch_module().mm(left, right.T, out_dtype=torch_module().float32)
    return left.float() @ right.float().T


class Point:
    """The loss at one point, and the sums of all pairs' residuals."""

    def __init__(self, columns: DeviceColumns, theta: Floats, layout: Layout, dtype: Any) -> None:
        torch = torch_module()
        self.columns, self.layout, self.theta = columns, layout, theta.copy()
        parameters = columns.device.put(theta).to(dtype)
        n_nodes, size = int(layout.node_offset[-1]), columns.n_states
        nodes = parameters.new_empty(size, 1)
        self._nodes = columns.device.put(columns.places(layout.node_offset))
        nodes[self._nodes, 0] = parameters[:n_nodes]
        tables = parameters.new_zeros(size, size)
        self._cells = columns.cells(layout.edges)
        tables.view(-1)[self._cells] = parameters[n_nodes:]
        tables = tables + tables.T
        self.losses = self.node_sums = self.pair_sums = torch.zeros(
            (), dtype=torch.float64, device=columns.device.name
        )
        for step in columns.steps(dtype):
            residuals, losses = residuals_of(columns, tables @ step.shown + nodes, step)
            self.losses = self.losses + losses
            self.node_sums = self.node_sums + residuals.sum(1, dtype=torch.float64)
            self.pair_sums = self.pair_sums + (residuals @ step.shown.T).double()
        self.pair_sums = self.pair_sums + self.pair_sums.T

    def gradient(self) -> Floats:
        """Return the sums of residuals, laid out like the parameters."""
        tables = self.pair_sums.view(-1)[self._cells]
        return to_host(torch_module().cat((self.node_sums[self._nodes], tables)))


def residuals_of(columns: DeviceColumns, logits: Tensor, step: Step) -> tuple[Tensor, Tensor]:
    """Return the residuals of all states, in place of the logits, and the loss of each variable."""
    torch = torch_module()
    losses = []
    for group in columns.groups:
        z, shown = group.of(logits), group.of(step.shown)
        log_p = torch.log_softmax(z, 1)
        right = (shown * log_p).sum(1)
        p = log_p.exp_()
        if not columns.complete:
            p *= shown.sum(1, keepdim=True)
        torch.sub(shown, p, out=z)
        if step.weights is not None:
            right *= step.weights
            z *= step.weights
        losses.append(-right.sum(1, dtype=torch.float64))
    return logits, torch.cat(losses)


def evaluate(
    device: Device,
    block: TableRows,
    theta: Floats,
    layout: Layout,
    dtype: type[np.floating],
    scale: float,
) -> Floats:
    """Return the summed losses of each variable, then `scale` times the sums of residuals."""
    point = _point_at(device, block, theta, layout, dtype)
    losses = np.empty(layout.n_variables)
    losses[point.columns.order] = to_host(point.losses)
    return np.concatenate((losses, scale * point.gradient()))


def score(
    device: Device,
    block: TableRows,
    theta: Floats,
    layout: Layout,
    edges: Edges,
    dtype: type[np.floating],
) -> Floats:
    """Return the sums of a block's residuals for pairs, table after table."""
    point = _point_at(device, block, theta, layout, dtype)
    return to_host(point.pair_sums.view(-1)[point.columns.cells(edges)])


def _point_at(
    device: Device, block: TableRows, theta: Floats, layout: Layout, dtype: type[np.floating]
) -> Point:
    """Return the loss at a point; the last point of a block is kept."""
    torch = torch_module()
    last: list[Point] = block.derive((device, "last point", dtype), lambda _: [])
    if (
        last
        and np.array_equal(last[0].theta, theta)
        and np.array_equal(last[0].layout.edges, layout.edges)
    ):
        return last[0]
    last.clear()  # its memory is for the next
    precision = torch.float32 if dtype == np.float32 else torch.float64
    last.append(Point(columns_on(device, block), theta, layout, precision))
    return last[0]
