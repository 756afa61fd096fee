"""How much each row moves each effect, from which all resampling of a fixed network follows.

An effect is, to first order, a sum over rows of what each adds (:mod:`~edgegraft.learn.effects`).
So an effect on other rows, or on rows with other weights, is one product of matrices away, with
the information of all rows.
"""

from __future__ import annotations

import numpy as np

from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.types import Floats, Integers
from edgegraft.learn.effects import edge_effects, effect_changes
from edgegraft.model import PairwiseMRF


class RowInfluence:
    """Influence of rows on the effects of a model's edges.

    `clusters` are numbers of the rows' clusters, which are resampled and dropped as a whole.

    Attributes
    ----------
    effect : array of float, shape (m,)
        Those of the model's edge columns if it has them, otherwise of the model in these rows.
    rows : array of float, shape (n_rows or clusters, m)
        What a row, or a cluster, adds to each effect; the columns add up to zero.
    """

    def __init__(
        self,
        model: PairwiseMRF,
        rows: ConditionalRows,
        n_jobs: int = 1,
        clusters: Integers | None = None,
    ) -> None:
        own = edge_effects(model, rows, n_jobs=n_jobs).effect
        known = dict(model.edge_columns).get("effect", own)
        self.effect = np.where(np.isnan(known), own, known)
        self.rows = np.nan_to_num(effect_changes(model, rows, n_jobs))
        weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        if clusters is None:  # the square of a row that counts as several is their sum of squares
            self.rows *= (weights if rows.sampling else np.sqrt(weights))[:, None]
        else:
            sums = np.zeros((int(clusters.max()) + 1, model.n_edges))
            np.add.at(sums, clusters, self.rows * weights[:, None])
            self.rows = sums
        self.rows -= self.rows.mean(axis=0)

    @property
    def error(self) -> Floats:
        """Standard errors of the effects."""
        return np.asarray(np.sqrt(np.square(self.rows).sum(axis=0)))

    def resampled(self, n: int, rng: np.random.Generator) -> Floats:
        """Return the effects on `n` bootstrap samples."""
        size = self.rows.shape[0]
        counts = rng.multinomial(size, np.full(size, 1.0 / size), n)
        return self.effect + counts @ self.rows

    def without(self, share: float, n: int, rng: np.random.Generator) -> Floats:
        """Return the effects on `n` random subsets of the rows, without this share of them."""
        size = self.rows.shape[0]
        kept = max(2, round((1.0 - share) * size))
        masks = np.zeros((n, size))
        for row in masks:
            row[rng.permutation(size)[:kept]] = size / kept
        return self.effect + masks @ self.rows

    def differences(self) -> tuple[Floats, Floats]:
        """Return how much larger each effect is than each other, by size, with standard errors."""
        size, rows = np.abs(self.effect), self.rows * np.sign(self.effect)
        spread = rows.T @ rows
        own = np.diag(spread)
        error = np.sqrt(np.maximum(own[:, None] + own - 2.0 * spread, 0.0))
        return size[:, None] - size, np.asarray(error)
