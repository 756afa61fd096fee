"""What each row does to the estimate of a pair: effective scores in the conditionals of its ends.

    J = ([H^-1]_ww)^-1,      u_r = J [H^-1 psi_r]_w,      w* - w = J^-1 sum_r u_r  to first order

`H` is the information of a conditional and ``psi_r`` the score of row ``r``. Information and scores
of the two ends add up, as they do in the pseudolikelihood; other edges count as known up to their
own noise in the same conditional. The variance of a sum of scores is that of the model, of the rows
or of their clusters; what is asked of an estimate (an interval, a replicate, a difference of groups,
the effect of a row) is a product with these rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.conditional.conditional import Conditional
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.types import Floats


class Influence(NamedTuple):
    """Effective scores of a pair's parameters, in the coordinates of the smaller index first."""

    rows: ConditionalRows
    scores: Floats  # (rows, size); zero for rows that do not count
    information: Floats  # (size, size)
    estimate: Floats  # (size,) parameters, of both ends by their information

    def variance(self) -> Floats:
        """Return the variance of the sum of the scores, over rows or clusters."""
        rows = self.rows
        if rows.survey is not None:
            weighted = self.scores if rows.weights is None else rows.weights[:, None] * self.scores
            return rows.survey.variance(np.asarray(rows.survey.sums(weighted, 0)))
        if rows.weights is None:
            return np.asarray(self.scores.T @ self.scores)
        factor = rows.weights**2 if rows.sampling else rows.weights
        return np.asarray((factor[:, None] * self.scores).T @ self.scores)

    def covariance(self) -> Floats:
        """Return the covariance of the estimate."""
        inverse = np.linalg.inv(self.information)
        return np.asarray(inverse @ self.variance() @ inverse)

    def replicate(self, weights: Floats) -> Floats:
        """Return the sums of the scores under other row weights, one row of them each."""
        return np.asarray(weights @ self.scores)


def influence_of(
    first: Conditional | None, second: Conditional | None, pair: tuple[int, int]
) -> Influence:
    """Return the influence of rows on a pair, given the conditionals of its ends that are usable."""
    i, j = pair
    parts = []
    for given, other in ((first, j), (second, i)):
        if given is None:
            continue
        cells = given.cells_of(other)
        if given is first:  # a conditional has the coordinates of the other end first
            cells = cells.reshape(-1, given.k).T.ravel()
        information = np.linalg.inv(given.inverse[np.ix_(cells, cells)])
        directions = information @ given.inverse[cells]
        parts.append((given, information, directions, given.fit.theta[cells]))
    rows = parts[0][0].rows
    scores = np.zeros((rows.n_rows, len(parts[0][3])))
    for given, _, directions, _ in parts:
        scores += given.by_row(given.rows_along(given.fit, directions))
    total = np.sum([information for _, information, _, _ in parts], axis=0)
    pull = np.sum([information @ w for _, information, _, w in parts], axis=0)
    return Influence(rows, scores, total, np.linalg.solve(total, pull))
