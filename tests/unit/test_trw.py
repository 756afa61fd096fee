"""Tree-reweighted belief propagation: forests, bound, warm starts."""

import gzip
import json

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.errors import ModelError
from edgegraft.inference import BeliefPropagation, TreeReweighted
from edgegraft.inference.messages import wire
from edgegraft.inference.trw import cover
from edgegraft.io import read_uai
from tests.message_models import FORESTS, LOOPY, disagreement, draw, enumerate_all

UAI = ["Grids_11", "Grids_12", "Grids_16", "Segmentation_11", "Segmentation_12"]
UAI += ["Segmentation_15", "DBN_11", "DBN_14", "ObjectDetection_11"]


@pytest.mark.parametrize("name", LOOPY)
def test_every_edge_is_in_a_spanning_forest(name):
    layout = LOOPY[name]
    wiring = wire(layout)
    forests = cover(layout, wiring)
    n_parts = 2 if name == "two parts" else 1
    assert (forests.probability > 0).all()
    assert forests.probability.sum() == pytest.approx(layout.n_variables - n_parts)
    for order, upward in zip(forests.order, forests.upward, strict=True):
        assert sorted(order) == list(range(layout.n_variables))
        assert (upward < 0).sum() == n_parts
        place = np.argsort(order)
        for i in np.flatnonzero(upward >= 0):
            parent = wiring.links[upward[i], 4]
            assert wiring.start[i] <= upward[i] < wiring.start[i + 1]
            assert place[i] < place[parent]


@pytest.mark.parametrize("name", FORESTS)
def test_a_forest_needs_one_forest(name):
    forests = cover(FORESTS[name], wire(FORESTS[name]))
    assert len(forests.order) == 1
    assert (forests.probability == 1).all()


def test_a_bridge_is_in_every_forest():
    layout = Layout([2] * 6, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)])
    probability = cover(layout, wire(layout)).probability
    assert probability[3] == 1.0
    assert (np.delete(probability, 3) < 1.0).all()


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("name", LOOPY)
def test_one_fixed_point_for_all_starts(name, scale):
    layout = LOOPY[name]
    theta = draw(layout, scale)
    engine = TreeReweighted(tol=1e-9, max_iter=5000)
    marginals, state, info = engine.run(theta, engine.init(layout))
    assert info.converged
    assert disagreement(marginals.values, layout) < 1e-7
    assert marginals.log_partition >= enumerate_all(theta, layout).log_partition
    reference = TreeReweighted(damping=0.5, tol=1e-9, max_iter=5000)
    _, elsewhere, _ = reference.run(draw(layout, 3.0, seed=9), reference.init(layout))
    other, _, _ = reference.run(theta, elsewhere)
    np.testing.assert_allclose(marginals.values, other.values, atol=1e-5)
    assert marginals.log_partition == pytest.approx(other.log_partition, abs=1e-6)
    del state


def test_the_bound_falls_as_messages_settle_and_says_when_they_have_not():
    layout, theta = LOOPY["grid"], draw(LOOPY["grid"], 2.0)
    bounds = []
    for max_iter in (1, 5, 300):
        engine = TreeReweighted(max_iter=max_iter, tol=1e-8)
        marginals, _, info = engine.run(theta, engine.init(layout))
        bounds.append(marginals.log_partition)
        assert info.converged == (max_iter == 300)
        assert info.converged or "still an upper bound" in info.message
        assert "damping" in info.diagnostics
    assert bounds[0] > bounds[1] > bounds[2] > enumerate_all(theta, layout).log_partition


def test_growing_keeps_messages_and_saves_work():
    layout, theta = LOOPY["grid"], draw(LOOPY["grid"], 0.5)
    small = Layout(layout.states, layout.edges[:-1])
    engine = TreeReweighted(tol=1e-6)
    _, state, _ = engine.run(theta[: small.n_parameters], engine.init(small))
    warm, _, info = engine.run(theta, engine.grow(state, layout))
    cold, _, whole = engine.run(theta, engine.init(layout))
    assert info.diagnostics["message_updates"] < whole.diagnostics["message_updates"]
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-5)
    assert warm.log_partition == pytest.approx(cold.log_partition, abs=1e-6)


def test_an_impossible_loop_is_found_out_or_bounded():
    layout = Layout([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    theta = np.zeros(layout.n_parameters)
    for k in range(3):
        layout.edge(theta, k)[:] = [[0, -np.inf], [-np.inf, -np.inf]]
    layout.node(theta, 0)[:] = [-np.inf, 0]
    for engine in (TreeReweighted(), BeliefPropagation()):
        with pytest.raises(ModelError, match="no configuration"):
            engine.run(theta, engine.init(layout))


@pytest.mark.parametrize("name", UAI)
def test_the_bound_holds_on_the_competition_problems(name, shared_data):
    file = read_uai(shared_data / "uai" / f"{name}.uai.gz")
    answers = json.loads(gzip.decompress((shared_data / "uai/solutions.json.gz").read_bytes()))
    for max_iter in (1, 100):
        engine = TreeReweighted(max_iter=max_iter)
        marginals, _, _ = engine.run(file.theta, engine.init(file.layout))
        assert marginals.log_partition + file.log_constant >= answers[name]["exact_ln_Z"]
    engine = BeliefPropagation(max_iter=100)
    marginals, _, info = engine.run(file.theta, engine.init(file.layout))
    assert np.isfinite(marginals.values).all()
    assert info.converged or "did not converge" in info.message
