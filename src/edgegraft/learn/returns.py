"""Pairs that the search activates and the fit sets back to zero, over and over.

A pair outside the model and an edge inside it may be judged by different approximations: belief
propagation with linear response scores pairs by how beliefs respond, and edges by their messages.
A pair may then violate optimality from outside while its edge, once active, is best left at zero.
Nothing has changed after its return, so it violates again, and the search would never end. A pair
that returned `MOST` times, without the fit having moved anything, is given up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Edges

MOST = 3


class Returns:
    """How often pairs were set back to zero at parameters that did not change.

    Examples
    --------
    >>> returns = Returns()
    >>> for _ in range(MOST):
    ...     returns.add(np.array([(0, 3)]))
    >>> returns.given_up(np.array([(0, 1), (0, 3)]))
    array([False,  True])
    """

    def __init__(self) -> None:
        self._times: dict[tuple[int, int], int] = {}

    def add(self, edges: Edges) -> None:
        """Count a return of each pair."""
        for i, j in edges.tolist():
            self._times[i, j] = self._times.get((i, j), 0) + 1

    def given_up(self, edges: Edges) -> NDArray[np.bool_]:
        """Tell which pairs are not to be activated again."""
        if not self._times:
            return np.zeros(len(edges), bool)
        times = [self._times.get((i, j), 0) for i, j in edges.tolist()]
        return np.array(times, np.int64).reshape(-1) >= MOST

    def pairs(self) -> Edges:
        """Return all pairs that ever returned."""
        return np.array(list(self._times), np.int64).reshape(-1, 2)

    def state(self) -> dict[str, NDArray[np.int64]]:
        """Return arrays from which :meth:`from_state` makes it again."""
        return {"pairs": self.pairs(), "times": np.array(list(self._times.values()), np.int64)}

    @classmethod
    def from_state(cls, state: dict[str, NDArray[np.int64]]) -> Returns:
        """Return what :meth:`state` was taken of."""
        found = cls()
        pairs = (tuple(pair) for pair in state["pairs"].tolist())
        found._times = dict(zip(pairs, state["times"].tolist(), strict=True))
        return found
