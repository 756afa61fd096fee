"""Gibbs chains on a device: all chains at once, and all variables that are not neighbours.

The state of all chains is one array of zeros and ones, a row per state of a variable and a column
per chain. Variables are ordered by colour, no two neighbours having the same, so the conditionals
of a colour are one matrix product. A state is drawn as the largest of logits with Gumbel noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.types import Floats, Integers
from edgegraft.device.columns import Placement
from edgegraft.device.device import Device, Tensor, to_host, torch_module

_FORBIDDEN = -1e4  # log-potential of what is impossible: finite, and below all noise
_MIN_NOISE = 1e-30  # of an exponential draw, whose logarithm is taken


class DeviceChains:
    """Chains of a model on a device, from the states `start`, shape (n, n_chains).

    The same seed gives the same chains on the same device.
    """

    n_rescued = 0  # updates whose products underflowed: here nothing is multiplied

    def __init__(self, layout: Layout, device: Device, start: NDArray[np.uint16], seed: int):
        torch = torch_module()
        self.layout, self.device, self.n_chains = layout, device, start.shape[1]
        states, total = layout.states, int(layout.node_offset[-1])
        device.check(6.0 * total * self.n_chains * 4, "the chains")
        self._placement = placement = Placement(states, colours_of(layout))
        places = placement.places(layout.node_offset)
        self._nodes = device.put(places)
        row, column = (places[ends] for ends in layout.cell_ends())
        self._row, self._column = device.put(row), device.put(column)
        self._weights = torch.zeros(total, total, device=device.name)  # of all edges, symmetric
        self._bias = torch.zeros(total, 1, device=device.name)
        self._beta = torch.ones((), device=device.name)
        self._generator = torch.Generator(device.name).manual_seed(seed)
        self._graph: Any = None  # operations of a sweep, to be replayed
        self._shown = torch.zeros((total, self.n_chains), device=device.name)
        at = device.put(placement.start[:, None] + start.astype(np.int64))
        self._shown.scatter_(0, at, 1.0)

    def load(self, theta: Floats) -> None:
        """Take other parameters."""
        self._put(theta, self._bias, self._weights)

    def _put(self, theta: Floats, nodes: Tensor, weights: Tensor) -> None:
        """Write parameters in the order of the states here."""
        values = self.device.put(np.maximum(theta, _FORBIDDEN).astype(np.float32))
        n_nodes = len(self._nodes)
        nodes[self._nodes, 0] = values[:n_nodes]
        weights[self._row, self._column] = weights[self._column, self._row] = values[n_nodes:]

    def sweep(self, n_sweeps: int, beta: float = 1.0) -> None:
        """Draw every variable of every chain anew, edge terms counting `beta` times."""
        self._beta.fill_(beta)
        left = n_sweeps
        if left and self._graph is None and self.device.is_gpu:
            self._record()  # which takes a sweep
            left -= 1
        for _ in range(left):
            if self._graph is None:
                self._sweep_once()
            else:
                self._graph.replay()

    def means(self, weights: Floats) -> Floats:
        """Return the means over chains of all indicators times a weight, laid out like `theta`."""
        torch = torch_module()
        factor = self.device.put((weights / self.n_chains).astype(np.float32))
        shown = self._shown
        pairs = ((shown * factor) @ shown.T)[self._row, self._column]
        return to_host(torch.cat(((shown @ factor)[self._nodes], pairs)))

    def record(self, draws: NDArray[Any], thinning: int) -> None:
        """Fill `draws`, shape (n, records, n_chains), with states `thinning` sweeps apart."""
        for record in range(draws.shape[1]):
            self.sweep(thinning)
            draws[:, record] = self.codes()

    def observe(self, draws: NDArray[Any], thinning: int) -> Floats:
        """Do the same, and return marginals: shares of these states."""
        shares, n_records = np.zeros(self.layout.n_parameters), draws.shape[1]
        for record in range(n_records):
            self.record(draws[:, record : record + 1], thinning)
            shares += self.means(np.ones(self.n_chains)) / n_records
        return shares

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` in the state of each chain."""
        nodes, weights = (torch_module().zeros_like(own) for own in (self._bias, self._weights))
        self._put(theta, nodes, weights)
        return self._sums((weights @ self._shown).mul_(0.5).add_(nodes))

    def edge_terms(self) -> Floats:
        """Return the sum of the edges' log-potentials in the state of each chain."""
        return self._sums(self._weights @ self._shown) / 2

    def _sums(self, terms: Tensor) -> Floats:
        return to_host(terms.mul_(self._shown).sum(0, dtype=torch_module().float64))

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of all chains, shape (n, n_chains)."""
        found = np.empty((self.layout.n_variables, self.n_chains), np.uint16)
        at = 0
        for group in self._placement.groups:
            own = self._placement.order[at : at + group.n]
            found[own] = group.of(self._shown).argmax(1).cpu().numpy()
            at += group.n
        return found

    def _sweep_once(self) -> None:
        torch = torch_module()
        for group in self._placement.groups:
            logits = self._weights[group.rows] @ self._shown
            logits.mul_(self._beta).add_(self._bias[group.rows])
            noise = torch.empty_like(logits).exponential_(generator=self._generator)
            logits -= noise.clamp_(min=_MIN_NOISE).log_()
            picked = logits.view(group.n, group.states, -1).argmax(1, keepdim=True)
            group.of(self._shown).zero_().scatter_(1, picked, 1.0)

    def _record(self) -> None:
        """Sweep once, and record the operations to be replayed: their start is most of the time."""
        torch = torch_module()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._sweep_once()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        self._graph.register_generator_state(self._generator)
        with torch.cuda.graph(self._graph):
            self._sweep_once()


def colours_of(layout: Layout) -> Integers:
    """Return a colour per variable such that neighbours differ, variables of high degree first.

    >>> colours_of(Layout([2, 2, 2], [(0, 1), (1, 2)])).tolist()
    [1, 0, 1]
    """
    near = neighbours_of(layout)
    colour = np.full(layout.n_variables, -1, np.int64)
    for i in np.argsort(-np.diff(near.start), kind="stable"):
        taken = np.unique(colour[near.other[near.start[i] : near.start[i + 1]]])
        taken = taken[taken >= 0]
        gap = np.flatnonzero(taken != np.arange(len(taken)))
        colour[i] = gap[0] if len(gap) else len(taken)
    return colour
