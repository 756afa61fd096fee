"""Conditionals of known cells sum over the missing cells of their rows."""

import itertools

import numpy as np
import pytest

from edgegraft.core import Layout, all_pairs
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema


def brute_force(model, row):
    """Return the log-conditionals of the known cells of a row, by the sum over all states."""
    known = np.flatnonzero(row >= 0)
    states = np.array(list(itertools.product(*map(range, model.schema.n_states))))
    chance = np.exp(model.energy(codes=states))
    out = np.full(len(row), np.nan)
    for i in known:
        others = np.setdiff1d(known, i)
        agree = (states[:, others] == row[others]).all(axis=1)
        own = chance[agree & (states[:, i] == row[i])].sum()
        out[i] = np.log(own / chance[agree].sum()) if own > 0 else -np.inf
    return out


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    schema = Schema.from_states([2, 3, 2, 4, 2, 3])
    layout = Layout(schema.n_states, all_pairs(6)[::2])
    return PairwiseMRF(schema, layout.edges, rng.normal(size=layout.n_parameters))


@pytest.fixture(scope="module")
def rows(model):
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, s, 60) for s in model.schema.n_states], axis=1)
    rows[rng.random(rows.shape) < 0.4] = -1
    return rows


def test_gaps_are_summed_over(model, rows):
    found = model.pseudo_log_likelihood(codes=rows, per_variable=True)
    assert np.allclose(found, [brute_force(model, row) for row in rows], equal_nan=True)
    total = model.pseudo_log_likelihood(codes=rows)
    assert np.allclose(total, np.nansum(found, axis=1))


def test_predictions_say_the_same(model, rows):
    found = model.pseudo_log_likelihood(codes=rows, per_variable=True)
    known = rows[:, 3] >= 0
    shares = model.predict_proba(codes=rows[known], target="x3")
    assert np.allclose(np.log(shares[np.arange(known.sum()), rows[known, 3]]), found[known, 3])


def test_large_gaps_are_drawn():
    rng = np.random.default_rng(0)
    pairs = all_pairs(12)
    theta = rng.normal(scale=0.5, size=24 + 4 * len(pairs))
    model = PairwiseMRF(Schema.from_states([2] * 12), pairs, theta)
    rows = rng.integers(0, 2, (20, 12))
    rows[:, :10] = -1  # 1,024 states, of which 512 are drawn
    found = model.pseudo_log_likelihood(codes=rows, per_variable=True)
    error = found - [brute_force(model, row) for row in rows]
    assert 0 < np.nanmax(np.abs(error)) < 0.2
    assert abs(np.nanmean(error)) < 0.03
    again = model.pseudo_log_likelihood(codes=rows, per_variable=True)
    assert np.array_equal(found, again, equal_nan=True)


def test_forbidden_pairs(model, rows):
    theta = model.theta.copy()
    layout = model.layout
    layout.edge(theta, 0)[1, 0] = -np.inf
    layout.edge(theta, 3)[0, :2] = -np.inf
    hard = PairwiseMRF(model.schema, model.edges, theta)
    expected = np.array([brute_force(hard, row) for row in rows])
    possible = ~np.isneginf(expected).any(axis=1)
    found = hard.pseudo_log_likelihood(codes=rows[possible], per_variable=True)
    assert np.allclose(found, expected[possible], equal_nan=True)
    assert 20 < possible.sum() < 60
    never = np.where(np.arange(6) == layout.edges[0, 0], 1, -1)
    never[layout.edges[0, 1]] = 0
    assert np.isneginf(hard.pseudo_log_likelihood(codes=never[None]))
