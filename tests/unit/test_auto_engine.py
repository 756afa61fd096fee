"""The chooser: who answers when, and who is said to have answered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgegraft.core import Layout, all_pairs
from edgegraft.errors import ModelError
from edgegraft.inference import (
    AutoEngine,
    BeliefPropagation,
    ExactBudget,
    ExactEngine,
    GibbsEngine,
    TreeReweighted,
    affordability,
    affordable,
    auto,
    likelihood_engine,
    make_engine,
)
from edgegraft.inference.auto import ENGINES, LIKELIHOOD_ENGINES
from tests.zoo import ZOO


def frustrated():
    """Strong couplings of random sign on a dense graph: belief propagation oscillates."""
    rng = np.random.default_rng(1)
    layout = Layout([2] * 16, [(i, j) for i in range(16) for j in range(i + 1, 16)])
    couplings = rng.choice([-1.0, 1.0], layout.n_edges)
    field = 0.1 * rng.normal(size=32)
    return layout, np.concatenate((field, np.outer(couplings, [1.0, -1.0, -1.0, 1.0]).ravel()))


def test_exact_where_affordable():
    engine, animal = AutoEngine(), ZOO["grid"]
    marginals, state, info = engine.run(animal.theta, engine.init(animal.layout))
    exact = ExactEngine()
    expected, _, _ = exact.run(animal.theta, exact.init(animal.layout))
    np.testing.assert_array_equal(marginals.values, expected.values)
    assert engine.answered(state) == exact.capabilities
    assert info.diagnostics["engine"] == "exact"


def bipartite(n):
    """Every variable of one half joined to every one of the other: bp is biased there."""
    layout = Layout([2] * (2 * n), [(i, n + j) for i in range(n) for j in range(n)])
    return layout, 0.3 * np.random.default_rng(0).normal(size=layout.n_parameters)


def test_graphs_of_a_few_seconds_are_exact():
    layout, _ = bipartite(21)  # the largest table has 2**22 cells
    state = AutoEngine().init(layout)
    assert state.answer == "exact"
    assert state.exact.cost.largest_table == 1 << 22
    assert 1.0 < state.exact.cost.seconds < 10.0
    assert likelihood_engine().init(layout).answer == "bp"


def test_what_is_not_exact_is_named_with_its_reason():
    layout, theta = bipartite(8)
    engine = AutoEngine(ExactBudget(seconds=1e-5))
    _, _, info = engine.run(theta, engine.init(layout))
    assert info.diagnostics["engine"] == "bp"
    assert "seconds and" in info.diagnostics["exact"]
    assert info.diagnostics["exact"].endswith("KiB")


def test_time_and_memory_are_limited_each_for_itself():
    layout, _ = bipartite(10)
    cost = ExactEngine().estimate(layout)
    assert affordable(layout, ExactBudget(cost.seconds, cost.nbytes)).cost == cost
    assert affordable(layout, ExactBudget(0.9 * cost.seconds, cost.nbytes)) is None
    assert affordable(layout, ExactBudget(cost.seconds, cost.nbytes - 1)) is None
    assert affordable(layout).layout is layout


def test_a_graph_is_searched_once(monkeypatch):
    calls = []
    search = affordability.order_variables
    monkeypatch.setattr(
        affordability, "order_variables", lambda *given: calls.append(1) or search(*given)
    )
    affordability._search.cache_clear()
    for _ in range(3):
        affordable(bipartite(4)[0])
        ExactEngine().init(bipartite(5)[0])
    assert len(calls) == 2


def test_a_likelihood_takes_engines_that_give_a_log_partition():
    for name in ENGINES:
        if name in LIKELIHOOD_ENGINES:
            assert likelihood_engine(name).capabilities.name == name
        else:
            with pytest.raises(ModelError, match="needs: use 'auto', 'exact', 'bp' or 'trw', or"):
                likelihood_engine(name)
    assert likelihood_engine("bp", tol=1e-8).tol == 1e-8


def test_belief_propagation_where_not():
    engine, animal = AutoEngine(ExactBudget(seconds=0.0)), ZOO["grid"]
    marginals, state, info = engine.run(animal.theta, engine.init(animal.layout))
    expected, _, _ = engine.bp.run(animal.theta, engine.bp.init(animal.layout))
    np.testing.assert_array_equal(marginals.values, expected.values)
    assert engine.answered(state) == engine.bp.capabilities
    assert (info.diagnostics["engine"], info.message) == ("bp", "")


def ferromagnet(coupling, field):
    """All pairs of twelve variables attract each other."""
    layout = Layout([2] * 12, all_pairs(12))
    edges = np.tile(np.array([1.0, -1.0, -1.0, 1.0]) * coupling, layout.n_edges)
    return layout, np.concatenate((np.tile([-field, field], 12), edges))


def checked_answer(layout, theta):
    engine = make_engine("auto", budget=ExactBudget(seconds=0.0))
    marginals, state, info = engine.run(theta, engine.init(layout), np.random.default_rng(0))
    assert engine.answered(state).name == info.diagnostics["engine"]
    assert info.diagnostics["exact"]
    return engine, marginals, state, info


def test_chains_answer_if_messages_settle_elsewhere():
    layout, theta = ferromagnet(0.1, 0.05)
    exact, bp = ExactEngine(), BeliefPropagation()
    truth = exact.run(theta, exact.init(layout))[0].values
    wrong = bp.run(theta, bp.init(layout))
    assert wrong[2].converged
    assert np.abs(wrong[0].values - truth).max() > 0.1
    engine, marginals, state, info = checked_answer(layout, theta)
    assert info.diagnostics["engine"] == "gibbs"
    assert np.abs(marginals.values - truth).max() < 0.02
    pairs = np.array([(0, 5)])
    table = exact.pair_marginals(theta, exact.init(layout), pairs)[0]
    assert np.abs(engine.pair_marginals(theta, state, pairs)[0] - table).max() < 0.02


def test_messages_that_chains_confirm_answer():
    _, marginals, _, info = checked_answer(*ferromagnet(0.02, 0.05))
    bp, (layout, theta) = BeliefPropagation(), ferromagnet(0.02, 0.05)
    assert info.diagnostics["engine"] == "bp"
    assert np.array_equal(marginals.values, bp.run(theta, bp.init(layout))[0].values)


def test_what_chains_cannot_check_is_answered_by_messages(monkeypatch):
    layout, theta = ferromagnet(0.1, 0.05)
    monkeypatch.setattr(auto, "_RULE", replace(auto._RULE, look_ups=1.0))
    assert checked_answer(layout, theta)[3].diagnostics["engine"] == "bp"
    monkeypatch.undo()
    hard = theta.copy()
    layout.edge(hard, 0)[0, 1] = -np.inf
    assert checked_answer(layout, hard)[3].diagnostics["engine"] == "bp"
    assert likelihood_engine("auto").gibbs is None  # a likelihood needs log Z


def test_tree_reweighted_where_that_does_not_converge():
    layout, theta = frustrated()
    engine = AutoEngine(ExactBudget(seconds=0.0))
    assert not engine.bp.run(theta, engine.bp.init(layout))[2].converged
    marginals, state, info = engine.run(theta, engine.init(layout))
    expected, own, safe = engine.trw.run(theta, engine.trw.init(layout))
    np.testing.assert_array_equal(marginals.values, expected.values)
    assert marginals.log_partition == expected.log_partition
    assert engine.answered(state).log_partition == "upper bound"
    assert info.diagnostics["engine"] == "trw"
    assert "belief propagation did not converge in 500 sweeps" in info.message
    assert info.converged
    assert safe.converged
    pairs = np.array([(0, 1), (3, 2)])
    tables = engine.pair_marginals(theta, state, pairs)
    np.testing.assert_array_equal(
        tables.values, engine.trw.pair_marginals(theta, own, pairs).values
    )


def test_the_choice_is_made_anew_with_every_run_and_graph():
    layout, theta = frustrated()
    engine = AutoEngine(ExactBudget(nbytes=4000))  # enough for a chain, not for the complete graph
    _, state, _ = engine.run(theta, engine.init(layout))
    assert engine.answered(state).name == "trw"
    _, calm, _ = engine.run(0.01 * theta, state)
    assert engine.answered(calm).name == "bp"
    chain = Layout([2] * 16, [(i, i + 1) for i in range(15)])
    small = engine.grow(calm, chain)
    assert engine.answered(small).exact
    _, back, _ = engine.run(0.01 * theta, engine.grow(small, layout))
    assert engine.answered(back).name == "bp"


@pytest.mark.parametrize("name", ENGINES)
def test_engines_have_names(name):
    engine = make_engine(name)
    assert engine.capabilities.name == name
    assert make_engine(engine) is engine


def test_settings_reach_the_engine():
    assert make_engine("exact", max_bytes=5).budget.nbytes == 5
    assert make_engine("gibbs", n_chains=7) == GibbsEngine(n_chains=7)
    assert make_engine("auto", trw=TreeReweighted(seed=3)).trw.seed == 3
    with pytest.raises(ValueError, match="damping came too late"):
        make_engine(BeliefPropagation(), damping=0.5)


def test_unknown_engines_are_refused_with_the_names():
    with pytest.raises(ValueError, match="use 'auto', 'exact', 'bp', 'trw' or 'gibbs'"):
        make_engine("loopy")
    with pytest.raises(TypeError, match="neither the name of an engine nor an engine"):
        make_engine(3)
