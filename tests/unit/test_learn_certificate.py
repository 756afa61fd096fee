"""The certificate: exact about what was checked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from edgegraft.learn import certify, grow
from edgegraft.learn.certificate import _sample
from edgegraft.objective import Penalty
from tests.learn_cases import PENALTY, make_loss, make_table, penalised


@pytest.fixture(scope="module")
def unfinished():
    """A run that was stopped at once: many pairs violate."""
    table, _ = make_table(30, 2000)
    return grow(make_loss(table), PENALTY, penalised(max_edges=3))


def count_violating(growth):
    n = len(growth.objective.schema)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    pairs = pairs[~growth.graph.contains(pairs)]
    scores, violates = growth.judge(pairs)
    return len(pairs), int(violates.sum()), float(scores.max())


def test_exhaustive_certificate_counts_every_violation(unfinished):
    found = certify(unfinished)
    n_pairs, n_violating, largest = count_violating(unfinished)
    assert found.exhaustive
    assert (found.n_pairs, found.n_checked, found.n_violating) == (n_pairs, n_pairs, n_violating)
    assert n_violating > 0
    assert found.largest == pytest.approx(largest / PENALTY.penalty - 1)
    assert found.share_bound == n_violating / n_pairs
    assert "of all" in str(found)


def test_sampled_certificate_bounds_the_planted_share(unfinished):
    n_pairs, n_violating, _ = count_violating(unfinished)
    found = certify(unfinished, max_pairs=100)
    assert not found.exhaustive
    assert found.n_checked == 100
    assert found.share_bound > found.n_violating / 100
    assert found.share_bound >= n_violating / n_pairs
    # The bound is where so few hits become as unlikely as 5 %.
    assert binom.cdf(found.n_violating, 100, found.share_bound) == pytest.approx(0.05)
    assert "100 random ones of" in str(found)


def test_sampled_bound_of_nothing_found_is_the_rule_of_three():
    table, _ = make_table(20, 1000)
    growth = grow(make_loss(table), Penalty(1.0), penalised())
    found = certify(growth, max_pairs=100)
    assert found.n_violating == 0
    assert found.share_bound == pytest.approx(1 - 0.05 ** (1 / 100))
    assert found.largest < 0


def test_samples_are_different_inactive_pairs(unfinished):
    edges = _sample(unfinished, 30, 400, np.random.default_rng(0))
    assert len(np.unique(edges, axis=0)) == 400
    assert not unfinished.graph.contains(edges).any()
    assert (edges[:, 0] < edges[:, 1]).all()
