"""Data-driven priorities against plain NumPy, on hostile columns, and against a known truth."""

import numpy as np
import pytest
from scipy import stats

from edgegraft.core import all_pairs, pair_ids
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_regular, make_scale_free
from edgegraft.errors import MemoryBudgetError
from edgegraft.grafting import CandidateStream
from edgegraft.rank import (
    closing_pairs,
    local_field,
    mean_field,
    rank_pairs,
    screen,
)
from edgegraft.rank.correlations import Correlations
from edgegraft.table import PackedTable
from tests.conftest import random_codes


def source_of(codes, **options):
    return PairCounts(PackedTable.from_codes(codes), **options)


def dependent_codes(states, n_rows, seed=0):
    """Columns of which each leans on the one before."""
    rng = np.random.default_rng(seed)
    codes = random_codes(states, n_rows, seed=seed)
    for j in range(1, len(states)):
        copied = rng.random(n_rows) < 0.4
        codes[copied, j] = codes[copied, j - 1] % states[j]
    return codes


def by_pair(ranking, n):
    out = np.full((n, n), np.nan)
    out[ranking.edges[:, 0], ranking.edges[:, 1]] = ranking.strengths
    return out[np.triu_indices(n, 1)]


def average_precision(ranking, truth, n):
    hit = np.isin(pair_ids(ranking.edges, n), pair_ids(truth, n))
    return float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].sum() / len(truth))


def recall(ranking, truth, n):
    return float(np.isin(pair_ids(truth, n), pair_ids(ranking.edges, n)).mean())


def plain_mean_field(codes, states, pseudocount, shrinkage):
    """One-hot covariance of the table mixed with uniform rows, whitened by eigenvectors."""
    n_rows, n = codes.shape
    onehot = np.concatenate([np.eye(s)[codes[:, i]][:, :-1] for i, s in enumerate(states)], axis=1)
    first = np.concatenate(([0], np.cumsum(np.array(states) - 1)))
    uniform = np.repeat(1.0 / np.array(states), np.array(states) - 1)
    second = np.outer(uniform, uniform)
    for i in range(n):
        own = slice(first[i], first[i + 1])
        second[own, own] = np.diag(uniform[own])
    share = pseudocount / (n_rows + pseudocount)
    mean = (1 - share) * onehot.mean(axis=0) + share * uniform
    covariance = (1 - share) * onehot.T @ onehot / n_rows + share * second - np.outer(mean, mean)
    white = np.zeros_like(covariance)
    for i in range(n):
        own = slice(first[i], first[i + 1])
        values, vectors = np.linalg.eigh(covariance[own, own])
        white[own, own] = vectors / np.sqrt(values) @ vectors.T
    matrix = white @ covariance @ white
    inverse = np.linalg.inv((1 - shrinkage) * matrix + shrinkage * np.eye(len(matrix)))
    return np.array(
        [
            np.linalg.norm(inverse[first[i] : first[i + 1], first[j] : first[j + 1]])
            for i, j in all_pairs(n)
        ]
    )


def test_squared_blocks_are_chi_square():
    states = [2, 3, 5, 4]
    codes = dependent_codes(states, 400)
    blocks = Correlations(source_of(codes), pseudocount=0.0).of(all_pairs(4))
    for k, (i, j) in enumerate(all_pairs(4)):
        table = np.zeros((states[i], states[j]))
        np.add.at(table, (codes[:, i], codes[:, j]), 1)
        own = blocks.values[blocks.start[k] : blocks.start[k] + blocks.size[k]]
        expected = stats.chi2_contingency(table, correction=False).statistic / 400
        assert np.isclose((own**2).sum(), expected)


@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_mean_field_is_its_plain_twin(shrinkage):
    states = [2, 3, 5, 4, 2, 3]
    codes = dependent_codes(states, 300)
    ranking = mean_field(source_of(codes), shrinkage=shrinkage)
    expected = plain_mean_field(codes, states, 5.0, shrinkage)
    assert np.allclose(by_pair(ranking, 6), expected, rtol=1e-8)
    assert (np.diff(ranking.strengths) <= 0).all()


def test_a_state_that_never_occurs_changes_nothing():
    codes = dependent_codes([3, 3, 3, 3], 300)
    gap = codes.copy()
    gap[:, 1] = np.array([0, 2, 4])[codes[:, 1]]
    one = mean_field(source_of(codes))
    other = mean_field(source_of(gap))
    assert np.array_equal(one.edges, other.edges)
    assert np.allclose(one.strengths, other.strengths)


def test_local_field_given_all_partners_is_the_mean_field():
    states = [2, 3, 5, 4, 2, 3]
    source = source_of(dependent_codes(states, 300))
    whole = mean_field(source, shrinkage=0.1)
    local = local_field(source, screen(source, 5), shrinkage=0.1)
    assert np.allclose(by_pair(local, 6), by_pair(whole, 6))


def test_mean_field_finds_the_paper_s_graph():
    data = make_scale_free(100, n_rows=10_000, random_state=1)
    ranking = mean_field(source_of(data.X))
    assert average_precision(ranking, data.edges, 100) >= 0.97
    assert recall(ranking.of(np.arange(500)), data.edges, 100) > 0.99


def test_local_form_finds_a_sparse_graph():
    n = 600
    data = make_regular(n, 4, n_rows=5000, couplings="ising", random_state=0, burn_in=200)
    rng = np.random.default_rng(0)
    ranking = rank_pairs(source_of(data.X), rng, max_columns=100)
    assert "local" in ranking.method
    assert len(ranking.edges) == 5 * n
    assert average_precision(ranking, data.edges, n) > 0.98
    assert recall(ranking, data.edges, n) > 0.99


def test_screening_on_a_sample_finds_the_same_pairs():
    n = 200
    data = make_regular(n, 4, n_rows=9000, couplings="ising", random_state=0, burn_in=200)
    source = source_of(data.X)
    exact = screen(source, 8)
    sampled = screen(source, 8, sample_rows=2000, rng=np.random.default_rng(0))
    assert "approximate" in sampled.method
    assert (sampled.partner[:, :4] == exact.partner[:, :4]).mean() > 0.98
    with pytest.raises(ValueError, match="rng"):
        screen(source, 8, sample_rows=2000)


def plain_partners(codes, k):
    strength = np.corrcoef(codes.T) ** 2 - 1 / len(codes)
    np.fill_diagonal(strength, -np.inf)
    order = np.argsort(-strength, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(strength, order, axis=1)


@pytest.mark.parametrize("n", [2, 5, 131, 300])
def test_screening_of_binary_columns(n):
    codes = dependent_codes([2] * n, 500)
    k = min(7, n - 1)
    one = screen(source_of(codes), k)
    two = screen(source_of(codes, n_jobs=2), k)
    by_tables = screen(source_of(codes, weights=np.ones(500)), k)
    partner, strength = plain_partners(codes, k)
    assert np.allclose(one.strength, strength)
    assert np.array_equal(one.partner, two.partner)
    assert np.array_equal(one.strength, two.strength)
    assert np.allclose(one.strength, by_tables.strength)
    # Ties aside, which the two formulas may round apart, the partners are the same.
    assert (one.partner == partner).mean() > 0.95


def test_screening_of_mixed_columns():
    states = [2, 3, 5, 4, 2, 3]
    source = source_of(dependent_codes(states, 300))
    found = screen(source, 2)
    strength = np.full((6, 6), -np.inf)
    values = Correlations(source, pseudocount=0.0).dependence(all_pairs(6))
    strength[np.triu_indices(6, 1)] = values
    strength = np.maximum(strength, strength.T)
    assert np.array_equal(found.partner, np.argsort(-strength, axis=1, kind="stable")[:, :2])


HOSTILE = {
    "one column": np.array([[0], [1], [0]]),
    "two columns": np.array([[0, 1], [1, 0], [0, 0]]),
    "constant": np.array([[0, 1, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0]]),
    "all constant": np.zeros((5, 3), int),
    "identical": np.repeat(np.arange(40)[:, None] % 2, 6, axis=1),
    "one row": np.array([[1, 0, 2]]),
    "a column of missing cells": np.array([[0, -1, 1], [1, -1, 0], [0, -1, 0]]),
    "more columns than rows": random_codes([3] * 30, 10),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["mean field", "local", "auto"])
def test_hostile_columns_have_finite_strengths(name, form):
    source = source_of(HOSTILE[name])
    if form == "mean field":
        ranking = mean_field(source)
    elif form == "local":
        ranking = local_field(source, screen(source, 20))
    else:
        ranking = rank_pairs(source, np.random.default_rng(0), n_top=1000)
    assert np.isfinite(ranking.strengths).all()
    n = HOSTILE[name].shape[1]
    stream = CandidateStream(n)
    assert stream.prioritise(ranking.edges, ranking.priorities()) == len(ranking.edges)
    if name == "identical":
        assert len(ranking.edges) == 15


def test_missing_cells_that_contradict_each_other():
    # Known in pairs only: a = b, b = c, but a and c are opposite. No table has such columns.
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (3, 200))
    unknown = np.full(200, -1)
    codes = np.concatenate(
        (
            np.column_stack((bits[0], bits[0], unknown)),
            np.column_stack((unknown, bits[1], bits[1])),
            np.column_stack((bits[2], unknown, 1 - bits[2])),
        )
    )
    source = source_of(codes)
    for ranking in (
        mean_field(source, shrinkage=0.0),
        local_field(source, screen(source, 2), shrinkage=0.0),
    ):
        assert np.isfinite(ranking.strengths).all()
        assert (ranking.strengths > 0.1).all()


def test_the_form_follows_rows_and_columns():
    rng = np.random.default_rng(0)
    source = source_of(random_codes([3] * 10, 100))
    assert rank_pairs(source, rng).method.startswith("mean field")
    assert rank_pairs(source, rng, max_columns=19).method.startswith("local")
    assert rank_pairs(source_of(random_codes([3] * 10, 99)), rng).method.startswith("local")


def test_mean_field_refuses_what_is_too_large():
    source = source_of(random_codes([5] * 10, 50))
    with pytest.raises(MemoryBudgetError, match="40 columns"):
        mean_field(source, max_columns=39)
    with pytest.raises(ValueError, match="shrinkage"):
        mean_field(source, shrinkage=1.5)


def test_the_top_pairs_are_those_of_the_whole_ranking():
    source = source_of(dependent_codes([3] * 12, 500))
    whole, top = mean_field(source), mean_field(source, 7)
    assert np.array_equal(top.edges, whole.edges[:7])
    assert np.array_equal(top.priorities(), np.arange(-7.0, 0.0))


def test_closing_pairs_are_at_distance_two():
    n = 20
    rng = np.random.default_rng(0)
    edges = all_pairs(n)[rng.choice(n * (n - 1) // 2, 25, replace=False)]
    joined = np.zeros((n, n), int)
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = 1
    common = np.triu((joined @ joined) * (1 - joined), 1)
    expected = sorted(zip(*np.nonzero(common), strict=True), key=lambda p: (-common[p], p))
    assert list(map(tuple, closing_pairs(edges, n).tolist())) == [
        tuple(map(int, p)) for p in expected
    ]


def test_great_hubs_are_not_looked_through():
    star = np.column_stack((np.zeros(200, int), np.arange(1, 201)))
    assert len(closing_pairs(star, 201)) == 0
    assert len(closing_pairs(star, 201, max_degree=200)) == 200 * 199 // 2
    assert closing_pairs(np.empty((0, 2), int), 3).shape == (0, 2)


def test_p_values_of_independent_columns_are_uniform():
    source = source_of(random_codes([2, 3, 4] * 10, 4000, seed=3))
    ranking = mean_field(source, shrinkage=0.0)
    assert stats.kstest(ranking.p_values, "uniform").pvalue > 0.01
    for found in (ranking, local_field(source, screen(source, 8))):
        assert not found.significant.any()
