"""Protocol of backends: their sums over rows are those of the kernels, in any number of steps."""

from __future__ import annotations

import importlib.metadata
import sys
from dataclasses import replace

import numpy as np
import pytest

from edgegraft import GraftedMRF, plugins
from edgegraft.config import GraftingSettings, Plan
from edgegraft.core import Layout, all_pairs, find_pairs
from edgegraft.core.backend import Backend, find_backend
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_scale_free
from edgegraft.device import TorchBackend, device, pair_fit
from edgegraft.device.device import Device
from edgegraft.errors import MemoryBudgetError, MissingExtraError, SettingError
from edgegraft.ingest import pack
from edgegraft.learn import discover
from edgegraft.objective import Penalty, Pseudolikelihood
from edgegraft.objective.penalty import norms_of
from edgegraft.optimize import minimize
from edgegraft.rank import screen
from edgegraft.rank.correlations import Correlations
from edgegraft.rank.mean_fields import penalised_fit
from edgegraft.scale.cluster import ClusterRows
from edgegraft.table import PackedTable, StoredRows, TableRows
from edgegraft.table.blocks import as_rows
from tests.cli.running import edgegraft
from tests.conftest import DEVICE, CutTable, random_codes

pytest.importorskip("torch", reason="PyTorch, the extra gpu, is not installed")

STATES = [3, 2, 4, 2, 5, 3]


@pytest.fixture
def there() -> Backend:
    found = find_backend(DEVICE)
    assert found is not None
    return found


@pytest.fixture(params=["at once", "in steps", "by kernels"])
def room(request, monkeypatch):
    """Memory for all rows, for some of them at a time, or not for products of all pairs."""
    if request.param == "in steps":
        monkeypatch.setattr(Device, "at_once", 1 << 13)
    elif request.param == "by kernels":
        monkeypatch.setattr(Device, "total_bytes", 1 << 12)


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


@pytest.mark.parametrize("states", [STATES, [2] * 6])
def test_the_strongest_partners(there, states, room):
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


@pytest.fixture(scope="module")
def data():
    return make_scale_free(12, n_states=[2, 3, 4] * 4, n_rows=1500, random_state=0).X


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_of_all_pairs_is_that_of_the_solver(there, missing, weighted, monkeypatch):
    monkeypatch.setattr(pair_fit, "_RULE", replace(pair_fit._RULE, tol=1e-6, steps=2000))
    here, elsewhere = make_rows(there, missing, weighted, n_rows=600)
    loss = Pseudolikelihood(here)
    pairs = all_pairs(len(STATES))
    rule = Penalty(0.01, group_weight="states").bound(loss)
    expected = minimize(loss, rule, loss.layout(pairs)).theta
    norms = norms_of(expected, Layout(STATES, pairs).edge_offset)
    ranking = penalised_fit(PairCounts(elsewhere), rule, len(pairs))
    assert 0 < ranking.significant.sum() < len(pairs)
    np.testing.assert_array_equal(ranking.strengths > 1, ranking.significant)
    found = np.maximum(ranking.strengths - 1, 0)
    order = find_pairs(ranking.edges, pairs, len(STATES))
    # A missing neighbour counts as its mean here, and as a table of zeros there.
    np.testing.assert_allclose(found, norms[order], atol=0.03 if missing else 2e-4)


def test_a_network_is_the_same(data, monkeypatch):
    calls = set()
    for name in ("evaluate", "score", "count", "fit_pairs", "chains"):
        there = getattr(TorchBackend, name)

        def spy(*given, there=there, name=name):
            calls.add(name)
            return there(*given)

        monkeypatch.setattr(TorchBackend, name, spy)
    expected, found = (
        GraftedMRF(device=where, search=GraftingSettings(tol=1e-6), random_state=0).fit(data)
        for where in ("cpu", DEVICE)
    )
    assert calls >= {"evaluate", "score", "count", "fit_pairs"}
    assert len(expected.edges_) > 5
    assert set(map(tuple, found.edges_)) == set(map(tuple, expected.edges_))
    assert found.score(data) == pytest.approx(expected.score(data), rel=1e-6)
    strengths = [np.sort(model.model_.edge_strengths()) for model in (expected, found)]
    # Directions of rare states are held by the ridge alone, within the fit's tolerance.
    np.testing.assert_allclose(strengths[1], strengths[0], atol=5e-3)


def test_ordered_columns_and_all_pairs_without_room_are_ranked_as_on_the_processor(there, data):
    rule = Penalty(0.03, group_weight="noise")
    table = pack(data, kinds="ordinal")
    loss = Pseudolikelihood(TableRows(table))
    counts = PairCounts(TableRows(table, device=there))
    assert penalised_fit(counts, rule.bound(loss), 10) is None
    table = PackedTable.from_codes(data.astype(int))
    loss, rows = Pseudolikelihood(table), TableRows(table, device=there)
    assert penalised_fit(PairCounts(rows), rule.bound(loss), 10) is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Device, "at_once", 1 << 10)
        assert penalised_fit(PairCounts(rows), rule.bound(loss), 10) is None


def test_a_backend_of_another_distribution(monkeypatch):
    class Point:
        name, value = "mine", f"{__name__}:other_backend"

    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Point()])
    plugins._installed.cache_clear()
    assert find_backend("mine") == "backend of mine"
    with pytest.raises(SettingError, match="'cpu', 'auto', 'cuda', 'torch', 'mine'"):
        find_backend("tpu")
    plugins._installed.cache_clear()


def other_backend(name):
    return f"backend of {name}"


def test_rows_in_blocks_are_passed_over_on_the_device(data, there):
    table = PackedTable.from_codes(data.astype(int))
    rows = StoredRows(CutTable(table), n_jobs=2)
    plan = Plan(device=DEVICE)
    found, expected = (discover(rows, each, sample_rows=700) for each in (plan, Plan()))
    found, expected = (set(map(tuple, each.model.edges.tolist())) for each in (found, expected))
    assert found == expected
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
    device.has_gpu.cache_clear()
    assert find_backend("auto") is None
    with pytest.raises(MissingExtraError, match=r"edgegraft\[gpu\]"):
        find_backend("cuda")
    device.has_gpu.cache_clear()


def test_no_gpu(monkeypatch):
    monkeypatch.setattr("edgegraft.device.has_gpu", lambda: False)
    with pytest.raises(SettingError, match="finds no GPU"):
        GraftedMRF(device="cuda").fit(np.eye(4, dtype=int))
    with pytest.raises(ValueError, match="device"):
        GraftedMRF(device="tpu").fit(np.eye(4, dtype=int))


def test_too_little_memory_is_known_before(monkeypatch):
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (100, 1000))
    with pytest.raises(MemoryBudgetError, match=r"the table would take .* of the GPU's memory"):
        Device("cuda").check(1000, "the table")


def test_rows_on_a_cluster_stay_there(there):
    rows = object.__new__(ClusterRows)
    rows.device = None
    with pytest.raises(SettingError, match="rows on a cluster"):
        as_rows(rows, device=there)
