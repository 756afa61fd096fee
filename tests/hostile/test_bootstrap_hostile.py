"""The bootstrap where there is little to draw from, or it is told to stop."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from edgegraft.errors import DataError, ModelError
from edgegraft.learn import bootstrap as module
from edgegraft.learn import discover
from edgegraft.learn.bootstrap import bootstrap
from edgegraft.table import PackedTable, Schema
from tests.unit.test_bootstrap import make_codes


@pytest.fixture(scope="module")
def table():
    return PackedTable.from_codes(make_codes(n_rows=300))


@pytest.fixture(scope="module")
def found(table):
    return discover(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be a positive number of replicates, found 0"),
        ({"n": 2.5}, "positive number"),
        ({"n": True}, "positive number"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"fdr": 0.0}, "fdr must be above 0"),
        ({"fdr": "none"}, "found 'none'"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_options_are_refused_before_any_work(table, found, options, message, monkeypatch):
    monkeypatch.setattr(module, "Replicator", None)
    with pytest.raises(ValueError, match=message):
        bootstrap(found, table, **options)


def test_other_rows_than_the_fits_are_refused(table, found):
    with pytest.raises(DataError, match="weigh 300 and these weigh 600"):
        bootstrap(found, table, 2, weights=np.full(300, 2.0))
    with pytest.raises(DataError, match="row 7"):
        bootstrap(found, table, 2, weights=np.where(np.arange(300) == 7, -1.0, 1.0))
    other = PackedTable.from_codes(make_codes(4, n_rows=300))
    with pytest.raises(ModelError, match="not those of the fit"):
        bootstrap(found, other, 2)


def test_one_replicate(table, found):
    result = bootstrap(found, table, 1)
    assert result.n == 1
    assert set(result.frequency) <= {0.0, 1.0}
    np.testing.assert_allclose(result.lower, result.upper)


def test_rows_of_no_weight_do_not_matter(table):
    codes = make_codes(n_rows=300)
    rng = np.random.default_rng(0)
    padded = np.concatenate((codes, rng.integers(0, 3, (100, 6))))
    weights = np.concatenate((np.ones(300), np.zeros(100)))
    wider = PackedTable.from_codes(padded, table.schema)
    result = bootstrap(discover(wider, weights=weights), wider, 60, weights=weights)
    plain = bootstrap(discover(table), table, 60)
    m = len(discover(table).model.edges)
    np.testing.assert_array_equal(result.edges[:m], plain.edges[:m])
    np.testing.assert_allclose(result.strength[:m], plain.strength[:m], atol=0.01)
    np.testing.assert_allclose(result.mean_strength[:m], plain.mean_strength[:m], atol=0.15)


def test_a_network_without_edges():
    codes = np.random.default_rng(5).integers(0, 2, (200, 4))
    table = PackedTable.from_codes(codes)
    found = discover(table)
    assert not len(found.model.edges)
    result = bootstrap(found, table, 5)
    assert (result.frequency < 0.5).all()
    assert np.isnan(result.strength).all()


@pytest.mark.filterwarnings("ignore::edgegraft.errors.TooFewRowsWarning")
@pytest.mark.parametrize("codes", [[[0], [1], [1]], [[0, 1]], [[0, 0], [1, 1]]])
def test_tiny_tables(codes):
    table = PackedTable.from_codes(codes, Schema.from_states([2] * len(codes[0])))
    result = bootstrap(discover(table), table, 3)
    assert result.n == 3
    assert len(result.edges) <= 1


def test_columns_that_are_constant_in_some_replicates():
    codes = make_codes(2, n_rows=60)
    codes[:, 3] = 0
    codes[:2, 3] = 1
    table = PackedTable.from_codes(codes)
    result = bootstrap(discover(table), table, 20)
    assert np.isfinite(result.frequency).all()


def test_progress_is_told_and_may_end_it(table, found):
    told = []
    bootstrap(found, table, 4, on_replicate=lambda done, n: told.append((done, n)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.warns(RuntimeWarning, match="asked to stop after 3 of 50 replicates"):
        result = bootstrap(found, table, 50, on_replicate=lambda done, n: done == 3)
    assert result.n == 3


def test_an_interrupt_leaves_the_replicates_done(table, found):
    def interrupt(done, n):
        if done == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="interrupted after 2 of 50"):
        result = bootstrap(found, table, 50, on_replicate=interrupt)
    assert result.n == 2


def test_an_interrupt_before_the_first_replicate_is_passed_on(table, found, monkeypatch):
    def at_once(futures):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "as_completed", at_once)
    with pytest.raises(KeyboardInterrupt):
        bootstrap(found, table, 50)


def test_an_error_of_the_callback_is_passed_on(table, found):
    def fail(done, n):
        raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        bootstrap(found, table, 50, on_replicate=fail)
