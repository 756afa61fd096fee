"""Unseen pairs are drawn uniformly; the best pair of a reservoir has the expected rank."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import stats

from edgegraft.core.pairs import pair_ids
from edgegraft.grafting import BestChoice, CandidateStream, Reservoir

N = 16
PAIRS = [(i, j) for i in range(N) for j in range(i + 1, N)]


def counts_of_first(make, repeats, k=1):
    """Count how often each pair is the k-th draw of a new stream."""
    rng = np.random.default_rng(7)
    counts = dict.fromkeys(PAIRS, 0)
    for _ in range(repeats):
        counts[tuple(make().draw(k, rng)[-1].tolist())] += 1
    return counts


def uniform_over(counts, allowed, repeats):
    assert sum(counts[pair] for pair in allowed) == repeats
    return stats.chisquare([counts[pair] for pair in allowed]).pvalue


@pytest.mark.parametrize("full", [False, True])
def test_the_first_draw_is_uniform(full):
    counts = counts_of_first(lambda: CandidateStream(N, full=full), 6000)
    assert uniform_over(counts, PAIRS, 6000) > 0.001


def test_the_tenth_draw_is_uniform():
    counts = counts_of_first(lambda: CandidateStream(N), 6000, k=10)
    assert uniform_over(counts, PAIRS, 6000) > 0.001


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_uniform_when_most_have_been_seen(share):
    order = np.random.default_rng(1).permutation(len(PAIRS))
    seen = [PAIRS[k] for k in order[: round(share * len(PAIRS))]]
    rest = [PAIRS[k] for k in order[round(share * len(PAIRS)) :]]
    stream = _without(seen)
    counts = counts_of_first(lambda: deepcopy(stream), 4000)
    assert uniform_over(counts, rest, 4000) > 0.001


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_uniform_within_a_level_of_several_class_pairs(share):
    # Boosts 3, 2, 1, 0: level 3 has the class pairs (3, 0) and (2, 1).
    boosts = np.repeat([3.0, 2.0, 1.0, 0.0], 4)
    level = [pair for pair in PAIRS if boosts[list(pair)].sum() == 3]
    above = [pair for pair in PAIRS if boosts[list(pair)].sum() > 3]
    order = np.random.default_rng(2).permutation(len(level))
    seen = [level[k] for k in order[: round(share * len(level))]]
    stream = _without(above + seen)
    for value in (1.0, 2.0, 3.0):
        stream.boost(np.flatnonzero(boosts == value), value)
    counts = counts_of_first(lambda: deepcopy(stream), 4000)
    assert uniform_over(counts, [p for p in level if p not in seen], 4000) > 0.001


def test_all_pairs_come_once_and_level_by_level():
    n = 300
    rng = np.random.default_rng(3)
    boosts = rng.integers(0, 4, n).astype(float)
    stream = CandidateStream(n)
    for value in (1.0, 2.0, 3.0):
        stream.boost(np.flatnonzero(boosts == value), value)
    drawn = np.concatenate([stream.draw(1000, rng) for _ in range(n * (n - 1) // 2000 + 1)])
    assert len(np.unique(pair_ids(drawn, n))) == n * (n - 1) // 2
    assert (np.diff(boosts[drawn].sum(axis=1)) <= 0).all()
    assert len(stream.draw(1, rng)) == 0


def test_pair_ids_beyond_32_bits():
    n = 100_000
    stream = CandidateStream(n)
    edges = stream.draw(20_000, np.random.default_rng(0))
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
    for _ in range(trials):
        rank_of[pair_ids(pairs, n)] = rng.permutation(n_pairs) + 1
        reservoir = Reservoir(room)
        edges = CandidateStream(n).draw(room, rng)
        reservoir.offer(edges, -rank_of[pair_ids(edges, n)].astype(float))
        chosen = reservoir.take(BestChoice(1.0).select(reservoir.edges, reservoir.scores))
        best.append(-chosen.scores[0])
    # The standard deviation of the minimum of R ranks is about its mean, as of a geometric
    # variable.
    expected = (n_pairs + 1) / (room + 1)
    assert abs(np.mean(best) - expected) < 3.5 * expected / np.sqrt(trials)


def _without(seen):
    stream = CandidateStream(N)
    stream.remove(seen)
    return stream
