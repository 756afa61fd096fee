"""Under the null, p-values are uniform or larger: many small tables, judged side by side."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from edgegraft.conditional import judge
from edgegraft.conditional.judge import DesignEffects
from edgegraft.learn import edge_tests
from edgegraft.learn.edge_tests import q_values
from edgegraft.table import PackedTable
from edgegraft.table.numbers import scores_of
from tests.judge_cases import TRIANGLE, fit_edges, rows_of, side_by_side, verdicts_of


def chain(rng, n_rows, states, stay=0.5):
    """Return x0 -> x1 -> x2 with uneven margins: given x1, the ends are independent."""
    p = 0.6 ** np.arange(states)
    codes = rng.choice(states, (n_rows, 3), p=p / p.sum())
    for j in (1, 2):
        codes[:, j] = np.where(rng.random(n_rows) < stay, codes[:, j - 1], codes[:, j])
    return codes


def judge_chains(states, n_rows, n_blocks, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)

    def draw():
        codes = chain(rng, n_rows, states)
        codes[rng.random(codes.shape) < missing] = -1
        return codes

    codes, edges = side_by_side(draw, n_blocks)
    null = np.tile([False, True, False], n_blocks)
    return verdicts_of(rows_of(codes), edges), null


def assert_uniform(p):
    assert kstest(p, "uniform").pvalue > 0.01
    assert (p < 0.01).mean() < 0.03  # three times the nominal rate would be far too many


def test_chains_of_more_states():
    found, null = judge_chains(4, 700, 120)
    assert found.dof[null].mean() > 8
    assert_uniform(found.p_value[null])


def test_the_false_discovery_rate_is_kept():
    found, null = judge_chains(3, 500, 200)
    kept = q_values(found.p_value, 600 * 599 // 2) <= 0.05
    assert kept[~null].mean() > 0.99
    assert (kept & null).sum() / kept.sum() < 0.05


def test_rare_states():
    rng = np.random.default_rng(1)
    p = np.array([0.9, 0.06, 0.025, 0.01, 0.005])

    def draw():
        middle = rng.choice(5, 1000, p=p)
        ends = [np.where(rng.random(1000) < 0.3, middle, rng.choice(5, 1000, p=p)) for _ in "ab"]
        return np.column_stack((ends[0], middle, ends[1]))

    codes, edges = side_by_side(draw, 120)
    found = verdicts_of(rows_of(codes), edges)
    p_values = found.p_value[1::3]
    assert found.dof[1::3].mean() < 8  # of 16
    assert (p_values < 0.05).mean() < 0.08
    assert (p_values < 0.01).mean() < 0.025


def draw_wrong(rng, n_rows):
    """Return y, a, b: a and b act on y only together, and a not at all on average.

    The best pairwise model has no table of a and y, but its conditional of y is wrong, and its
    variance of the score of that table is too small.
    """
    a, b = (rng.random((2, n_rows)) < [[0.1], [0.2]]).astype(int)
    share = np.array([[0.5, 0.02], [0.26, 0.98]])[a, b]
    return np.column_stack((rng.random(n_rows) < share, a, b)).astype(int)


def test_a_wrong_model_does_not_inflate_significance(monkeypatch):
    rng = np.random.default_rng(7)
    codes, edges = side_by_side(lambda: draw_wrong(rng, 1500), 600)
    rows = rows_of(codes)
    robust = verdicts_of(rows, edges).p_value[0::3]
    assert (robust < 0.05).mean() < 0.08
    assert (robust < 0.01).mean() < 0.025
    # Without the variance over rows it would reject too often, so the assertion above can fail.
    monkeypatch.setattr(judge, "design_effects", lambda *_: DesignEffects(np.ones(1), 1.0))
    assert (verdicts_of(rows, edges).p_value[0::3] < 0.05).mean() > 0.1


def test_more_rows_make_a_true_edge_more_significant():
    rng = np.random.default_rng(4)
    codes = chain(rng, 4000, 3, stay=0.1)
    q = []
    for n_rows in (250, 1000, 4000):
        table = PackedTable.from_codes(codes[:n_rows])
        q.append(edge_tests(table, fit_edges(table, TRIANGLE)).q_value[0])
    assert q[0] > q[1] > q[2]


def judge_levels(trend, n_rows=400, n_blocks=120, seed=0):
    """Test the pairs of three columns of levels, two of them along a trend that is linear."""
    rng = np.random.default_rng(seed)
    p = np.array([0.35, 0.3, 0.2, 0.1, 0.05])
    score = scores_of(p, 1)[:, 0]
    joint = np.outer(p, p) * np.exp(trend * np.outer(score, score))
    for _ in range(50):  # until both have the margin that their scores are of
        joint *= (p / joint.sum(axis=1))[:, None]
        joint *= p / joint.sum(axis=0)
    codes = np.empty((n_rows, 3 * n_blocks), np.int64)
    for k in range(n_blocks):
        pair = rng.choice(25, n_rows, p=joint.ravel())
        codes[:, 3 * k : 3 * k + 2] = np.stack((pair // 5, pair % 5), axis=1)
        codes[:, 3 * k + 2] = rng.choice(5, n_rows, p=p)
    edges = [(3 * k + i, 3 * k + j) for k in range(n_blocks) for i, j in TRIANGLE]
    rows = rows_of(codes, kinds=["ordinal"] * (3 * n_blocks))
    return verdicts_of(rows, edges), np.tile([True, False, False], n_blocks)


def test_both_groups_of_ordered_columns_without_a_trend():
    found, _ = judge_levels(0.0)
    assert_uniform(found.p_linear)
    assert_uniform(found.p_rest)
    assert kstest(found.p_value, "uniform", alternative="greater").pvalue > 0.01


def test_the_rest_of_a_trend_that_is_linear_is_chance():
    found, linear = judge_levels(0.6)
    assert (found.p_linear[linear] < 1e-6).all()
    assert_uniform(found.p_rest[linear])
    assert_uniform(found.p_linear[~linear])
