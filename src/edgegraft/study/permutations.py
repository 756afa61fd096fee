"""Groups drawn anew: the labels of rows permuted, for tests that need no approximation.

If the groups are samples of one population, every assignment of labels is as likely as the observed
one. The edges of a network or of a variable are judged together in three ways:

- the mean likelihood ratio of one difference that is as large as the edge is in all rows (an edge
  that only one of two equal groups has), up to 3.5 standard errors; four parts of seven;
- the largest difference, those of strong edges counting more, because they can change by more: few
  edges are strong, so that this finds what the first would lose among weak ones; two parts;
- the difference along the weights of all edges, for groups whose edges are all weaker, which is one
  direction and needs the least; one part.

Each is ranked among the permutations, and the sum of the reciprocal p-values, times these parts, is
ranked again. Rows of a cluster keep together: clusters that lie in one group change their label as
a whole, in others labels are permuted within the cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.study.equality import EdgeEquality
from edgegraft.study.group_rows import GroupRows
from edgegraft.study.score_tests import parts_of

_TINY = float(np.finfo(float).tiny)
_MAX_P = 0.99  # combined p-values of 1, which corrections give, would outweigh all others
_MAX_CENTRE = 3.5  # standard errors of the difference that is looked for
_PARTS = (4.0, 2.0, 1.0)  # of one difference, the largest of strong edges, all in one direction


def permuted_labels(given: GroupRows, n: int, random_state: int) -> Integers:
    """Return the observed labels of rows, then `n` permutations of them."""
    rng = np.random.default_rng(random_state)
    labels = np.empty((n + 1, len(given.groups)), np.int8 if len(given.names) < 128 else np.int64)
    labels[0] = given.groups
    if given.clusters is None:
        for k in range(1, n + 1):
            labels[k] = rng.permutation(given.groups)
        return labels
    order = np.argsort(given.clusters, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(given.clusters))[:-1])
    pure = [rows for rows in members if (given.groups[rows] == given.groups[rows[0]]).all()]
    mixed = [rows for rows in members if not (given.groups[rows] == given.groups[rows[0]]).all()]
    own = np.array([given.groups[rows[0]] for rows in pure], labels.dtype)
    for k in range(1, n + 1):
        for rows, label in zip(pure, rng.permutation(own), strict=True):
            labels[k, rows] = label
        for rows in mixed:
            labels[k, rows] = rng.permutation(given.groups[rows])
    return labels


class PermutedTests(NamedTuple):
    """Edges under every assignment of labels, the observed one first."""

    p_value: Floats  # (assignments, m), comparable with each other
    along: Floats  # (groups, assignments, m): standardised sums of scores along common weights

    def of(self, edges: Mask) -> PermutedTests:
        """Return some of the edges."""
        return PermutedTests(self.p_value[:, edges], self.along[:, :, edges])


def permuted_tests(
    given: GroupRows, labels: Integers, found: list[EdgeEquality], linear: list[Mask]
) -> PermutedTests:
    """Test edges under every assignment of labels."""
    order = np.concatenate([given.of(g) for g in range(len(given.names))])
    parts = [_whitened(given, edge, mask) for edge, mask in zip(found, linear, strict=True)]
    along = [np.concatenate(edge.centred) @ edge.common for edge in found]
    columns = np.column_stack([*(column for part in parts for column, _ in part), *along])
    total = columns.sum(axis=0)
    shares = np.bincount(given.groups, given.weights) / given.weights.sum()
    apart = np.empty((len(shares), len(labels), len(total)))
    rest = np.broadcast_to(total, apart.shape[1:]).copy()
    for g, share in enumerate(shares):
        sums = rest
        if g < len(shares) - 1:
            sums = (labels[:, order] == g).astype(np.float64) @ columns
            rest -= sums
        apart[g] = (sums - share * total) / np.sqrt(share)
    white = len(total) - len(found)
    statistics = np.square(apart[:, :, :white]).sum(axis=0)
    return PermutedTests(_p_values(statistics, parts, len(shares) - 1), apart[:, :, white:])


def _whitened(given: GroupRows, edge: EdgeEquality, linear: Mask) -> list[tuple[Floats, float]]:
    """Return the scores of rows with unit variance, in groups of weights with their shares."""
    rows = np.concatenate(edge.centred)
    if given.clusters is None:
        spread = rows.T @ rows - np.outer(rows.sum(axis=0), rows.sum(axis=0)) / len(rows)
    else:
        order = np.concatenate([given.of(g) for g in range(len(given.names))])
        sums = np.zeros((int(given.clusters.max()) + 1, rows.shape[1]))
        np.add.at(sums, given.clusters[order], rows)
        spread = sums.T @ sums
    parts = parts_of(spread, spread, linear)
    return [(rows @ part.turn, part.share) for part in parts if part.dof]


def _p_values(statistics: Floats, parts: list[list[tuple[Floats, float]]], others: int) -> Floats:
    out = np.ones((len(statistics), len(parts)))
    at = 0
    for e, part in enumerate(parts):
        for columns, share in part:
            width = columns.shape[1]
            own = statistics[:, at : at + width].sum(axis=1)
            at += width
            p = np.maximum(chdtrc(width * others, own), _TINY)
            out[:, e] = np.minimum(out[:, e], p / share)
    return out


def rank_p_values(statistics: Floats) -> Floats:
    """Return the share of assignments, the observed one first, that are at least as far out."""
    larger = len(statistics) - np.searchsorted(np.sort(statistics), statistics, side="left")
    return np.asarray(larger / len(statistics))


def combined_p_value(tests: PermutedTests, pooled: Floats, effect: Floats) -> float:
    """Return the p-value of several edges together.

    `pooled` are the p-values and `effect` the effects of the edges in all groups, which no
    assignment changes.

    Examples
    --------
    >>> p = np.random.default_rng(0).uniform(size=(1000, 5))
    >>> p[0] = 1e-6
    >>> tests = PermutedTests(p, np.zeros((2, 1000, 5)))
    >>> combined_p_value(tests, np.full(5, 0.01), np.full(5, 0.2))
    0.001
    """
    if not tests.p_value.shape[1]:
        return 1.0
    centre = np.minimum(-ndtri(np.maximum(pooled, _TINY) / 2), _MAX_CENTRE)
    roots = -ndtri(np.maximum(tests.p_value, _TINY) / 2)
    size = np.sqrt(np.abs(effect))
    ways = (
        (np.exp(-(centre**2) / 2) * np.cosh(centre * roots)).mean(axis=1),
        (size * roots).max(axis=1),
        np.square(tests.along.sum(axis=2)).sum(axis=0),
    )
    each = [part / rank_p_values(way) for part, way in zip(_PARTS, ways, strict=True)]
    together = np.sum(each, axis=0)
    return float(rank_p_values(together)[0])


def cauchy_p_value(p: Floats) -> float:
    """Return the Cauchy combination of p-values, which may depend on each other and be 1.

    Examples
    --------
    >>> round(cauchy_p_value(np.array([0.5, 0.5])), 6), cauchy_p_value(np.array([]))
    (0.5, 1.0)
    """
    if not len(p):
        return 1.0
    bounded = np.clip(p, 1e-15, _MAX_P)
    return float(0.5 - np.arctan(np.mean(np.tan((0.5 - bounded) * np.pi))) / np.pi)
