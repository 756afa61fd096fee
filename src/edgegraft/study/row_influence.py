"""How much each row moves each effect, from which all resampling of a fixed network follows.

The weights of an edge are, to first order, its sensitivity times the sum of the rows' effective
scores (:mod:`~edgegraft.study.group_scores`, all rows being one group). So an effect on other rows,
or on rows with other weights, is one product of matrices away, with the information of all rows.
"""

from __future__ import annotations

import numpy as np

from edgegraft.core.types import Floats, Integers
from edgegraft.learn.weighting import Weighting
from edgegraft.model import PairwiseMRF
from edgegraft.study.group_fit import JointModel
from edgegraft.study.group_rows import GroupRows, features_of
from edgegraft.study.group_scores import GroupScores
from edgegraft.table import PackedTable


class RowInfluence:
    """Influence of rows on the effects of a model's edges.

    Parameters
    ----------
    model : PairwiseMRF
        With the effects of its edges (`edge_columns`), or without.
    table : PackedTable
        Under the schema of the model.
    weighting : Weighting, optional
        A row that counts as several is as certain as these.
    n_jobs : int
    clusters : array of int, optional
        The cluster of each row, from 0: clusters are resampled and dropped as a whole.

    Attributes
    ----------
    effect : array of float, shape (m,)
        Those of the model's edge columns if it has them, otherwise of a fit without a ridge.
    rows : array of float, shape (n_rows or clusters, m)
        What a row, or a cluster, adds to each effect; the columns add up to zero.
    """

    def __init__(
        self,
        model: PairwiseMRF,
        table: PackedTable,
        weighting: Weighting | None = None,
        n_jobs: int = 1,
        clusters: Integers | None = None,
    ) -> None:
        n = table.n_rows
        base, sampling = (np.ones(n), False) if weighting is None else weighting
        given = GroupRows(table, ("all",), np.zeros(n, np.int64), base, False, None)
        features = features_of(given)
        fit = JointModel(given, features, model.edges, n_jobs)
        scores = GroupScores(given, features, fit.fit(np.ones(model.n_edges, bool)), n_jobs)
        self.effect, self.rows = np.zeros(model.n_edges), np.zeros((n, model.n_edges))
        for chosen, batch in scores.batches():
            for k, (own,) in zip(chosen.tolist(), batch, strict=True):
                if own is None:
                    continue
                inverse = np.linalg.pinv(own.sensitivity)
                moved, found = own.rows @ inverse.T, inverse @ own.score
                self.effect[k] = scores.effect(k, found)
                if scores.signed(k):
                    unit = np.zeros(len(found))
                    unit[0] = 1.0
                    self.rows[:, k] = scores.effect(k, unit) * moved[:, 0]
                else:
                    size = max(float(found @ found), 1e-300)
                    self.rows[:, k] = moved @ found / size * self.effect[k]
        known = dict(model.edge_columns).get("effect")
        if known is not None:  # on its scale, errors are the same share of an effect
            usable = ~np.isnan(known) & (np.abs(self.effect) > 1e-6)
            self.rows[:, usable] *= np.clip(known[usable] / self.effect[usable], 0.1, 10.0)
            self.effect = np.where(np.isnan(known), self.effect, known)
        self.rows -= self.rows.mean(axis=0)
        if clusters is None:
            if not sampling:
                self.rows /= np.sqrt(np.maximum(base, 1.0))[:, None]
        else:
            sums = np.zeros((int(clusters.max()) + 1, model.n_edges))
            np.add.at(sums, clusters, self.rows)
            self.rows = sums

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

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """Return the difference of two effects' sizes and its standard error."""
        signs = np.sign(self.effect[[first, second]])
        rows = signs[0] * self.rows[:, first] - signs[1] * self.rows[:, second]
        apart = abs(self.effect[first]) - abs(self.effect[second])
        return float(apart), float(np.sqrt(np.square(rows).sum()))
