"""Losses from counts of neighbours' joint states, beside those of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.objective import Pseudolikelihood, bundles
from edgegraft.table import PackedTable

STATES = np.array([2, 2, 3, 5, 2, 1, 4, 2])
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (3, 6)]


@pytest.fixture(autouse=True)
def _count_small_tables(monkeypatch):
    monkeypatch.setattr(bundles, "MIN_CELLS", 0)


def _loss(n_jobs=1, *, weighted=True):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, STATES, (1000, len(STATES)))
    codes[rng.random(codes.shape) < 0.1] = -1
    codes[:, 5], codes[0, :] = 0, STATES - 1
    weights = rng.integers(0, 3, len(codes)) / 2 if weighted else None
    return Pseudolikelihood(PackedTable.from_codes(codes), weights=weights, n_jobs=n_jobs)


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_give_what_the_rows_give(weighted):
    loss, layout = _loss(weighted=weighted), Layout(STATES, EDGES)
    theta = np.random.default_rng(1).normal(size=layout.n_parameters)
    state = loss.init(layout)
    counted = [each for each in state.sources if each.counted is not None]
    n_counted = sum(each.n_bundles for each in counted)
    assert 0 < n_counted < len(STATES)  # variable 3 has too many joint states of neighbours
    found = loss.evaluate(theta, state)
    by_rows = loss.evaluate(theta, loss.init(layout, lanes=1))
    np.testing.assert_allclose(found.value, by_rows.value, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, by_rows.gradient, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.state.losses, by_rows.state.losses, rtol=0, atol=1e-12)


def test_counts_do_not_depend_on_threads():
    layout = Layout(STATES, EDGES)
    theta = np.random.default_rng(2).normal(size=layout.n_parameters)
    one, two = (
        loss.evaluate(theta, loss.init(layout)) for loss in (_loss(n_jobs=1), _loss(n_jobs=2))
    )
    assert one.value == two.value
    np.testing.assert_array_equal(one.gradient, two.gradient)
