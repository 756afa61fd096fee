"""A judge of edges: copy this file, and replace the statistic.

A judge answers ``ask(network, pairs)`` with a `Verdict` on each pair given the other neighbours of
its ends; `dismiss` and `admit` of :mod:`edgegraft.conditional.admission` need nothing else. This
one tests the partial correlation of the codes, so it sees linear dependence alone. It takes part in
``tests/protocol/test_judges.py``, as yours should.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from edgegraft.conditional.judge import UNTESTABLE, Network, Pair, Verdict
from edgegraft.core.types import Floats


class PartialCorrelation:
    """Verdicts by the partial correlation of two columns given the neighbours of one of them."""

    def __init__(self, codes: Floats) -> None:
        self.codes = codes - codes.mean(axis=0)

    def ask(self, network: Network, pairs: list[Pair]) -> list[Verdict]:
        """Return verdicts on edges of a network, or on pairs as additions, each by itself."""
        return [self._verdict(network, pair) for pair in pairs]

    def _verdict(self, network: Network, pair: Pair) -> Verdict:
        target = min(pair, key=lambda v: (len(network.beside[v]), v))
        given = self.codes[:, sorted(network.beside[target] - set(pair))]
        n_rows, n_given = given.shape
        if n_rows <= n_given + 3:
            return UNTESTABLE  # a verdict without information, which passes no cut
        ends = self.codes[:, list(pair)]
        ends = ends - given @ np.linalg.lstsq(given, ends)[0]
        norms = np.linalg.norm(ends, axis=0)
        if not norms.all():
            return UNTESTABLE
        r = float(np.clip(ends[:, 0] @ ends[:, 1] / norms.prod(), -1, 1))
        statistic = -(n_rows - n_given - 3) * float(np.log1p(-min(r * r, 1 - 1e-15)))
        return Verdict(statistic, 1, float(chdtrc(1, statistic)))
