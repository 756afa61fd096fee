"""Where sums over rows, and chains, can be computed instead of the processor's kernels.

A backend is found by the name that ``device=`` has, at the plug-in point ``backends``
(:mod:`edgegraft.plugins`). It has three operations: products of indicators and residuals of all
rows, the penalised fit of all pairs, and chains. All that asks for them goes by this protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegraft import plugins
from edgegraft.core.layout import Layout
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import SettingError

if TYPE_CHECKING:
    from edgegraft.table.blocks import TableRows


class MovedChains(Protocol):
    """Chains of one model, a state of every variable for each, and products of their indicators."""

    n_rescued: int  #: updates that were computed in logarithms

    def load(self, theta: Floats) -> None:
        """Take other parameters."""

    def sweep(self, n_sweeps: int, beta: float = 1.0) -> None:
        """Draw every variable of every chain anew, edge terms counting `beta` times."""

    def codes(self) -> NDArray[np.uint16]:
        """Return the states of all chains, shape (n, n_chains)."""

    def record(self, draws: NDArray[Any], thinning: int) -> None:
        """Fill `draws`, shape (n, records, n_chains), with states `thinning` sweeps apart."""

    def observe(self, draws: NDArray[Any], thinning: int) -> Floats:
        """Do the same, and return marginals."""

    def means(self, weights: Floats) -> Floats:
        """Return the means over chains of all indicators times a weight, laid out like `theta`."""

    def energies(self, theta: Floats) -> Floats:
        """Return the log-potential `theta` in the state of each chain."""

    def edge_terms(self) -> Floats:
        """Return the sum of the edges' log-potentials in the state of each chain."""


class Backend(Protocol):
    """The operations that a device has."""

    @property
    def is_gpu(self) -> bool:
        """Whether many chains take no longer than few."""

    def holds(self, n_states: int) -> bool:
        """Return whether products of all pairs of these states fit the memory.

        If not, pairs are counted and scored by the processor's kernels.
        """

    def count(self, block: TableRows, edges: Edges) -> NDArray[Any]:
        """Return the tables of pairs, one after another."""

    def evaluate(
        self,
        block: TableRows,
        theta: Floats,
        layout: Layout,
        dtype: type[np.floating],
        scale: float,
    ) -> Floats:
        """Return the summed losses of all conditionals, then `scale` times sums of residuals."""

    def score(
        self,
        block: TableRows,
        theta: Floats,
        layout: Layout,
        edges: Edges,
        dtype: type[np.floating],
    ) -> Floats:
        """Return the sums of the residuals of pairs, table after table."""

    def partners(self, block: TableRows, k: int) -> tuple[NDArray[np.int64], Floats] | None:
        """Return the `k` strongest partners of each variable and their dependence, in no order.

        None if all pairs of such rows cannot be compared here.
        """

    def fit_pairs(self, block: TableRows, threshold: Floats) -> Floats | None:
        """Return the strength of every pair in the penalised fit of all pairs.

        Strengths and the `threshold` of each table's norm have shape (n, n). A strength is above
        one if the fit gives the pair an edge. None if the rows, or all pairs, do not fit.
        """

    def chains(self, layout: Layout, start: NDArray[np.uint16], seed: int) -> MovedChains:
        """Return chains of a model in the states `start`, shape (n, n_chains)."""


def find_backend(device: str) -> Backend | None:
    """Return the backend of a name; None for the processor with kernels of its own, "cpu".

    >>> find_backend("cpu") is None
    True
    """
    if device == "cpu":
        return None
    find = plugins.find("backends", device)
    if find is None:
        known = ", ".join(map(repr, ["cpu", *plugins.names("backends")]))
        raise SettingError("device", f"must be one of {known}, found {device!r}")
    backend: Backend | None = find(device)
    return backend
