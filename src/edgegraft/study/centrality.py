"""Centrality and communities of a network, and how stable they are if rows change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.model import PairwiseMRF
from edgegraft.rank.structure import communities
from edgegraft.study.columns import NORMAL
from edgegraft.study.row_influence import RowInfluence

_DROPPED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
_SIMILAR, _CERTAIN = 0.7, 0.95  # of the coefficient of stability, as in bootnet


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


def communities_of(model: PairwiseMRF, strength: Floats, resolution: float, seed: int) -> Integers:
    """Return the community of each variable (Louvain), -1 without edges."""
    n, edges = model.n_variables, model.edges
    return communities(n, edges, strength, seed, resolution=resolution, extra="networkx")


def togetherness(
    model: PairwiseMRF, community: Integers, resampled: Floats, resolution: float, seed: int
) -> Floats:
    """Return how often members of a variable's community are together with it in resamples."""
    n = model.n_variables
    together = np.zeros((n, n))
    for row in resampled:
        own = communities_of(model, np.abs(row), resolution, seed)
        together += (own[:, None] == own) & (own >= 0)
    same = (community[:, None] == community) & (community >= 0)[:, None]
    np.fill_diagonal(same, False)
    with np.errstate(invalid="ignore"):
        return np.asarray((together * same).sum(axis=1) / same.sum(axis=1) / len(resampled))


def case_dropping(
    model: PairwiseMRF, influence: RowInfluence, n: int, rng: np.random.Generator
) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    """Return how centralities of fewer rows correlate with those of all, and the coefficients."""
    edges, size = model.edges, model.n_variables
    effects = [influence.without(share, n, rng) for share in _DROPPED]
    columns: dict[str, NDArray[Any]] = {"share": np.array(_DROPPED)}
    coefficient = {}
    measures: dict[str, Callable[[Floats], Floats]] = {"strength": np.abs, "influence": np.positive}
    for name, measure in measures.items():
        whole = _totals(edges, measure(influence.effect), size)
        drawn = [_totals(edges, measure(own), size) for own in effects]
        found = np.array([[_correlation(whole, row) for row in rows] for rows in drawn])
        low = np.quantile(found, 1.0 - _CERTAIN, axis=1)
        columns |= {f"{name}_correlation": found.mean(axis=1), f"{name}_low": low}
        similar = [share for share, own in zip(_DROPPED, low, strict=True) if own >= _SIMILAR]
        coefficient[name] = max(similar, default=0.0)
    return columns, coefficient


def _correlation(first: Floats, second: Floats) -> float:
    if first.std() == 0 or second.std() == 0:
        return float(np.allclose(first, second))
    return float(np.corrcoef(first, second)[0, 1])
