"""Sums over rows by PyTorch: those of the kernels, in however many steps."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from edgegraft import GraftedMRF
from edgegraft.config import GraftingSettings, Plan
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.counts import PairCounts, pair_counts
from edgegraft.datasets import make_scale_free
from edgegraft.device import (
    Device,
    device,
    find_device,
    pair_sums,
    partners,
    violations,
)
from edgegraft.errors import MemoryBudgetError, MissingExtraError, SettingError
from edgegraft.learn import Settings, certify, grow
from edgegraft.learn.discovery import discover
from edgegraft.objective import block_sums, scoring
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.rank.correlations import Correlations
from edgegraft.rank.mean_fields import mean_field
from edgegraft.rank.ranking import screen
from edgegraft.scale.cluster import ClusterRows
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import StoredRows, TableRows, as_rows
from tests.cli.running import edgegraft
from tests.conftest import DEVICE, CutTable, random_codes

pytest.importorskip("torch", reason="PyTorch, the extra gpu, is not installed")

STATES = [3, 2, 4, 2, 5, 3]


@pytest.fixture
def there() -> Device:
    found = find_device(DEVICE)
    assert found is not None
    return found


@pytest.fixture(params=["at once", "in steps"])
def room(request, monkeypatch):
    """Memory for everything, or for some of the rows at a time and no product of all pairs."""
    if request.param == "in steps":
        monkeypatch.setattr(Device, "free_bytes", 1 << 16)
        monkeypatch.setattr(pair_sums, "DENSE_STATES", 0)
        monkeypatch.setattr(pair_sums, "_MAX_STATES", 0)


def make_rows(there, missing=0.0, weighted=False, n_rows=400, seed=0):
    codes = random_codes(STATES, n_rows, missing, seed)
    codes[: n_rows // 2, 3] = codes[: n_rows // 2, 1]
    table = PackedTable.from_codes(codes)
    weights = np.random.default_rng(seed).uniform(0, 2, n_rows) if weighted else None
    return TableRows(table, weights), TableRows(table, weights, device=there)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts(there, room, missing, weighted):
    here, elsewhere = make_rows(there, missing, weighted)
    pairs = all_pairs(len(STATES))[::-1, ::-1]
    found, expected = PairCounts(elsewhere).pairs(pairs), PairCounts(here).pairs(pairs)
    assert found.values.dtype == expected.values.dtype
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_and_gradients_of_pairs(there, room, missing, weighted):
    layout = Layout(STATES, [(0, 1), (1, 3), (2, 4), (0, 4)])
    theta = np.random.default_rng(1).normal(size=layout.n_parameters)
    pairs = np.array([(0, 1), (3, 0), (4, 2), (2, 3)])
    expected, found = (Pseudolikelihood(rows) for rows in make_rows(there, missing, weighted))
    for loss in (expected, found):
        loss.at = loss.evaluate(theta, loss.init(layout))
    assert found.at.value == pytest.approx(expected.at.value, rel=1e-12)
    np.testing.assert_allclose(found.at.gradient, expected.at.gradient, atol=1e-12)
    np.testing.assert_allclose(found.at.state.losses, expected.at.state.losses, atol=1e-12)
    scores = [loss.edge_gradients(theta, loss.at.state, pairs).values for loss in (expected, found)]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-12)


def test_the_ranking(there):
    here, elsewhere = make_rows(there, 0.3)
    found, expected = (mean_field(PairCounts(rows)) for rows in (elsewhere, here))
    np.testing.assert_array_equal(found.edges, expected.edges)
    np.testing.assert_allclose(found.strengths, expected.strengths, rtol=1e-9)


@pytest.mark.parametrize("states", [STATES, [2] * 6])
@pytest.mark.parametrize("tile", [2, 4096])
def test_the_strongest_partners(there, states, tile, monkeypatch):
    monkeypatch.setattr(partners, "_TILE", tile)
    monkeypatch.setattr(partners, "CELLS", 8 * tile)
    codes = random_codes(states, 500, seed=6)
    codes[:300, 3] = codes[:300, 1]
    codes[:100, 5] = codes[:100, 0]
    table = PackedTable.from_codes(codes)
    found, expected = (
        screen(PairCounts(TableRows(table, device=where)), 3) for where in (there, None)
    )
    np.testing.assert_allclose(found.strength, expected.strength, atol=1e-6)
    pairs = np.column_stack((np.repeat(np.arange(6), 3), found.partner.ravel()))
    of_pairs = Correlations(PairCounts(table), pseudocount=0.0).dependence(pairs)  # ties differ
    np.testing.assert_allclose(found.strength.ravel(), of_pairs, atol=1e-6)


@pytest.mark.parametrize("k", [3, 12])
def test_the_strongest_partners_of_many_two_state_columns(there, k, monkeypatch):
    monkeypatch.setattr(partners, "BLOCK", 16)
    monkeypatch.setattr(partners, "CELLS", 300)
    monkeypatch.setattr(partners, "_BYTES", 5000)
    rng = np.random.default_rng(7)
    codes = (rng.random((501, 70)) < rng.uniform(0.01, 0.99, 70)).astype(int)
    codes[:, 9], codes[:, 40], codes[0, 9] = 0, codes[:, 3] ^ (rng.random(501) < 0.2), 1
    codes[:, 21] = 0  # constant
    table = PackedTable.from_codes(codes, Schema.from_states([2] * 70))
    found, expected = (
        screen(PairCounts(TableRows(table, device=where)), k) for where in (there, None)
    )
    rest = np.delete(np.arange(70), 21)
    np.testing.assert_allclose(found.strength[rest], expected.strength[rest], atol=1e-12)
    assert found.partner[3, 0] == 40
    assert (found.partner[21] == -1).all()
    assert all(len(set(row)) == k for row in found.partner[rest].tolist())


@pytest.fixture(scope="module")
def data():
    return make_scale_free(12, n_states=[2, 3, 4] * 4, n_rows=1500, random_state=0).X


def test_a_network_is_the_same(data, monkeypatch):
    calls = []
    for module, name in (
        (block_sums, "evaluate_on_device"),
        (scoring, "score_on_device"),
        (pair_counts, "count_on_device"),
    ):
        there = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, there=there, name=name: calls.append(name) or there(*given)
        )
    models = [
        GraftedMRF(device=where, search=GraftingSettings(tol=1e-6), random_state=0).fit(data)
        for where in ("cpu", DEVICE)
    ]
    expected, found = models
    assert len(set(calls)) == 3  # the device was used
    assert len(expected.edges_) > 5
    np.testing.assert_array_equal(found.edges_, expected.edges_)
    assert found.score(data) == pytest.approx(expected.score(data), rel=1e-6)
    strengths = [model.model_.edge_strengths() for model in models]
    # Directions of rare states are held by the ridge alone, within the fit's tolerance.
    np.testing.assert_allclose(strengths[1], strengths[0], atol=5e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_edges", [5, None])
def test_the_certificate_is_of_all_pairs(there, weighted, max_edges, monkeypatch):
    monkeypatch.setattr(partners, "BLOCK", 8)
    monkeypatch.setattr(violations, "CELLS", 100)
    monkeypatch.setattr(violations, "_ROWS", 300)
    rng = np.random.default_rng(4)
    codes = make_scale_free(40, n_states=2, n_rows=1000, random_state=0).X.astype(int)
    codes[:, 7] = rng.random(1000) < 0.01  # rare: its residuals are far from zero in few rows
    weights = rng.uniform(0.5, 2.0, 1000) if weighted else None
    loss = Pseudolikelihood(TableRows(PackedTable.from_codes(codes), weights, device=there))
    search = grow(
        loss, Penalty(0.03, group_weight="noise"), Settings(max_edges=max_edges, random_state=0)
    )
    whole, compared = (certify(search, max_pairs=most) for most in (1000, 50))
    assert compared.exhaustive
    assert compared[:3] == whole[:3]
    assert compared.largest == pytest.approx(whole.largest)
    assert (whole.n_violating > 0) == (max_edges == 5)


def test_too_many_violating_pairs_leave_a_sample(there, monkeypatch):
    monkeypatch.setattr("edgegraft.learn.certificate._MOST", 0)
    monkeypatch.setattr("edgegraft.learn.certificate._PER_COLUMN", 0)
    codes = make_scale_free(30, n_states=2, n_rows=1000, random_state=0).X.astype(int)
    loss = Pseudolikelihood(TableRows(PackedTable.from_codes(codes), device=there))
    found = certify(
        grow(loss, Penalty(0.01, group_weight="noise"), Settings(max_edges=2)), max_pairs=50
    )
    assert (found.n_checked, found.exhaustive) == (50, False)


def test_rows_in_blocks_are_passed_over_on_the_device(data, there):
    table = PackedTable.from_codes(data.astype(int))
    rows = StoredRows(CutTable(table), n_jobs=2)
    plan = Plan(device=DEVICE)
    found, expected = (discover(rows, each, sample_rows=700) for each in (plan, Plan()))
    np.testing.assert_array_equal(found.model.edges, expected.model.edges)
    assert as_rows(rows, device=there).device == there


def test_the_command_line(data, tmp_path):
    path = tmp_path / "table.csv"
    np.savetxt(path, data, "%d", ",", header=",".join(f"x{i}" for i in range(12)), comments="")
    done = edgegraft("learn", path, "-o", tmp_path / "model", "--device", DEVICE, "--json")
    assert done.returncode == 0, done.stderr
    done = edgegraft("learn", path, "-o", tmp_path / "model", "--device", "tpu")
    assert done.returncode == 2


def test_no_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    device._has_gpu.cache_clear()
    assert find_device("auto") is None
    with pytest.raises(MissingExtraError, match=r"edgegraft\[gpu\]"):
        find_device("cuda")
    device._has_gpu.cache_clear()


def test_no_gpu(monkeypatch):
    monkeypatch.setattr(device, "_has_gpu", lambda: False)
    with pytest.raises(SettingError, match="finds no GPU"):
        GraftedMRF(device="cuda").fit(np.eye(4, dtype=int))
    with pytest.raises(ValueError, match="device"):
        GraftedMRF(device="tpu").fit(np.eye(4, dtype=int))


def test_too_little_memory_is_known_before(monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", 100)
    with pytest.raises(MemoryBudgetError, match=r"the table would take .* of the GPU's memory"):
        Device("cuda").check(1000, "the table")


def test_rows_on_a_cluster_stay_there(there):
    rows = object.__new__(ClusterRows)
    rows.device = None
    with pytest.raises(SettingError, match="rows on a cluster"):
        as_rows(rows, device=there)
