"""Networks of groups tested as a whole, by permutations of the labels of rows.

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

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from edgegraft.config import Plan
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.learn.cut import q_values
from edgegraft.learn.discovery import discover
from edgegraft.study.group_tests import EdgeEquality, GroupScores, judge_equality, parts_of
from edgegraft.study.groups import GroupRows

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class _Rule:
    """How the tests of edges are combined; powers are in the design document."""

    max_p: float = 0.99  # corrected p-values of 1 would outweigh all others in a Cauchy combination
    max_centre: float = 3.5  # standard errors of the difference that is looked for
    parts: tuple[float, ...] = (4.0, 2.0, 1.0)  # of one difference, the largest, all in a direction
    share: float = 0.9  # of the level, for edges that are chosen without regard to groups
    confirmed: float = 0.05  # p-value by permutations of an edge that differs: the usual level


_RULE = _Rule()


class PermutedTests(NamedTuple):
    """Edges under every assignment of labels, the observed one first."""

    p_value: Floats  # (assignments, m), comparable with each other
    along: Floats  # (groups, assignments, m): standardised sums of scores along common weights

    def of(self, edges: Mask) -> PermutedTests:
        """Return some of the edges."""
        return PermutedTests(self.p_value[:, edges], self.along[:, :, edges])


class ComparedEdges(NamedTuple):
    """The edges to compare."""

    edges: Edges
    common: Mask  # chosen without regard to groups; the others are the best of the other pairs
    in_group: Mask  # (groups, m): edges of the network of each group
    in_all: Mask  # edges of the network of all rows together
    n: int  # variables

    def q_values(self, p: Floats) -> Floats:
        """Return q-values, for each of the two kinds of edges."""
        out = np.empty(len(p))
        out[self.common] = q_values(p[self.common], int(self.common.sum()))
        others = self.n * (self.n - 1) // 2 - int(self.common.sum())
        out[~self.common] = q_values(p[~self.common], others)
        return out


class EqualityTests(NamedTuple):
    """Tests of all edges; `permuted` has them for every assignment of labels."""

    edges: list[EdgeEquality]
    effect: Floats  # of the edges in all groups together
    permuted: PermutedTests | None

    @property
    def p_value(self) -> Floats:
        """P-values of the edges."""
        return np.array([edge.verdict.p_value for edge in self.edges])

    def network_p_value(self, chosen: ComparedEdges, variable: int | None = None) -> float:
        """Return the p-value of all edges together, or of a variable's edges.

        Edges without information do not count. Those that only a group has are corrected for all
        pairs that they are the best of, and have a tenth of the level.
        """
        known = np.array([edge.verdict.dof > 0 for edge in self.edges], bool)
        pairs = chosen.n * (chosen.n - 1) // 2
        if variable is not None:
            known &= (chosen.edges == variable).any(axis=1)
            pairs = chosen.n - 1
        common, rest = known & chosen.common, known & ~chosen.common
        if self.permuted is not None:
            pooled = np.array([edge.pooled for edge in self.edges])
            p = combined_p_value(self.permuted.of(common), pooled[common], self.effect[common])
        else:
            p = cauchy_p_value(self.p_value[common])
        best = float(self.p_value[rest].min(initial=1.0)) * (pairs - int(common.sum()))
        return min(1.0, p / _RULE.share, best / (1.0 - _RULE.share)) if rest.any() else p

    def columns(self, chosen: ComparedEdges) -> dict[str, NDArray[Any]]:
        """Return the tests as columns."""
        columns: dict[str, NDArray[Any]] = {
            "statistic": np.array([edge.verdict.statistic for edge in self.edges]),
            "dof": np.array([edge.verdict.dof for edge in self.edges], np.int64),
            "p_value": self.p_value,
            "q_value": chosen.q_values(self.p_value),
        }
        if self.permuted is not None:
            columns["p_permutation"] = self._ranks(self.permuted)
        return columns

    def confirmed(self) -> Mask:
        """Return which edges are among the most different by permutations too, if there are any.

        Further scores of ordered columns have heavy tails in small groups, which the tests of edges
        do not know of and permutations do.
        """
        if self.permuted is None:
            return np.ones(len(self.edges), bool)
        level = max(_RULE.confirmed, 1.0 / len(self.permuted.p_value))
        return np.asarray(self._ranks(self.permuted) <= level)

    @staticmethod
    def _ranks(permuted: PermutedTests) -> Floats:
        return np.array([rank_p_values(-p)[0] for p in permuted.p_value.T])


def judge_edges(data: GroupRows, scores: GroupScores, labels: Integers | None) -> EqualityTests:
    """Test all edges, with permutations if there are labels."""
    edges: list[EdgeEquality] = []
    effect, permuted = [], []
    for chosen, batch in scores.batches():
        linear = [scores.linear(k) for k in chosen.tolist()]
        found = [judge_equality(data, each, mask) for each, mask in zip(batch, linear, strict=True)]
        effect += [
            float(scores.slope(k, edge.common) @ edge.common)
            for k, edge in zip(chosen, found, strict=True)
        ]
        if labels is not None:
            permuted.append(permuted_tests(data, labels, found, linear))
        edges += [edge._replace(centred=np.empty(0)) for edge in found]  # large
    together = None
    if permuted:
        p, along = zip(*permuted, strict=True)
        together = PermutedTests(np.concatenate(p, axis=1), np.concatenate(along, axis=2))
    return EqualityTests(edges, np.array(effect), together)


def choose_edges(data: GroupRows, plan: Plan) -> ComparedEdges:
    """Choose edges by all rows together, and by the rows of each group.

    An edge that only one group has is half as strong in all rows: beside the edges of their search
    the next best pairs are compared, one per column.
    """
    n = len(data.table.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = discover(data.table, plan, weights=data.weights)
        networks = []
        for g in range(len(data.names)):
            table, weights = data.part(g)
            found = discover(table, replace(plan, refit=False), weights=weights)
            networks.append(pair_ids(found.model.edges, n))
    common = pair_ids(whole.tests.edges, n)
    assert whole.ranking is not None
    ranked = pair_ids(whole.ranking.pairs, n)
    common = np.concatenate((common, ranked[~np.isin(ranked, common)][:n]))
    ids = np.unique(np.concatenate((common, *networks)))
    in_group = np.stack([np.isin(ids, network) for network in networks])
    in_all = np.isin(ids, pair_ids(whole.model.edges, n))
    return ComparedEdges(pairs_of_ids(ids, n), np.isin(ids, common), in_group, in_all, n)


def permuted_labels(data: GroupRows, n: int, random_state: int) -> Integers:
    """Return the observed labels of rows, then `n` permutations of them."""
    rng = np.random.default_rng(random_state)
    labels = np.empty((n + 1, len(data.groups)), np.int8 if len(data.names) < 128 else np.int64)
    labels[0] = data.groups
    if data.clusters is None:
        for k in range(1, n + 1):
            labels[k] = rng.permutation(data.groups)
        return labels
    order = np.argsort(data.clusters, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(data.clusters))[:-1])
    pure = [rows for rows in members if (data.groups[rows] == data.groups[rows[0]]).all()]
    mixed = [rows for rows in members if not (data.groups[rows] == data.groups[rows[0]]).all()]
    label_of = np.array([data.groups[rows[0]] for rows in pure], labels.dtype)
    for k in range(1, n + 1):
        for rows, label in zip(pure, rng.permutation(label_of), strict=True):
            labels[k, rows] = label
        for rows in mixed:
            labels[k, rows] = rng.permutation(data.groups[rows])
    return labels


def permuted_tests(
    data: GroupRows, labels: Integers, found: list[EdgeEquality], linear: list[Mask]
) -> PermutedTests:
    """Test edges under every assignment of labels."""
    parts = [_whitened(data, edge, mask) for edge, mask in zip(found, linear, strict=True)]
    along = [edge.centred @ edge.common for edge in found]
    columns = np.column_stack([*(column for part in parts for column, _ in part), *along])
    total = columns.sum(axis=0)
    shares = np.bincount(data.groups, data.weights) / data.weights.sum()
    differences = np.empty((len(shares), len(labels), len(total)))
    rest = np.broadcast_to(total, differences.shape[1:]).copy()
    for g, share in enumerate(shares):
        sums = rest
        if g < len(shares) - 1:
            sums = (labels == g).astype(np.float64) @ columns
            rest -= sums
        differences[g] = (sums - share * total) / np.sqrt(share)
    white = len(total) - len(found)
    statistics = np.square(differences[:, :, :white]).sum(axis=0)
    return PermutedTests(_p_values(statistics, parts, len(shares) - 1), differences[:, :, white:])


def _whitened(data: GroupRows, edge: EdgeEquality, linear: Mask) -> list[tuple[Floats, float]]:
    """Return the scores of rows with unit variance, in groups of weights with their shares."""
    rows = edge.centred
    sums = rows - rows.mean(axis=0)
    if data.clusters is not None:
        sums = data.by_cluster(rows)
    spread = sums.T @ sums
    parts = parts_of(spread, spread, linear)
    return [(rows @ part.turn, part.share) for part in parts if part.dof]


def _p_values(statistics: Floats, parts: list[list[tuple[Floats, float]]], others: int) -> Floats:
    out = np.ones((len(statistics), len(parts)))
    at = 0
    for e, part in enumerate(parts):
        for columns, share in part:
            width = columns.shape[1]
            statistic = statistics[:, at : at + width].sum(axis=1)
            at += width
            p = np.maximum(chdtrc(width * others, statistic), _TINY)
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
    centre = np.minimum(-ndtri(np.maximum(pooled, _TINY) / 2), _RULE.max_centre)
    roots = -ndtri(np.maximum(tests.p_value, _TINY) / 2)
    size = np.sqrt(np.abs(effect))
    ways = (
        (np.exp(-(centre**2) / 2) * np.cosh(centre * roots)).mean(axis=1),
        (size * roots).max(axis=1),
        np.square(tests.along.sum(axis=2)).sum(axis=0),
    )
    each = [part / rank_p_values(way) for part, way in zip(_RULE.parts, ways, strict=True)]
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
    bounded = np.clip(p, 1e-15, _RULE.max_p)
    return float(0.5 - np.arctan(np.mean(np.tan((0.5 - bounded) * np.pi))) / np.pi)
