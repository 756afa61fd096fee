"""Dismissal, admission and bridges, with a judge that makes its verdicts up."""

from __future__ import annotations

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgegraft.conditional.admission import NULL, admit, bridge, dismiss
from edgegraft.conditional.judge import Verdict
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.learn.cut import Cut
from tests.judge_cases import network_of

N = 7
PAIRS = list(combinations(range(N), 2))
CUT = Cut(0.05, False, PairRules(N, np.empty((0, 2), np.int64)))


class MadeUp:
    """A judge whose verdict on a pair follows from a seed and the neighbours of its ends."""

    def __init__(self, seed):
        self.seed, self.asked = seed, 0

    def ask(self, network, pairs):
        self.asked += len(pairs)
        return [self._verdict(network, pair) for pair in pairs]

    def _verdict(self, network, pair):
        i, j = pair
        beside = sorted(network.beside[i] - {j}), sorted(network.beside[j] - {i})
        rng = np.random.default_rng([self.seed, i, j, *beside[0], N, *beside[1]])
        p = float(10.0 ** -rng.uniform(0, 6))
        return Verdict(-np.log(p), 1, p)

    def alone(self, pairs):
        return self.ask(network_of(N, []), pairs)


def p_of(judge, network, pairs):
    return np.array([verdict.p_value for verdict in judge.ask(network, pairs)])


seeds = st.integers(0, 10_000)
graphs = st.sets(st.sampled_from(PAIRS)).map(sorted)


@given(seeds, graphs, graphs, st.booleans())
def test_after_dismissal_all_pass_but_the_spared(seed, edges, spared, ordered):
    judge, network = MadeUp(seed), network_of(N, edges)
    strengths = {pair: k for k, pair in enumerate(PAIRS)} if ordered else None
    last = dismiss(network, judge, CUT, frozenset(spared), strengths)
    assert set(last) == set(edges)
    assert set(edges) & set(spared) <= network.edges <= set(edges)
    left = sorted(network.edges)
    p = p_of(judge, network, left)
    assert [last[pair].p_value for pair in left] == p.tolist()  # as they are beside each other
    if left:
        passes = CUT(np.array(left), p, 0)
        assert all(ok or pair in spared for ok, pair in zip(passes, left, strict=True))


@given(seeds, graphs)
def test_the_weakest_of_a_column_is_dropped_first(seed, edges):
    judge, network = MadeUp(seed), network_of(N, edges)
    p = dict(zip(edges, p_of(judge, network, edges), strict=True))
    passes = CUT(np.array(edges).reshape(-1, 2), np.array([p[pair] for pair in edges]), 0)
    failing = [pair for pair, ok in zip(edges, passes, strict=True) if not ok]
    dismiss(network, judge, CUT, strengths={pair: -k for k, pair in enumerate(PAIRS)})
    assert not failing or failing[-1] not in network.edges


@given(seeds, graphs, graphs)
def test_admission_adds_only_what_passes(seed, edges, candidates):
    judge, network = MadeUp(seed), network_of(N, edges)
    last = admit(network, candidates, judge, CUT)
    added = network.edges - set(edges)
    assert set(edges) <= network.edges
    assert added <= set(last) == set(candidates) - set(edges)
    # A level depends on how many are found: at most all, also those that share a column and wait.
    limit = 0.05 * len(set(edges) | set(candidates)) / len(PAIRS)
    assert all(last[pair].p_value <= limit for pair in added)


@given(seeds, graphs, graphs)
def test_what_is_added_at_once_shares_no_column(seed, edges, candidates):
    network, rounds = network_of(N, edges), []

    class Seen(MadeUp):
        def ask(self, network, pairs, **options):
            rounds.append(set(network.edges))
            return super().ask(network, pairs, **options)

    admit(network, candidates, Seen(seed), CUT)
    rounds.append(set(network.edges))
    for before, after in pairwise(rounds):
        ends = [v for pair in after - before for v in pair]
        assert len(ends) == len(set(ends))


@given(seeds, graphs, graphs)
def test_a_bridge_joins_what_is_apart(seed, edges, tree):
    judge, network = MadeUp(seed), network_of(N, edges)
    apart = nx.Graph(edges)
    apart.add_nodes_from(range(N))
    n_parts = nx.number_connected_components(apart)
    found = bridge(network, tree, judge.alone, CUT)
    assert set(found) <= set(tree) - set(edges)
    assert network.edges == set(edges) | set(found)
    apart.add_edges_from(found)
    assert nx.number_connected_components(apart) == n_parts - len(found)
    lacking = [pair for pair in tree if pair not in edges]
    if lacking:  # what passes and is not there has its ends joined
        passes = CUT(np.array(lacking), p_of(judge, network_of(N, []), lacking), len(edges))
        for pair, able in zip(lacking, passes, strict=True):
            assert not able or nx.has_path(apart, *pair)
            assert able or pair not in found


def test_what_is_clearly_null_goes_at_once_and_the_rest_weakest_first():
    p = {(0, 1): 0.9, (1, 2): 0.8, (2, 3): 0.009, (3, 4): 0.008}

    class Fixed:
        def __init__(self):
            self.rounds = []

        def ask(self, network, pairs, **_):
            self.rounds.append(pairs)
            return [Verdict(1.0, 1, p[pair]) for pair in pairs]

    judge, network = Fixed(), network_of(5, list(p))
    assert min(p[0, 1], p[1, 2]) > NULL > max(p[2, 3], p[3, 4])
    dismiss(network, judge, Cut(1e-3, True, CUT.rules))
    assert not network.edges
    assert judge.rounds == [sorted(p), [(2, 3)], []]  # it shares a column with (1, 2)


def test_nothing_is_asked_of_nothing():
    judge, network = MadeUp(0), network_of(N, [])
    assert dismiss(network, judge, CUT) == admit(network, [], judge, CUT) == {}
    assert bridge(network, [], judge.alone, CUT) == {}
    assert not judge.asked
