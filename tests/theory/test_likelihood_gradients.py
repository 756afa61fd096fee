"""The likelihood and its gradient are consistent with every engine."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.errors import ModelError
from edgegraft.inference import (
    AutoEngine,
    BeliefPropagation,
    ExactEngine,
    GibbsEngine,
    TreeReweighted,
)
from edgegraft.objective import Likelihood
from edgegraft.table import PackedTable
from tests.conftest import count_pair, random_codes
from tests.message_models import enumerate_all

STATES = [2, 3, 4, 2, 3]
LOOP = Layout(STATES, [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)])
ENGINES = {
    "exact": ExactEngine(),
    "auto": AutoEngine(),
    "bp": BeliefPropagation(tol=1e-12, max_iter=5000),
    "trw": TreeReweighted(tol=1e-11, max_iter=20000),
}
KINDS = {"complete": (0.0, False), "missing": (0.15, False), "weighted": (0.1, True)}


def make_counts(kind, n_rows=300):
    missing, weighted = KINDS[kind]
    codes = random_codes(STATES, n_rows, missing, seed=3)
    codes[:20, 1] = codes[:20, 0]  # some dependence
    weights = np.random.default_rng(5).uniform(0, 2, n_rows) if weighted else None
    return PairCounts(PackedTable.from_codes(codes), weights=weights), codes, weights


def draw(scale=0.6, seed=1):
    return scale * np.random.default_rng(seed).normal(size=LOOP.n_parameters)


def test_value_is_the_mean_of_the_rows():
    counts, codes, _ = make_counts("complete")
    loss = Likelihood(counts, ExactEngine())
    theta = draw()
    truth = enumerate_all(theta, LOOP)
    at = {tuple(row): p for row, p in zip(truth.rows.tolist(), truth.probabilities, strict=True)}
    expected = -np.mean([np.log(at[tuple(row)]) for row in codes.tolist()])
    assert loss.evaluate(theta, loss.init(LOOP)).value == pytest.approx(expected, abs=1e-12)


def test_frequencies_with_missing_cells_agree_on_margins_and_keep_odds():
    counts, codes, _ = make_counts("missing", 4000)
    loss = Likelihood(counts, ExactEngine())
    frequencies = loss.init(LOOP).frequencies
    for k, (i, j) in enumerate(LOOP.edges):
        table = LOOP.edge(frequencies, k)
        np.testing.assert_allclose(table.sum(axis=1), LOOP.node(frequencies, i), atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), LOOP.node(frequencies, j), atol=1e-12)
        plain = count_pair(codes, STATES, i, j)
        odds = [np.log(t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0])) for t in (table, plain)]
        assert odds[0] == pytest.approx(odds[1], abs=0.02)


def test_growing_counts_only_what_is_new():
    counts, *_ = make_counts("complete")

    asked = []

    class Spy:
        schema, rows, n_rows, margins = counts.schema, counts.rows, counts.n_rows, counts.margins

        def pairs(self, edges):
            asked.append(len(edges))
            return counts.pairs(edges)

    loss = Likelihood(Spy(), ExactEngine())
    state = loss.init(LOOP)
    grown = LOOP.grow([(0, 2), (1, 4)])
    after = loss.grow(state, grown)
    loss.evaluate(np.zeros(grown.n_parameters), after)
    assert asked == [5, 2]
    np.testing.assert_array_equal(after.frequencies, loss.init(grown).frequencies)


def test_an_engine_without_log_z_is_refused():
    counts, *_ = make_counts("complete")
    with pytest.raises(ModelError, match="no log-partition"):
        Likelihood(counts, GibbsEngine())


def test_a_run_that_does_not_converge_is_not_trusted():
    counts, *_ = make_counts("complete")
    loss = Likelihood(counts, BeliefPropagation(max_iter=1, tol=1e-14))
    found = loss.evaluate(draw(3.0), loss.init(LOOP))
    assert not found.trusted
    assert "did not converge" in found.message
    assert loss.fallback.engine.capabilities.name == "trw"
