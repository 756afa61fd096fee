"""Centrality and communities of a network, and how stable they are if rows change.

An effect is, to first order, a sum over rows of what each adds (:mod:`~edgegraft.learn.effects`).
So an effect on other rows, or on rows with other weights, is one product of matrices away, with
the information of all rows. Communities are found by the Leiden method (Traag, Waltman and van Eck
2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.rows import ConditionalRows
from edgegraft.core.adjacency import link_matrix
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import import_extra
from edgegraft.learn.effects import edge_effects, effect_changes
from edgegraft.model import PairwiseMRF
from edgegraft.study.columns import NORMAL

_SIMILAR, _CHANCE = 0.7, 0.95  # the coefficient of stability of bootnet (Epskamp and others 2018)
_ITERATIONS = 5  # of Leiden: modularity of random graphs of 600 nodes is .003 above one iteration


class RowInfluence:
    """Influence of rows on the effects of a model's edges.

    `clusters` are numbers of the rows' clusters, which are resampled and dropped as a whole.

    Attributes
    ----------
    effect : array of float, shape (m,)
        From the model's edge columns if it has them, otherwise of the model in these rows.
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
        effect = edge_effects(model, rows, n_jobs=n_jobs).effect
        stored = dict(model.edge_columns).get("effect", effect)
        self.effect = np.where(np.isnan(stored), effect, stored)
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
        variance = np.diag(spread)
        error = np.sqrt(np.maximum(variance[:, None] + variance - 2.0 * spread, 0.0))
        return size[:, None] - size, np.asarray(error)


def communities(
    n: int, edges: Edges, weights: Floats, *, resolution: float = 1.0, seed: int = 0
) -> Integers:
    """Return the community of each of `n` variables, the largest first.

    One variable alone is not a community: it has -1.

    Examples
    --------
    >>> communities(5, np.array([(0, 1), (2, 3)]), np.ones(2))
    array([ 0,  0,  1,  1, -1])
    """
    leiden = import_extra("graspologic_native", "report", "finding communities").leiden_csr
    group, joined = np.full(n, -1, np.int64), weights > 0
    if not joined.any():
        return group
    both = np.concatenate((edges[joined], edges[joined][:, ::-1]))
    graph = link_matrix(np.tile(weights[joined].astype(np.float64), 2), both, n).tocsr()
    graph.sort_indices()
    _, labels = leiden(
        graph.indptr.astype(np.int64),
        graph.indices.astype(np.int32),
        graph.data,
        n,
        resolution=resolution,
        iterations=_ITERATIONS,
        seed=seed,
    )
    parts: dict[int, list[int]] = {}
    for i in range(n):
        parts.setdefault(labels[i], []).append(i)
    several = [members for members in parts.values() if len(members) > 1]
    for k, members in enumerate(sorted(several, key=lambda members: (-len(members), members[0]))):
        group[members] = k
    return group


def _totals(edges: Edges, values: Floats, n: int) -> Floats:
    """Return the sums of values per edge over the edges of each variable; one row per row."""
    out = np.zeros((*values.shape[:-1], n))
    for side in (0, 1):
        np.add.at(np.moveaxis(out, -1, 0), edges[:, side], np.moveaxis(values, -1, 0))
    return out


def centrality(
    model: PairwiseMRF, influence: RowInfluence, community: Integers
) -> dict[str, NDArray[Any]]:
    """Return strength, influence with intervals, and bridge strength of each variable."""
    edges, effect, n = model.edges, influence.effect, model.n_variables
    signed = dict(model.edge_columns).get("sign", np.sign(effect))
    away = community[edges[:, 0]] != community[edges[:, 1]]
    columns: dict[str, NDArray[Any]] = {
        "name": np.array(model.names, object),
        "n_edges": np.bincount(edges.ravel(), minlength=n),
    }
    for name, factor in (("strength", np.sign(effect)), ("influence", (signed != 0).astype(float))):
        total = _totals(edges, effect * factor, n)
        error = np.sqrt(np.square(_totals(edges, influence.rows * factor, n)).sum(axis=0))
        for end, times in (("", 0.0), ("_low", -NORMAL), ("_high", NORMAL)):
            columns[f"{name}{end}"] = total + times * error
    columns["bridge"] = _totals(edges, np.abs(effect) * away, n)
    columns["community"] = community
    return columns


def membership_stability(
    model: PairwiseMRF, community: Integers, resampled: Floats, resolution: float, seed: int
) -> Floats:
    """Return how often members of a variable's community are together with it in resamples."""
    n = model.n_variables
    together = np.zeros((n, n))
    for row in resampled:
        found = communities(n, model.edges, np.abs(row), resolution=resolution, seed=seed)
        together += (found[:, None] == found) & (found >= 0)
    same = (community[:, None] == community) & (community >= 0)[:, None]
    np.fill_diagonal(same, False)
    with np.errstate(invalid="ignore"):
        return np.asarray((together * same).sum(axis=1) / same.sum(axis=1) / len(resampled))


def case_dropping(
    model: PairwiseMRF, influence: RowInfluence, n: int, rng: np.random.Generator
) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    """Return the correlations of centralities of fewer rows and of all, and the coefficients."""
    edges, size, shares = model.edges, model.n_variables, np.arange(1, 10) / 10
    effects = [influence.without(share, n, rng) for share in shares.tolist()]
    columns: dict[str, NDArray[Any]] = {"share": shares}
    coefficient = {}
    measures: dict[str, Callable[[Floats], Floats]] = {"strength": np.abs, "influence": np.positive}
    for name, measure in measures.items():
        whole = _totals(edges, measure(influence.effect), size)
        drawn = [_totals(edges, measure(effect), size) for effect in effects]
        found = np.array([[_correlation(whole, row) for row in rows] for rows in drawn])
        low = np.quantile(found, 1.0 - _CHANCE, axis=1)
        columns |= {f"{name}_correlation": found.mean(axis=1), f"{name}_low": low}
        coefficient[name] = float(np.max(columns["share"][low >= _SIMILAR], initial=0))
    return columns, coefficient


def _correlation(first: Floats, second: Floats) -> float:
    if first.std() == 0 or second.std() == 0:
        return float(np.allclose(first, second))
    return float(np.corrcoef(first, second)[0, 1])
