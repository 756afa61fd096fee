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
from edgegraft.learn.discovery import discover
from edgegraft.learn.edge_tests import q_values
from edgegraft.learn.effective_score import Verdict
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

_SHARE = 0.9  # of the level, for edges chosen without regard to groups
_CONFIRMED = 0.05  # p-value by permutations of an edge that differs


class ComparedEdges(NamedTuple):
    """The edges to compare.

    Attributes
    ----------
    edges : array of int, shape (m, 2)
    common : array of bool, shape (m,)
        Which are chosen without regard to groups; the others are the best of the other pairs.
    own : array of bool, shape (groups, m)
        Which the network of each group has.
    together : array of bool, shape (m,)
        Which the network of all rows together has.
    n : int
        Number of variables.
    """

    edges: Edges
    common: Mask
    own: Mask
    together: Mask
    n: int

    def q_values(self, p: Floats) -> Floats:
        """Return q-values, of the two kinds of edges apart."""
        out = np.empty(len(p))
        out[self.common] = q_values(p[self.common], int(self.common.sum()))
        others = self.n * (self.n - 1) // 2 - int(self.common.sum())
        out[~self.common] = q_values(p[~self.common], others)
        return out


class EqualityTests(NamedTuple):
    """Tests of all edges; `permuted` has them for every assignment of labels."""

    verdicts: list[Verdict]
    estimates: list[tuple[list[Estimate | None], Estimate | None]]  # per group; difference of two
    permuted: PermutedTests | None
    pooled: Floats  # p-values of the edges in all groups together
    effect: Floats  # of the edges in all groups together

    @property
    def p_value(self) -> Floats:
        """P-values of the edges."""
        return np.array([verdict.p_value for verdict in self.verdicts])

    def together(self, chosen: ComparedEdges, variable: int | None = None) -> float:
        """Return the p-value of all edges together, or of those of a variable.

        Edges without information do not count. Those that only a group has are corrected for all
        pairs that they are the best of, and have a tenth of the level.
        """
        known = np.array([verdict.dof > 0 for verdict in self.verdicts], bool)
        pairs = chosen.n * (chosen.n - 1) // 2
        if variable is not None:
            known &= (chosen.edges == variable).any(axis=1)
            pairs = chosen.n - 1
        common, rest = known & chosen.common, known & ~chosen.common
        if self.permuted is not None:
            p = combined_p_value(self.permuted.of(common), self.pooled[common], self.effect[common])
        else:
            p = cauchy_p_value(self.p_value[common])
        best = float(self.p_value[rest].min(initial=1.0)) * (pairs - int(common.sum()))
        return min(1.0, p / _SHARE, best / (1.0 - _SHARE)) if rest.any() else p

    def columns(self, chosen: ComparedEdges) -> dict[str, NDArray[Any]]:
        """Return the tests as columns."""
        columns: dict[str, NDArray[Any]] = {
            "statistic": np.array([verdict.statistic for verdict in self.verdicts]),
            "dof": np.array([verdict.dof for verdict in self.verdicts], np.int64),
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
            return np.ones(len(self.verdicts), bool)
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
    return EqualityTests(
        [edge.verdict for edge in edges],
        [(edge.estimates, edge.difference) for edge in edges],
        together,
        np.array([edge.pooled for edge in edges]),
        np.array(effect),
    )


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
    given: GroupRows, scores: GroupScores, tested: EqualityTests, chosen: ComparedEdges
) -> dict[str, NDArray[Any]]:
    """Return effects per group with their intervals, and their differences."""
    m, n_groups = len(tested.verdicts), len(given.names)
    effect, error = np.full((2, n_groups, m), np.nan)
    apart, unsure = np.full((2, m), np.nan)
    for k, (estimates, difference) in enumerate(tested.estimates):
        for g, one in enumerate(estimates):
            if one is not None:
                effect[g, k], error[g, k] = _sized(scores, k, one)
        if difference is not None:
            apart[k], unsure[k] = _sized(scores, k, difference)
        elif n_groups > 2 and np.isfinite(effect[:, k]).sum() > 1:
            apart[k] = np.nanmax(effect[:, k]) - np.nanmin(effect[:, k])
    columns: dict[str, NDArray[Any]] = {"signed": np.array([scores.signed(k) for k in range(m)])}
    for g, name in enumerate(given.names):
        columns[f"effect_{name}"] = effect[g]
        columns[f"low_{name}"] = effect[g] - NORMAL * error[g]
        columns[f"high_{name}"] = effect[g] + NORMAL * error[g]
        columns[f"in_{name}"] = chosen.own[g]
    columns |= {"together": chosen.together, "difference": apart}
    if n_groups == 2:
        columns["difference_low"] = apart - NORMAL * unsure
        columns["difference_high"] = apart + NORMAL * unsure
    return columns


def _sized(scores: GroupScores, k: int, found: Estimate) -> tuple[float, float]:
    """Return an effect with its standard error."""
    return scores.effect(k, found.weights), found.error(scores.slope(k, found.weights))
