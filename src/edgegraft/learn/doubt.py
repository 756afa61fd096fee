"""When the rows hardly tell which columns are linked.

In a cold model columns are nearly settled by their neighbours. An edge has then so little
information of its own that many pairs nearly pass, and false ones stand in for true ones. Surveys
have many weak pairs that nearly pass too, but of columns that their neighbours do not settle: who
is linked is no question there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.objective.penalty import Penalty


@dataclass(frozen=True)
class _Rule:
    """When more pairs of settled columns nearly pass than chance explains, and which do."""

    #: of a column's variance, left by the model, below which its neighbours settle it: in cold
    #: models .0 to .1, of pairs that nearly pass in surveys and other real tables, where weak pairs
    #: nearly pass without any confusion, .3 to .7 (docs/decisions/015)
    settled: float = 0.25
    #: chance pairs of a column at the level where pairs nearly pass, as at the search's threshold:
    #: of `n` columns they are ``n / 2``, with a standard deviation of its root. Counted among the
    #: settled alone, which are few, one of three trees of 98 % copies is in doubt
    per_column: float = 1.0
    excess: float = 2.0  # standard deviations beyond chance: about one table in 40
    #: the same of rivals: each costs the tests of true edges information, so they are few
    rivals: float = 0.1
    rivals_settled: float = 0.35  # wider, as these decide of single edges: a glass's has .31
    significant: float = 0.05  # p-value that an edge needs beside rivals: the usual one of a test
    #: times as many violating pairs as beside the tree, from which the joint order is worse: star
    #: 13.6, common cause and chain 1.7 to 5.3; lattices .9 to 1.2 (docs/decisions/015)
    worse: float = 1.5

    def level(self, per_column: float, n: int) -> float:
        """Return the p-value below which chance has some of the pairs of each column."""
        return min(per_column / max(n - 1, 1), 1.0)

    def limit(self, n: int) -> float:
        """Return the number of pairs that chance explains."""
        mean = 0.5 * self.per_column * n
        return mean + self.excess * float(np.sqrt(mean))


RULE = _Rule()


def settled(left: Penalty, whole: Penalty, share: float, n: int) -> Mask:
    """Return which of `n` columns have less variance left than a share, by the noise of two fits.

    `whole` is the penalty by the margins, `left` has the noise that a model leaves.
    """
    if left.noise is None or whole.noise is None:
        return np.zeros(n, bool)
    return np.asarray(left.noise.spread**2 < share * whole.noise.spread**2)


def significant(edges: Edges, p_values: Floats, n_others: int) -> Mask:
    """Return which edges are significant beside pairs that nearly pass."""
    return np.asarray(p_values <= RULE.significant)
