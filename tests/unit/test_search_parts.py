"""Rules, hubs and the reservoir against plain twins; what the stream refuses."""

import numpy as np
import pytest

from edgegraft.core.adjacency import PairMap
from edgegraft.errors import EdgeError
from edgegraft.grafting import BestChoice, CandidateStream, Reservoir
from edgegraft.rank import find_hubs


def random_edges(n, m, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    return pairs[rng.choice(len(pairs), m, replace=False)]


def plain_choice(edges, scores, alpha):
    tau = (1 - alpha) * np.mean(scores) + alpha * np.max(scores)
    return plain_round(edges, scores, tau)


def plain_round(edges, scores, tau=-np.inf):
    used, chosen = set(), []
    for k in sorted(range(len(edges)), key=lambda k: (-scores[k], *edges[k])):
        if scores[k] >= tau and not used & set(edges[k].tolist()):
            used |= set(edges[k].tolist())
            chosen.append(k)
    return chosen


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("max_touching", [2, 5])
def test_touching_edges_come_in_rounds_of_the_plain_twin(alpha, max_touching):
    edges = random_edges(12, 50)
    scores = np.random.default_rng(1).integers(1, 40, 50) / 4
    left = np.flatnonzero(scores >= BestChoice(alpha).threshold(scores))
    expected = []
    for _ in range(max_touching):
        expected += left[plain_round(edges[left], scores[left])].tolist()
        left = np.setdiff1d(left, expected)
    assert BestChoice(alpha, max_touching).select(edges, scores).tolist() == expected


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_best_choice_is_its_plain_twin(alpha, seed):
    edges = random_edges(30, 80, seed)
    scores = np.random.default_rng(seed).integers(1, 40, 80) / 4
    assert BestChoice(alpha).select(edges, scores).tolist() == plain_choice(edges, scores, alpha)


def test_selectivity_one_is_the_best_edge_alone():
    edges = np.array([(3, 4), (0, 1), (5, 6)])
    scores = [2.0, 2.0, 1.0]
    assert BestChoice(1.0).select(edges, scores).tolist() == [1]
    assert BestChoice(1.0, max_touching=3).select(edges, scores).tolist() == [1]


def test_equal_scores_are_all_considered():
    # The mean of equal numbers can round to more than the number.
    scores = np.full(3, 0.1)
    assert scores.mean() > 0.1
    edges = [(0, 1), (2, 3), (4, 5)]
    assert BestChoice(0.5).select(edges, scores).tolist() == [0, 1, 2]


@pytest.mark.parametrize("rule", [BestChoice(), BestChoice(1.0), BestChoice(0.0, 4)])
def test_rules_select_nothing_from_nothing(rule):
    chosen = rule.select(np.empty((0, 2), int), [])
    assert chosen.dtype == np.int64
    assert len(chosen) == 0


@pytest.mark.parametrize("rule", [BestChoice(), BestChoice(1.0), BestChoice(0.0, 4)])
def test_the_choice_does_not_depend_on_the_order(rule):
    edges = random_edges(20, 40)
    scores = np.random.default_rng(0).integers(1, 5, 40).astype(float)
    order = np.random.default_rng(1).permutation(40)
    one = edges[rule.select(edges, scores)]
    other = edges[order][rule.select(edges[order], scores[order])]
    assert np.array_equal(one, other)


def test_infinite_scores_are_the_best():
    assert BestChoice().select([(0, 1), (2, 3)], [np.inf, 1.0]).tolist() == [0]


def test_hubs_by_mean_and_by_number():
    degree = np.array([4, 2, 2, 1, 1, 0])
    assert find_hubs(degree).tolist() == [0]  # the mean of five joined variables is 2
    assert find_hubs(degree, 0.3).tolist() == [0, 1, 2]
    assert find_hubs(degree, 1.0).tolist() == []


def test_hubs_of_small_or_regular_graphs():
    assert find_hubs([0, 0, 0]).tolist() == []
    assert find_hubs([1, 1]).tolist() == []
    assert find_hubs([2, 2, 2]).tolist() == []
    assert find_hubs([0]).tolist() == []


@pytest.mark.parametrize("bad", ["median", -0.5, 1.5, np.nan])
def test_hub_threshold_is_checked(bad):
    with pytest.raises(ValueError, match="hub threshold"):
        find_hubs([1, 1], bad)


def one_by_one(capacity, edges, scores):
    """The paper's algorithm 3, edge after edge."""
    held = []
    out = []
    for edge, score in zip(map(tuple, edges.tolist()), scores, strict=True):
        held.append((edge, score))
        if len(held) > capacity:
            least = min(s for _, s in held)
            last = max(k for k, (_, s) in enumerate(held) if s == least)
            out.append(held.pop(last))
    return held, out


@pytest.mark.parametrize("capacity", [1, 3, 10])
@pytest.mark.parametrize("seed", range(4))
def test_offers_in_batches_are_offers_one_by_one(capacity, seed):
    edges = random_edges(15, 60, seed)
    scores = np.random.default_rng(seed).integers(0, 8, 60).astype(float)
    reservoir = Reservoir(capacity)
    gone = [reservoir.offer(edges[a:b], scores[a:b]) for a, b in ((0, 1), (1, 9), (9, 9), (9, 60))]
    held, out = one_by_one(capacity, edges, scores)
    assert list(zip(map(tuple, reservoir.edges.tolist()), reservoir.scores, strict=True)) == held
    assert sorted(tuple(e) for batch in gone for e in batch.edges.tolist()) == sorted(
        edge for edge, _ in out
    )
    assert reservoir.full


def test_reservoir_rescores_drops_takes_and_returns():
    reservoir = Reservoir()
    edges = random_edges(10, 6)
    assert len(reservoir.offer(edges, np.arange(6.0)).edges) == 0
    reservoir.rescore(np.arange(6.0)[::-1])
    dropped = reservoir.take(np.flatnonzero(reservoir.scores < 2))
    assert np.array_equal(dropped.edges, edges[4:])
    taken = reservoir.take([2, 0])
    assert np.array_equal(taken.edges, edges[[2, 0]])
    assert taken.scores.tolist() == [3.0, 5.0]
    assert np.array_equal(reservoir.edges, edges[[1, 3]])


def test_reservoir_refuses():
    with pytest.raises(ValueError, match="at least 1"):
        Reservoir(0)
    reservoir = Reservoir(3)
    with pytest.raises(ValueError, match="NaN"):
        reservoir.offer([(0, 1)], [np.nan])
    with pytest.raises(ValueError, match="scores"):
        reservoir.offer([(0, 1)], [1.0, 2.0])
    reservoir.offer([(0, 1)], [1.0])
    with pytest.raises(ValueError, match="twice"):
        reservoir.take([0, 0])


def test_stream_refuses():
    with pytest.raises(ValueError, match="at least 1 variable"):
        CandidateStream(0)
    stream = CandidateStream(5)
    with pytest.raises(ValueError, match="negative"):
        stream.draw(-1)
    with pytest.raises(EdgeError, match=r"outside 0\.\.4"):
        stream.freeze([(0, 5)], 0.0)
    with pytest.raises(EdgeError, match="to itself"):
        stream.remove([(1, 1)])
    with pytest.raises(EdgeError, match="shape"):
        stream.remove([0.5, 1.0])
    with pytest.raises(ValueError, match="NaN"):
        stream.prioritise([(0, 1)], np.nan)
    with pytest.raises(ValueError, match="nodes"):
        stream.boost([5])
    with pytest.raises(ValueError, match="boost"):
        stream.boost([1], -1.0)
    stream.remove([(0, 1)])
    for move in (stream.restore, stream.freeze, stream.prioritise):
        with pytest.raises(EdgeError, match="twice"):
            move([(0, 1), (1, 0)], 0.0)
    with pytest.raises(EdgeError, match="cannot be restored"):
        stream.restore([(0, 2)], 0.0)
    assert stream.n_prioritised == 0


@pytest.mark.parametrize("n", [1, 2])
def test_smallest_streams(n):
    stream = CandidateStream(n)
    stream.boost([0])
    assert len(stream.draw(3)) == n - 1
    assert stream.draw(3).shape == (0, 2)
    assert stream.refill() == 0


def test_maps_of_pairs_are_dictionaries():
    rng = np.random.default_rng(0)
    found, plain = PairMap(), {}
    for value in range(30):
        ids = rng.integers(0, 20_000, 700)
        before = found.put(ids, value).tolist()
        for pair, was in zip(ids.tolist(), before, strict=True):
            assert was == plain.get(pair, -1)
            plain[pair] = value
        assert len(found) == len(plain)
    asked = np.arange(20_000)
    assert found.get(asked).tolist() == [plain.get(pair, -1) for pair in asked.tolist()]
    assert found.with_value(29).tolist() == sorted(p for p, value in plain.items() if value == 29)
    assert PairMap(np.array(list(plain))).with_value().tolist() == sorted(plain)
