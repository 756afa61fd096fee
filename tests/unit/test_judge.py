"""Verdicts on pairs: p-values of nulls, quick verdicts and ratios, memory, and both ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from edgegraft.conditional.admission import dismiss
from edgegraft.conditional.conditional import Conditional
from edgegraft.conditional.judge import UNTESTABLE, Judge, Level, Network, Verdicts
from edgegraft.conditional.survey_design import SurveyDesign, weigh
from edgegraft.learn.doubt import significant
from tests.judge_cases import TRIANGLE, network_of, rows_of, side_by_side, verdicts_of


def chain(rng, n_rows, states, stay=0.5, n=3):
    """Return columns with uneven margins, each a noisy copy of the one before."""
    p = 0.6 ** np.arange(states)
    codes = rng.choice(states, (n_rows, n), p=p / p.sum())
    for j in range(1, n):
        codes[:, j] = np.where(rng.random(n_rows) < stay, codes[:, j - 1], codes[:, j])
    return codes


def assert_uniform(p):
    assert kstest(p, "uniform").pvalue > 1e-3
    assert (p < 0.01).mean() < 0.03  # three times the nominal rate would be far too many


def ends_of_chains(codes, edges, **options):
    """Return the p-values of the ends of chains, given the middle."""
    found = verdicts_of(rows_of(codes, **options), edges)
    assert (found.p_value[[0, 2]] < 1e-4).all()
    return found.p_value[1::3]


@pytest.mark.parametrize("states", [2, 3])
def test_null_pairs_have_uniform_p_values(states):
    rng = np.random.default_rng(states)
    assert_uniform(ends_of_chains(*side_by_side(lambda: chain(rng, 500, states), 400)))


@pytest.mark.parametrize("states", [2, 3])
def test_null_pairs_under_sampling_weights(states):
    rng = np.random.default_rng(10 + states)
    codes, edges = side_by_side(lambda: chain(rng, 900, states), 400)
    weights = weigh(rng.lognormal(0, 0.7, 900)).weights
    assert_uniform(ends_of_chains(codes, edges, weights=weights, sampling=True))
    # As numbers of rows the same weights would let chance pass.
    plain = ends_of_chains(codes, edges, weights=weights * 900 / weights.sum())
    assert (plain < 0.05).mean() > 0.08


@pytest.mark.parametrize("states", [2, 3])
def test_null_pairs_in_clusters(states):
    rng = np.random.default_rng(20 + states)
    cluster = np.repeat(np.arange(45), 20)

    def draw():
        shares = rng.dirichlet(np.ones(states), (45, 2)).cumsum(axis=2)
        return (rng.random((900, 2, 1)) > shares[cluster]).sum(axis=2)

    codes, edges = side_by_side(draw, 400, [(0, 1)])
    survey = SurveyDesign.of(900, clusters=cluster)
    p = verdicts_of(rows_of(codes, [states] * 800, survey=survey), edges).p_value
    assert kstest(p, "uniform", alternative="greater").pvalue > 0.01
    assert (p < 0.05).mean() < 0.08
    plain = verdicts_of(rows_of(codes, [states] * 800), edges).p_value
    assert (plain < 0.05).mean() > 2 * (p < 0.05).mean()


@pytest.mark.parametrize("states", [2, 3])
def test_null_pairs_beside_drawn_cells(states):
    """A middle that is missing is drawn given both ends; ends that are missing are no evidence."""
    rng = np.random.default_rng(30 + states)
    codes, edges = side_by_side(lambda: chain(rng, 700, states), 400)
    drawn = rng.random(codes.shape) < 0.3
    p = 0.6 ** np.arange(states)
    stay = 0.5 * np.eye(states) + 0.5 * p / p.sum()
    for k in range(400):
        first, middle, last = codes[:, 3 * k : 3 * k + 3].T
        chance = (stay[first] * stay[:, last].T).cumsum(axis=1)
        again = (rng.random((700, 1)) * chance[:, -1:] > chance).sum(axis=1)
        codes[:, 3 * k + 1] = np.where(drawn[:, 3 * k + 1], again, middle)
        for end in (3 * k, 3 * k + 2):  # nonsense, for it must not count
            codes[drawn[:, end], end] = 0
    assert_uniform(ends_of_chains(codes, edges, drawn=drawn))


def test_cells_that_are_missing_do_not_join_the_ends_of_a_chain():
    rng = np.random.default_rng(40)
    codes, edges = side_by_side(lambda: chain(rng, 900, 3), 200)
    codes[rng.random(codes.shape) < 0.15] = -1
    assert_uniform(ends_of_chains(codes, edges))


def network():
    """Return rows of a chain of twelve columns with weak and strong links, and edges to judge."""
    rng = np.random.default_rng(50)
    codes = np.empty((1500, 12), int)
    codes[:, 0] = rng.integers(0, 3, 1500)
    for j in range(1, 12):
        same = rng.random(1500) < (0.03, 0.1, 0.3, 0.8)[j % 4]
        codes[:, j] = np.where(same, codes[:, j - 1], rng.integers(0, 3, 1500))
    edges = [(j, j + 1) for j in range(11)] + [(j, j + 2) for j in range(10)]
    return rows_of(codes), edges


LEVEL = Level(0.05, 66)


@pytest.mark.parametrize("familywise", [False, True])
@pytest.mark.parametrize("kinds", [None, ["ordinal"] * 12])
def test_a_quick_verdict_is_on_the_side_of_its_ratio(familywise, kinds, monkeypatch):
    rows, edges = network()
    if kinds:
        rows = rows_of(rows.codes.T.astype(int), kinds=kinds)
    ratios = verdicts_of(rows, edges)
    level = Level(0.05, 66, familywise)
    judge = Judge(rows, level)
    monkeypatch.setattr(judge, "_ratio", lambda *_: None)
    steps = judge.ask(network_of(12, edges), edges)
    outside = [(i, j) for i in range(12) for j in range(i + 3, 12)]
    scores = judge.ask(network_of(12, edges), outside)  # beside the fits that are there
    others = Judge(rows).ask(network_of(12, edges), outside)
    low, high = level.range(len(edges) + len(outside))
    sides = set()
    for quick, p in zip(
        [*steps, *scores], [*ratios.p_value, *(each.p_value for each in others)], strict=True
    ):
        if quick is not None:
            assert (quick.p_value <= low) == (p <= low)
            assert (quick.p_value <= high) == (p <= high)
            sides.add(bool(p <= low))
    assert sides == {False, True}
    assert sum(quick is not None for quick in scores) > len(outside) / 2


def test_verdicts_do_not_depend_on_threads():
    rows, edges = network()
    one, two = (verdicts_of(rows, edges, level=LEVEL, n_jobs=n) for n in (1, 2))
    for column, same in zip(one, two, strict=True):
        np.testing.assert_array_equal(column, same)


def test_a_verdict_is_remembered_until_its_neighbours_change(monkeypatch):
    rows, edges = network()
    judge, beside = Judge(rows), network_of(12, edges)
    first = judge.ask(beside, edges)
    beside.drop({(0, 1), (5, 7)})
    left = sorted(beside.edges)
    asked = []
    whole = Conditional.within
    monkeypatch.setattr(
        Conditional, "within", lambda self, *rest: asked.append(self.target) or whole(self, *rest)
    )
    again = judge.ask(beside, left)
    assert 0 < len(set(asked)) < 8
    fresh = Judge(rows).ask(beside, left)
    for one, other in zip(again, fresh, strict=True):
        assert one.dof == other.dof
        assert one.statistic == pytest.approx(other.statistic, rel=1e-3, abs=0.02)
    beside.add({(0, 1), (5, 7)})
    back = dict(zip(edges, judge.ask(beside, edges), strict=True))
    assert back == dict(zip(edges, first, strict=True))


def test_an_addition_is_judged_as_if_it_were_the_only_one():
    rows, edges = network()
    added = [(0, 3), (0, 4), (3, 4)]
    found = Judge(rows).ask(network_of(12, edges), added)
    for pair, verdict in zip(added, found, strict=True):
        (alone,) = Judge(rows).ask(network_of(12, [*edges, pair]), [pair])
        assert verdict == alone


def test_a_marginal_ratio_is_that_of_a_table():
    codes = chain(np.random.default_rng(60), 2000, 3, 0.1, n=2)
    counts = np.bincount(3 * codes[:, 0] + codes[:, 1], minlength=9).reshape(3, 3)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / 2000
    ratio = 2.0 * (counts * np.log(counts / expected)).sum()
    found = verdicts_of(rows_of(codes), [(0, 1)])
    assert found.dof.tolist() == [4]
    assert found.statistic[0] == pytest.approx(ratio * (1 - 3 / 2000), abs=0.1)
    assert found.p_value[0] == pytest.approx(chi2.sf(found.statistic[0], 4), rel=1e-9)


def test_of_two_ends_the_one_that_can_tell_is_asked():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (150, 41))
    codes[:, 1] = np.where(rng.random(150) < 0.8, codes[:, 0], codes[:, 1])
    found = verdicts_of(rows_of(codes), [(0, j) for j in range(1, 41)])
    assert (found.dof > 0).all()
    assert np.flatnonzero(found.p_value < 1e-4).tolist() == [0]


def test_a_conditional_with_too_few_rows_tells_nothing():
    codes = chain(np.random.default_rng(0), 60, 3, n=12)
    every = [(i, j) for i in range(12) for j in range(i + 1, 12)]
    for level in (None, LEVEL):
        assert set(Judge(rows_of(codes), level).ask(network_of(12, every), every)) == {UNTESTABLE}
    few = np.where(np.arange(60)[:, None] < 50, -1, codes[:, :3])
    assert verdicts_of(rows_of(few, [3] * 3), TRIANGLE).dof.tolist() == [0, 0, 0]


def test_levels_lie_between_one_discovery_and_all():
    assert Level(0.05, 100).range(20) == pytest.approx((5e-4, 1e-2))
    assert Level(0.05, 100, familywise=True).range(20) == pytest.approx((5e-4, 5e-4))
    assert Level(0.05, 0).range(0) == pytest.approx((0.05, 0.05))


def test_a_network_knows_its_neighbours():
    found = Network(4, np.array([(0, 1), (1, 2)]))
    found.add({(2, 3)})
    found.drop({(0, 1)})
    assert found.beside == [set(), {2}, {1, 3}, {2}]
    assert found.edges == {(1, 2), (2, 3)}


def test_no_verdicts_are_empty_columns():
    assert [len(column) for column in Verdicts.of([])] == [0] * 5


def test_a_stand_in_is_not_significant_beside_the_pair_that_it_stands_for():
    rows = rows_of(chain(np.random.default_rng(2), 1000, 2))
    network = network_of(3, [(0, 1), (0, 2), (1, 2)])
    dismiss(network, Judge(rows, LEVEL), significant, frozenset([(1, 2)]))
    assert network.edges == {(0, 1), (1, 2)}
