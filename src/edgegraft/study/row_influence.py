"""How much each row moves each effect, from which all resampling of a fixed network follows.

The weights of an edge are, to first order, a sum over rows of what each adds
(:mod:`~edgegraft.conditional.influence`). So an effect on other rows, or on rows with other
weights, is one product of matrices away, with the information of all rows.
"""

from __future__ import annotations

import numpy as np

from edgegraft.conditional.conditional import Conditional
from edgegraft.conditional.influence import influence_of
from edgegraft.conditional.judge import Network
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.threads import run
from edgegraft.core.types import Floats, Integers
from edgegraft.learn.effects import edge_effects
from edgegraft.model import PairwiseMRF
from edgegraft.study.edge_sizes import EdgeSizes, share_left
from edgegraft.table.blocks import TableRows

_SMALL, _MAX_SCALE = 0.02, 10.0  # effects near zero have the same scale; others at most this one
_TINY = float(np.finfo(float).tiny)


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
        table: TableRows,
        rows: ConditionalRows,
        n_jobs: int = 1,
        clusters: Integers | None = None,
    ) -> None:
        edges, weights = model.edges.tolist(), table.weights
        network = Network(model.n_variables, model.edges)
        signed = np.zeros(model.n_edges, bool)
        weights = np.ones(rows.n_rows) if weights is None else weights
        self.effect = np.zeros(model.n_edges)
        self.rows = np.zeros((rows.n_rows, model.n_edges))
        own_error, over_rows = np.zeros((2, model.n_edges))
        left, ends = np.ones(model.n_variables), dict[int, Conditional | None]()

        def read(i: int) -> None:
            given = Conditional(rows, i, sorted(network.beside[i]))
            ends[i] = given if given.usable else None
            if given.usable:
                left[i] = share_left(given)

        run(read, [i for i, beside in enumerate(network.beside) if beside], n_jobs)
        sizes = EdgeSizes(rows.columns, left)

        def work(k: int) -> None:
            i, j = edges[k]
            signed[k] = sizes.signed(i, j)
            if not rows.sizes[[i, j]].all() or (ends[i] is None and ends[j] is None):
                return
            found = influence_of(ends[i], ends[j], (i, j))
            slope = sizes.slope(i, j, found.estimate)
            turn = np.linalg.solve(found.information, slope)
            self.effect[k] = sizes.effect(i, j, found.estimate)
            self.rows[:, k] = weights * (found.scores @ turn)
            spread = max(float(slope @ found.covariance() @ slope), _TINY)
            over_rows[k] = np.sqrt(spread)
            # Over rows it is too small if a cell happens to be empty.
            own_error[k] = np.sqrt(max(spread, float(slope @ turn)))

        run(work, range(model.n_edges), n_jobs)
        known = dict(model.edge_columns).get("effect")
        if known is None:
            known = edge_effects(model, table, n_jobs=n_jobs).effect
        known = np.where(np.isnan(known), self.effect, known)
        error = np.where(
            signed,
            _signed_error(known, self.effect, own_error),
            own_error * known / np.maximum(self.effect, _TINY),
        )
        self.effect = known
        self.rows *= error / np.maximum(over_rows, _TINY)
        self.rows -= self.rows.mean(axis=0)
        if clusters is None:
            if not rows.sampling:
                self.rows /= np.sqrt(np.maximum(weights, 1.0))[:, None]
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

    def differences(self) -> tuple[Floats, Floats]:
        """Return how much larger each effect is than each other, by size, with standard errors."""
        size, rows = np.abs(self.effect), self.rows * np.sign(self.effect)
        spread = rows.T @ rows
        own = np.diag(spread)
        error = np.sqrt(np.maximum(own[:, None] + own - 2.0 * spread, 0.0))
        return size[:, None] - size, np.asarray(error)


def _signed_error(known: Floats, own: Floats, error: Floats) -> Floats:
    """Return errors of effects that were measured on another scale.

    They are the same share of ``atanh`` of the effect, as of the intervals of a fit.
    """
    bounded = np.clip(known, -1 + 1e-9, 1 - 1e-9)
    large = np.abs(own) > _SMALL
    scale = np.abs(np.arctanh(bounded)) / np.where(large, np.abs(own), 1.0)
    scale = np.where(large, np.minimum(scale, _MAX_SCALE), 1.0)
    return np.asarray(error * scale * (1.0 - bounded**2))


def _unsigned_error(effect: Floats, statistic: Floats, dof: Integers) -> Floats:
    """Return errors of effects without a sign, which are roots of what a statistic has to spare."""
    centre = np.maximum(statistic - dof, 1.0)
    return np.asarray(effect * np.sqrt(2.0 * (dof + 2.0 * centre)) / (2.0 * centre))
