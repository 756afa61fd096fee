"""All edges tested for equality: alone, per variable and as a network."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.config import Plan
from edgegraft.core.pairs import pair_ids, pairs_of_ids
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.learn.cut import q_values
from edgegraft.learn.discovery import discover
from edgegraft.learn.effects import edge_effects
from edgegraft.model import PairwiseMRF
from edgegraft.study.columns import NORMAL
from edgegraft.study.equality import EdgeEquality, Estimate, judge_equality
from edgegraft.study.group_rows import GroupRows
from edgegraft.study.group_scores import GroupScores
from edgegraft.study.permutations import (
    PermutedTests,
    cauchy_p_value,
    combined_p_value,
    permuted_tests,
    rank_p_values,
)
from edgegraft.table.blocks import TableRows

_SHARE = 0.9  # of the level, for edges chosen without regard to groups
_SMALL, _EQUAL = 0.05, 1e-6  # effects that need no other scale; differences of none
_CONFIRMED = 0.05  # p-value by permutations of an edge that differs


class ComparedEdges(NamedTuple):
    """The edges to compare."""

    edges: Edges
    common: Mask  # chosen without regard to groups; the others are the best of the other pairs
    own: Mask  # (groups, m): those that the network of each group has
    together: Mask  # those that the network of all rows together has
    n: int  # variables

    def q_values(self, p: Floats) -> Floats:
        """Return q-values, of the two kinds of edges apart."""
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

    def together(self, chosen: ComparedEdges, variable: int | None = None) -> float:
        """Return the p-value of all edges together, or of those of a variable.

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
        return min(1.0, p / _SHARE, best / (1.0 - _SHARE)) if rest.any() else p

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
        level = max(_CONFIRMED, 1.0 / len(self.permuted.p_value))
        return np.asarray(self._ranks(self.permuted) <= level)

    @staticmethod
    def _ranks(permuted: PermutedTests) -> Floats:
        return np.array([rank_p_values(-own)[0] for own in permuted.p_value.T])


def judge_edges(given: GroupRows, scores: GroupScores, labels: Integers | None) -> EqualityTests:
    """Test all edges, with permutations if there are labels."""
    edges: list[EdgeEquality] = []
    effect, permuted = [], []
    for chosen, batch in scores.batches():
        linear = [scores.linear(k) for k in chosen.tolist()]
        found = [
            judge_equality(given, each, mask) for each, mask in zip(batch, linear, strict=True)
        ]
        effect += [scores.effect(k, edge.common) for k, edge in zip(chosen, found, strict=True)]
        if labels is not None:
            permuted.append(permuted_tests(given, labels, found, linear))
        edges += [edge._replace(centred=[]) for edge in found]  # large
    together = None
    if permuted:
        p, along = zip(*permuted, strict=True)
        together = PermutedTests(np.concatenate(p, axis=1), np.concatenate(along, axis=2))
    return EqualityTests(edges, np.array(effect), together)


def choose_edges(given: GroupRows, plan: Plan) -> ComparedEdges:
    """Choose edges by all rows together, and by the rows of each group.

    An edge that only one group has is half as strong in all rows: beside the edges of their search
    the next best pairs are compared, one per column.
    """
    n = len(given.table.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = discover(given.table, plan, weights=given.weights)
        networks = []
        for g in range(len(given.names)):
            table, weights = given.part(g)
            found = discover(table, replace(plan, refit=False), weights=weights)
            networks.append(pair_ids(found.model.edges, n))
    common = pair_ids(whole.tests.edges, n)
    assert whole.ranking is not None
    ranked = pair_ids(whole.ranking.pairs, n)
    common = np.concatenate((common, ranked[~np.isin(ranked, common)][:n]))
    ids = np.unique(np.concatenate((common, *networks)))
    own = np.stack([np.isin(ids, network) for network in networks])
    together = np.isin(ids, pair_ids(whole.model.edges, n))
    return ComparedEdges(pairs_of_ids(ids, n), np.isin(ids, common), own, together, n)


def group_effects(
    given: GroupRows,
    scores: GroupScores,
    tested: EqualityTests,
    chosen: ComparedEdges,
    reference: Floats,
) -> dict[str, NDArray[Any]]:
    """Return effects per group with their intervals, and their differences.

    `reference` are the effects of the edges if all groups share them. Effects of groups are
    proportional to their weights on the scale of ``atanh``, and agree with these.
    """
    m, n_groups = len(tested.edges), len(given.names)
    z, error = np.full((2, n_groups, m), np.nan)
    apart, unsure = np.full((2, m), np.nan)
    scale = _scales(reference, tested.effect)
    for k, edge in enumerate(tested.edges):
        for g, one in enumerate(edge.estimates):
            if one is not None:
                z[g, k], error[g, k] = _sized(scores, k, one, scale[k])
        if edge.difference is not None:
            apart[k], unsure[k] = _sized(scores, k, edge.difference, scale[k])
    signed = np.array([scores.signed(k) for k in range(m)], bool)
    columns: dict[str, NDArray[Any]] = {"signed": signed}
    for g, name in enumerate(given.names):
        for end, times in (("effect", 0.0), ("low", -NORMAL), ("high", NORMAL)):
            columns[f"{end}_{name}"] = np.tanh(z[g] + times * error[g])
        columns[f"in_{name}"] = chosen.own[g]
    columns["together"] = chosen.together
    effect = np.tanh(z)
    if n_groups > 2:
        several = np.isfinite(effect).sum(axis=0) > 1
        spread = np.fmax.reduce(effect) - np.fmin.reduce(effect)
        return columns | {"difference": np.where(several, spread, np.nan)}
    # A difference of signed effects is that on the scale of atanh times a mean slope of tanh.
    clear = np.abs(apart) > _EQUAL
    steep = 1.0 - effect[0] ** 2
    steep[clear] = (effect[1] - effect[0])[clear] / apart[clear]
    for end, times in (("", 0.0), ("_low", -NORMAL), ("_high", NORMAL)):
        own = apart + times * unsure
        columns[f"difference{end}"] = np.where(signed, own * steep, np.tanh(own))
    return columns


def reference_effects(given: GroupRows, models: list[PairwiseMRF], n_jobs: int) -> Floats:
    """Return the effects of edges that all groups share, over the rows of all of them."""
    parts = [given.part(g) for g in range(len(models))]
    each = [
        edge_effects(model, TableRows(table, weights), n_jobs=n_jobs).effect
        for model, (table, weights) in zip(models, parts, strict=True)
    ]
    return np.asarray(np.average(each, axis=0, weights=[weights.sum() for _, weights in parts]))


def _scales(reference: Floats, own: Floats) -> Floats:
    """Return what own sizes are multiplied by to agree with effects, if these are not small."""
    usable = (np.abs(reference) > _SMALL) & (np.abs(own) > _SMALL**2)
    goal = np.arctanh(np.minimum(np.abs(reference), 1.0 - 1e-6))
    return np.where(usable, goal / np.where(usable, np.abs(own), 1.0), 1.0)


def _sized(scores: GroupScores, k: int, found: Estimate, scale: float) -> tuple[float, float]:
    """Return the size of weights with its standard error."""
    size, slope = scores.effect(k, found.weights), scores.slope(k, found.weights)
    return scale * size, scale * found.error(slope)
