"""What each row does to the estimate of a pair: effective scores in the conditionals of its ends.

    J = ([H^-1]_ww)^-1,      u_r = J [H^-1 psi_r]_w,      w* - w = J^-1 sum_r u_r  to first order

`H` is the information of a conditional and ``psi_r`` the score of row ``r``. Information and scores
of the two ends add up, as they do in the pseudolikelihood; other edges count as known up to their
own noise in the same conditional. The variance of a sum over rows is that of the rows or of their
clusters; what is asked of an estimate (an interval, a replicate, a difference of groups, the effect
of a row) is a product with these rows. Rows are only joined along what is asked: each end works on
distinct rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgegraft.conditional.conditional import Conditional
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.types import Floats


class End(NamedTuple):
    """A pair in the conditional of one of its ends."""

    given: Conditional
    directions: Floats  # (size, parameters) along which scores are effective: J [H^-1]_w
    information: Floats  # (size, size)
    estimate: Floats  # (size,)


@dataclass(frozen=True, eq=False)
class Influence:
    """Influence of rows on a pair's parameters, in the coordinates of the smaller index first."""

    rows: ConditionalRows
    ends: list[End]
    information: Floats  # (size, size)
    estimate: Floats  # (size,) parameters, of both ends by their information

    def along(self, slopes: Floats) -> Floats:
        """Return by how much each row moves linear functions of the estimate.

        `slopes` has a column for each function, the result too; rows that do not count have zeros.
        """
        asked = np.linalg.solve(self.information, slopes).T
        out = np.zeros((self.rows.n_rows, len(asked)))
        for end in self.ends:
            scores = end.given.rows_along(end.given.fit, asked @ end.directions)
            out += end.given.by_row(scores)
        return out

    @property
    def scores(self) -> Floats:
        """Effective scores: what each row adds to the information times the estimate."""
        return self.along(self.information)


def variance_of_sums(rows: ConditionalRows, values: Floats) -> Floats:
    """Return the variance of sums of values of rows, over rows or clusters."""
    if rows.survey is not None:
        weighted = values if rows.weights is None else rows.weights[:, None] * values
        return rows.survey.variance(np.asarray(rows.survey.sums(weighted, 0)))
    if rows.weights is None:
        return np.asarray(values.T @ values)
    factor = rows.weights**2 if rows.sampling else rows.weights
    return np.asarray((factor[:, None] * values).T @ values)


def influence_of(
    first: Conditional | None, second: Conditional | None, pair: tuple[int, int]
) -> Influence:
    """Return the influence of rows on a pair, given the conditionals of its ends that are usable.

    At least one must be.
    """
    i, j = pair
    ends = []
    for given, other in ((first, j), (second, i)):
        if given is None:
            continue
        cells = given.cells_of(other)
        if given is first:  # a conditional has the coordinates of the other end first
            cells = cells.reshape(-1, given.k).T.ravel()
        information = np.asarray(np.linalg.inv(given.inverse[np.ix_(cells, cells)]))
        directions = np.asarray(information @ given.inverse[cells])
        ends.append(End(given, directions, information, given.fit.theta[cells]))
    total = np.sum([end.information for end in ends], axis=0)
    pull = np.sum([end.information @ end.estimate for end in ends], axis=0)
    return Influence(ends[0].given.rows, ends, total, np.linalg.solve(total, pull))
