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
from tests.unit.test_bootstrap import make_codes, replicated


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
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_options_are_refused_before_any_work(table, found, options, message, monkeypatch):
    monkeypatch.setattr(module, "Replicated", None)
    with pytest.raises(ValueError, match=message):
        replicated(found, table, **({"n": 9} | options))


def test_other_rows_than_the_fits_are_refused(table, found):
    with pytest.raises(DataError, match="row 7"):
        bootstrap(found.model, table, 2, weights=np.where(np.arange(300) == 7, -1.0, 1.0))
    other = PackedTable.from_codes(make_codes(4, n_rows=300))
    with pytest.raises(ModelError, match="differ from the fit's"):
        bootstrap(found.model, other, 2)


def test_rows_of_no_weight_do_not_matter(table):
    codes = make_codes(n_rows=300)
    rng = np.random.default_rng(0)
    padded = np.concatenate((codes, rng.integers(0, 3, (100, 6))))
    weights = np.concatenate((np.ones(300), np.zeros(100)))
    wider = PackedTable.from_codes(padded, table.schema)
    result = replicated(discover(wider, weights=weights), wider, 60, weights=weights)
    plain = replicated(discover(table), table, 60)
    m = len(discover(table).model.edges)
    np.testing.assert_array_equal(result.edges[:m], plain.edges[:m])
    np.testing.assert_allclose(result.strength[:m], plain.strength[:m], atol=0.01)
    np.testing.assert_allclose(result.upper[:m], plain.upper[:m], atol=0.01)


def test_a_network_without_edges():
    codes = np.random.default_rng(5).integers(0, 2, (200, 4))
    table = PackedTable.from_codes(codes)
    found = discover(table)
    assert not len(found.model.edges)
    result = replicated(found, table, 5)
    assert (result.frequency < 0.5).all()
    assert np.isnan(result.strength).all()


@pytest.mark.filterwarnings("ignore::edgegraft.errors.TooFewRowsWarning")
@pytest.mark.parametrize("codes", [[[0], [1], [1]], [[0, 1]], [[0, 0], [1, 1]]])
def test_tiny_tables(codes):
    table = PackedTable.from_codes(codes, Schema.from_states([2] * len(codes[0])))
    result = replicated(discover(table), table, 3)
    assert result.n == 3
    assert len(result.edges) <= 1


def test_columns_that_are_constant_in_some_replicates():
    codes = make_codes(2, n_rows=60)
    codes[:, 3] = 0
    codes[:2, 3] = 1
    table = PackedTable.from_codes(codes)
    result = replicated(discover(table), table, 20)
    assert np.isfinite(result.frequency).all()


def test_progress_is_told_and_may_end_it(table, found, monkeypatch):
    monkeypatch.setattr(module, "_RULE", module._Rule(chunk=4))
    told, n = [], found.model.n_edges + 12  # and two others per column
    plain = replicated(found, table, 9, on_pairs=lambda done, n: told.append((done, n)))
    assert told == [(min(k, n), n) for k in range(4, n + 4, 4)]
    assert np.isfinite(plain.frequency).all()
    with pytest.warns(RuntimeWarning, match=f"asked to stop after 4 of {n} pairs"):
        result = replicated(found, table, 9, on_pairs=lambda done, n: True)
    np.testing.assert_array_equal(result.frequency[:2], plain.frequency[:2])


def test_an_interrupt_leaves_the_pairs_done(table, found, monkeypatch):
    monkeypatch.setattr(module, "_RULE", module._Rule(chunk=1))

    def interrupt(done, n):
        if done == 1:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(RuntimeWarning, match="interrupted after 1 of"):
        result = replicated(found, table, 9, on_pairs=interrupt)
    assert np.isfinite(result.frequency).tolist() == [k < 1 for k in range(found.model.n_edges)]
    assert np.isfinite(result.upper).all()


def test_parts_of_the_replicates_are_as_good_as_all(table, found, monkeypatch):
    whole = replicated(found, table, 9)
    monkeypatch.setattr(module, "_RULE", module._Rule(nbytes=8 * table.n_rows * 4))
    parts = replicated(found, table, 9)
    np.testing.assert_array_equal(parts.frequency, whole.frequency)
