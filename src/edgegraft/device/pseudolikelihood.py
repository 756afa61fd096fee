"""Losses of all conditionals and sums of their residuals, by matrix products on a device.

With ``x`` the zeros and ones of all states and ``w`` the tables of all edges as one matrix, all
logits are ``w x``, a sparse matrix times a dense one; the sums of residuals of pairs are read off,
or computed like, ``r x'`` (:mod:`edgegraft.device.pair_sums`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats
from edgegraft.device import pair_sums
from edgegraft.device.columns import DeviceColumns, Step, columns_on
from edgegraft.device.device import EdgeMatrix, Tensor, to_host, torch_module
from edgegraft.device.pair_sums import PairTablesOnDevice, worth_all
from edgegraft.table.blocks import TableRows


class _Graph:
    """The logits of a graph's conditionals, at parameters to be given."""

    def __init__(self, columns: DeviceColumns, layout: Layout) -> None:
        self.layout, self._size = layout, columns.n_states
        places = columns.places(layout.node_offset)
        self._nodes = columns.device.put(np.argsort(places))
        row, column = (places[ends] for ends in layout.cell_ends())
        self._edges = EdgeMatrix(row, column, self._size, columns.device)

    def logits(self, theta: Tensor, shown: Tensor) -> Tensor:
        nodes, tables = theta[: self._size][self._nodes, None], theta[self._size :]
        if not len(tables):
            return nodes.repeat(1, shown.shape[1])
        found = self._edges.times(self._edges.values(tables), shown)
        found += nodes
        return found


class _Point:
    """The loss at one point, and what the sums of any pairs' residuals are made of."""

    def __init__(self, columns: DeviceColumns, graph: _Graph, theta: Floats) -> None:
        torch = torch_module()
        self.columns, self.graph, self.at = columns, graph, theta.copy()
        self._theta = columns.device.put(theta).to(columns.dtype)
        losses, nodes = [], []
        self.residuals: Tensor | None = None
        self.whole: Tensor | None = None
        tables = PairTablesOnDevice(columns, graph.layout.edges, graph.layout.states, both=True)
        dense = columns.n_states <= pair_sums.DENSE_STATES
        for step in columns.steps():
            left, loss = _residuals(columns, graph.logits(self._theta, step.shown), step)
            losses.append(loss)
            nodes.append(left.sum(1, dtype=torch.float64))
            if dense:
                self._multiply(left, step.shown)
            else:
                tables.add(left, step.shown)
            if columns.whole:
                self.residuals = left
        self.losses, self.nodes = torch.stack(losses).sum(0), torch.stack(nodes).sum(0)
        if dense:
            tables.read(self.whole)
        self._tables = tables

    def gradient(self) -> Floats:
        """Return the sums of residuals, laid out like the parameters."""
        places = self.columns.places(self.graph.layout.node_offset)
        nodes = to_host(self.nodes)[places]
        return np.concatenate((nodes, self._tables.tables()))

    def scores(self, edges: Edges) -> Floats:
        """Return the sums of both residuals of pairs, table after table."""
        states = self.graph.layout.states
        out = PairTablesOnDevice(self.columns, edges, states, both=True)
        if self.whole is None and worth_all(self.columns, edges, states):
            for step, left in self.again():
                self._multiply(left, step.shown)
        if self.whole is not None:
            out.read(self.whole)
        else:
            for step, left in self.again():
                out.add(left, step.shown)
        return out.tables()

    def again(self) -> Iterator[tuple[Step, Tensor]]:
        """Yield the residuals of all rows once more."""
        for step in self.columns.steps():
            left = self.residuals
            if left is None:
                logits = self.graph.logits(self._theta, step.shown)
                left = _residuals(self.columns, logits, step)[0]
            yield step, left

    def _multiply(self, left: Tensor, right: Tensor) -> None:
        product = left @ right.T
        self.whole = product if self.whole is None else self.whole.double() + product


def _residuals(columns: DeviceColumns, logits: Tensor, step: Step) -> tuple[Tensor, Tensor]:
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


def evaluate_on_device(
    block: TableRows, theta: Floats, layout: Layout, dtype: type[np.floating], scale: float
) -> Floats:
    """Return the summed losses of each variable, then `scale` times the sums of residuals."""
    columns = columns_on(block, dtype)
    point = point_at(block, columns, theta, layout)
    losses = columns.in_order(point.losses)
    return np.concatenate((losses, scale * point.gradient()))


def score_on_device(
    block: TableRows, theta: Floats, layout: Layout, edges: Edges, dtype: type[np.floating]
) -> Floats:
    """Return the sums of a block's residuals for pairs, table after table."""
    return point_at(block, columns_on(block, dtype), theta, layout).scores(edges)


def point_at(block: TableRows, columns: DeviceColumns, theta: Floats, layout: Layout) -> _Point:
    """Return the loss at a point; the last point of a block is kept with its residuals."""
    last: list[_Point] = block.derive(("last point", columns.dtype), lambda _: [])
    graph = None
    if last and np.array_equal(last[0].graph.layout.edges, layout.edges):
        if np.array_equal(last[0].at, theta):
            return last[0]
        graph = last[0].graph
    last.clear()  # its memory is for the next
    last.append(_Point(columns, graph or _Graph(columns, layout), theta))
    return last[0]
