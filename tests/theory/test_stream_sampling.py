"""Unseen pairs are drawn uniformly; the best pair of a reservoir has the expected rank."""

import numpy as np
import pytest
from scipy import stats

from edgegraft.core import pair_ids
from edgegraft.grafting import BestChoice, CandidateStream, Reservoir

N = 16
PAIRS = [(i, j) for i in range(N) for j in range(i + 1, N)]


def counts_of_draws(repeats, k=1, seen=()):
    """Count how often each pair is the k-th draw of a new stream, whatever its seed."""
    counts = dict.fromkeys(PAIRS, 0)
    for seed in range(repeats):
        stream = CandidateStream(N, seed)
        stream.remove(np.reshape(seen, (-1, 2)).astype(int))
        counts[tuple(stream.draw(k)[-1].tolist())] += 1
    return counts


def uniform_over(counts, allowed, repeats):
    assert sum(counts[pair] for pair in allowed) == repeats
    return stats.chisquare([counts[pair] for pair in allowed]).pvalue


@pytest.mark.parametrize("k", [1, 2, 10, 60, 120])
def test_every_draw_is_uniform(k):
    assert uniform_over(counts_of_draws(6000, k), PAIRS, 6000) > 0.001


def test_draws_that_follow_each_other_are_independent():
    """Whether the second pair touches the first: 28 of the 119 others do."""
    touching = 0
    for seed in range(4000):
        first, second = CandidateStream(N, seed).draw(2).tolist()
        touching += bool(set(first) & set(second))
    assert stats.binomtest(touching, 4000, 28 / 119).pvalue > 0.001


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_uniform_when_most_have_been_seen(share):
    order = np.random.default_rng(1).permutation(len(PAIRS))
    seen = [PAIRS[k] for k in order[: round(share * len(PAIRS))]]
    rest = [PAIRS[k] for k in order[round(share * len(PAIRS)) :]]
    assert uniform_over(counts_of_draws(4000, 1, seen), rest, 4000) > 0.001


def test_pairs_of_a_hub_are_uniform():
    counts = dict.fromkeys(PAIRS, 0)
    for seed in range(4000):
        stream = CandidateStream(N, seed)
        stream.boost([3])
        counts[tuple(stream.draw(1)[0].tolist())] += 1
    assert uniform_over(counts, [pair for pair in PAIRS if 3 in pair], 4000) > 0.001


def test_all_pairs_come_once_and_hubs_first():
    n = 300
    boosts = np.random.default_rng(3).integers(0, 4, n).astype(float)
    stream = CandidateStream(n)
    for value in (1.0, 2.0, 3.0):
        stream.boost(np.flatnonzero(boosts == value), value)
    drawn = np.concatenate([stream.draw(1000) for _ in range(n * (n - 1) // 2000 + 1)])
    assert len(np.unique(pair_ids(drawn, n))) == n * (n - 1) // 2
    assert (np.diff(boosts[drawn].sum(axis=1)) <= 0).all()
    assert len(stream.draw(1)) == 0


def test_hubs_beyond_the_budget_leave_their_pairs_unseen(monkeypatch):
    monkeypatch.setattr("edgegraft.grafting.stream._MOST_QUEUED", 40)
    stream = CandidateStream(N)
    stream.boost([1, 2, 3, 4])
    assert (stream.draw(15 + 14) < 3).any(axis=1).all()
    stream.boost([3])
    assert (stream.draw(13) == 3).any(axis=1).all()
    assert len(stream.draw(120)) == stream.n_pairs - 15 - 14 - 13


def test_pair_ids_beyond_32_bits():
    n = 100_000
    edges = CandidateStream(n).draw(20_000)
    assert len(np.unique(pair_ids(edges, n))) == 20_000
    assert (edges[:, 0] < edges[:, 1]).all()
    assert ((edges >= 0) & (edges < n)).all()
    # Each end is uniform over the variables: (mean, sd) of 40,000 uniform numbers.
    assert abs(edges.mean() - n / 2) < 5 * n / np.sqrt(12 * edges.size)


@pytest.mark.parametrize("room", [1, 5, 20, 100, 500])
def test_average_best_rank_of_a_reservoir(room):
    """The paper's first figure: n = 400, 100 trials; E = (C + 1) / (R + 1)."""
    n, trials = 400, 100
    n_pairs = n * (n - 1) // 2
    rng = np.random.default_rng(room)
    rank_of = np.zeros(n * n, np.int64)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    best = []
    for seed in range(trials):
        rank_of[pair_ids(pairs, n)] = rng.permutation(n_pairs) + 1
        reservoir = Reservoir(room)
        edges = CandidateStream(n, seed).draw(room)
        reservoir.offer(edges, -rank_of[pair_ids(edges, n)].astype(float))
        chosen = reservoir.take(BestChoice(1.0).select(reservoir.edges, reservoir.scores))
        best.append(-chosen.scores[0])
    # The standard deviation of the minimum of R ranks is about its mean, as of a geometric
    # variable.
    expected = (n_pairs + 1) / (room + 1)
    assert abs(np.mean(best) - expected) < 3.5 * expected / np.sqrt(trials)
