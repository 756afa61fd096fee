"""All pairs from one matrix product, against the sums of single pairs and a plain twin."""

import numpy as np
import pytest

from edgegraft.conditional.features import Features
from edgegraft.objective import Pseudolikelihood, block_sums, scoring
from edgegraft.objective.block_sums import columns_of
from tests import pseudolikelihood_twin as twin

STATES = [2, 3, 1, 5, 6, 4, 9, 2, 20, 3]


def make_case(share_missing, precision, *, n_rows=5000, max_bytes=1 << 28, n_jobs=1):
    codes, table, layout, theta = twin.make_case(STATES, n_rows, share_missing, 0.1, seed=1)
    weights = np.random.default_rng(1).random(n_rows)
    loss = Pseudolikelihood(
        table, weights=weights, precision=precision, max_bytes=max_bytes, n_jobs=n_jobs
    )
    return loss, layout, theta, (codes, weights)


def every_pair():
    """Return all pairs, every other one turned round."""
    i, j = np.triu_indices(len(STATES), 1)
    turned = (i + j) % 2 == 1
    return np.stack((np.where(turned, j, i), np.where(turned, i, j)), axis=1)


def plain_features(states):
    return Features(states, states, np.zeros(len(states) + 1, np.int64), np.zeros(0), np.zeros(0))


def gradients(loss, layout, theta, edges):
    at = loss.evaluate(theta, loss.init(layout))
    return loss.edge_gradients(theta, at.state, edges), at.state.known.pairs.residuals


@pytest.mark.parametrize(("precision", "close"), [("double", 1e-14), ("single", 1e-6)])
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_products_give_what_single_pairs_give(monkeypatch, share_missing, precision, close):
    loss, layout, theta, _ = make_case(share_missing, precision)
    monkeypatch.setattr(scoring, "price", lambda *_: np.inf)
    single, residuals = gradients(loss, layout, theta, every_pair())
    assert residuals.whole is None
    monkeypatch.setattr(scoring, "price", lambda *_: 0.0)
    whole, residuals = gradients(loss, layout, theta, every_pair())
    assert residuals.whole is not None
    np.testing.assert_allclose(whole.values, single.values, rtol=0, atol=close)


def test_products_give_the_gradient_of_the_definition(monkeypatch):
    loss, layout, theta, (codes, weights) = make_case(0.1, "double", n_rows=400)
    monkeypatch.setattr(scoring, "price", lambda *_: 0.0)
    edges = every_pair()
    found, _ = gradients(loss, layout, theta, edges)
    one_hot, left, _ = twin.residuals(codes, layout, theta, weights)
    for k, (i, j) in enumerate(edges):
        expected = -(left[i].T @ one_hot[j] + one_hot[i].T @ left[j]) / weights.sum()
        np.testing.assert_allclose(found[k], expected, rtol=0, atol=1e-12)


def test_products_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(scoring, "price", lambda *_: 0.0)
    monkeypatch.setattr(block_sums, "_ROWS", 512)
    found = [
        gradients(*make_case(0.1, "single", n_jobs=n_jobs)[:3], every_pair())[0].values
        for n_jobs in (1, 3)
    ]
    assert np.array_equal(*found)


def test_later_batches_look_them_up(monkeypatch):
    """The price is paid once: what was asked for before counts towards it."""
    loss, layout, theta, _ = make_case(0.0, "single")
    monkeypatch.setattr(scoring, "price", lambda *_: 20.0)
    at = loss.evaluate(theta, loss.init(layout))
    edges = every_pair()
    loss.edge_gradients(theta, at.state, edges[:1])
    assert at.state.known.pairs.residuals.whole is None
    before = loss.edge_gradients(theta, at.state, edges)
    whole = at.state.known.pairs.residuals.whole
    assert whole is not None
    after = loss.edge_gradients(theta, at.state, edges[:3])
    assert at.state.known.pairs.residuals.whole is whole
    assert np.array_equal(after.values, before.values[: len(after.values)])


def test_without_room_for_residuals_single_pairs_are_summed(monkeypatch):
    loss, layout, theta, _ = make_case(0.0, "double", max_bytes=10_000)
    monkeypatch.setattr(scoring, "price", lambda *_: 0.0)
    found, residuals = gradients(loss, layout, theta, every_pair())
    assert residuals.whole is None
    roomy, _ = gradients(*make_case(0.0, "double")[:3], every_pair())
    np.testing.assert_allclose(found.values, roomy.values, rtol=0, atol=1e-14)


def test_too_many_products_have_no_price():
    loss, *_ = make_case(0.0, "single", n_rows=50)
    columns = columns_of(loss.rows, np.float32)
    states = columns.states
    assert np.isfinite(block_sums.price(columns, plain_features(states)))
    assert block_sums.price(columns, plain_features(np.full(3, 2000))) == np.inf
