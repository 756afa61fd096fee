"""Conversion to pgmpy and back; its inference must agree with ours."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from edgegraft.errors import MissingExtraError, ModelError
from edgegraft.io import from_pgmpy, to_pgmpy
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema
from tests.zoo import ZOO

ABSENT = importlib.util.find_spec("pgmpy") is None
needs_pgmpy = pytest.mark.skipif(ABSENT, reason="pgmpy is not installed")
SMALL = ["one edge", "chain", "star", "cycle", "complete", "disconnected", "zero entries, loop"]

# Importing pgmpy raises warnings about its dependencies.
pytestmark = pytest.mark.filterwarnings("default")


def example():
    rng = np.random.default_rng(0)
    return PairwiseMRF.from_potentials(
        {"smoker": ["no", "yes"], "age": [10, 20, 30], "ill": [False, True], "alone": [0.5, 1.5]},
        nodes={"age": rng.normal(size=3), "alone": [0.0, 1.0]},
        edges={("ill", "smoker"): rng.normal(size=(2, 2)), ("age", "ill"): rng.normal(size=(3, 2))},
    )


def zoo_model(name):
    animal = ZOO[name]
    return PairwiseMRF(Schema.from_states(animal.states), animal.edges, animal.theta)


@needs_pgmpy
@pytest.mark.parametrize("model", [example(), *map(zoo_model, SMALL)], ids=["named", *SMALL])
def test_round_trip_and_marginals(model):
    from pgmpy.inference import VariableElimination

    network = to_pgmpy(model)
    assert network.check_model()
    back = from_pgmpy(network)
    assert back.names == model.names
    assert [v.categories for v in back.schema] == [v.categories for v in model.schema]
    assert back.edges.tolist() == model.edges.tolist()
    ours, again = model.marginals(), back.marginals()
    theirs = VariableElimination(network)
    for name in model.names:
        np.testing.assert_allclose(again.array(name), ours.array(name), rtol=1e-9, atol=1e-12)
        factor = theirs.query([name], show_progress=False)
        factor.normalize()
        assert list(factor.state_names[name]) == list(model.schema[name].categories)
        np.testing.assert_allclose(factor.values, ours.array(name), rtol=1e-7, atol=1e-10)


@needs_pgmpy
def test_factors_with_different_orders_of_states_are_multiplied():
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork([("a", "b")])
    one = DiscreteFactor(["a", "b"], [2, 3], range(1, 7), {"a": ["x", "y"], "b": [0, 1, 2]})
    two = DiscreteFactor(["b", "a"], [3, 2], range(1, 7), {"a": ["y", "x"], "b": [2, 0, 1]})
    three = DiscreteFactor(["a"], [2], [3, 5], {"a": ["y", "x"]})
    network.add_factors(one, two, three)
    model = from_pgmpy(network)
    for a in ("x", "y"):
        for b in (0, 1, 2):
            energy = model.energy({"a": [a], "b": [b]})[0]
            product = one.get_value(a=a, b=b) * two.get_value(a=a, b=b) * three.get_value(a=a)
            np.testing.assert_allclose(np.exp(energy), product)


@needs_pgmpy
def test_networks_that_are_not_pairwise_are_refused():
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork([("a", "b"), ("b", "c"), ("a", "c")])
    network.add_factors(DiscreteFactor(["a", "b", "c"], [2, 2, 2], np.ones(8)))
    with pytest.raises(ModelError, match=r"joins the 3 variables \['a', 'b', 'c'\]"):
        from_pgmpy(network)
    network = DiscreteMarkovNetwork([("a", "b")])
    network.add_factors(DiscreteFactor(["a"], [2], [1, 1]))
    with pytest.raises(ModelError, match="node 'b' is in no factor"):
        from_pgmpy(network)
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [1, 1, -1, 1]))
    with pytest.raises(ModelError, match=r"over \['a', 'b'\] has an entry that is negative"):
        from_pgmpy(network)
    network = DiscreteMarkovNetwork()
    network.add_node(3)
    network.add_factors(DiscreteFactor([3], [2], [1, 1]))
    with pytest.raises(ModelError, match="node 3 is a int: rename it to text"):
        from_pgmpy(network)


@needs_pgmpy
def test_states_that_differ_between_factors_are_refused():
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork([("a", "b")])
    network.add_factors(
        DiscreteFactor(["a"], [2], [1, 1], {"a": ["x", "y"]}),
        DiscreteFactor(["a", "b"], [2, 2], np.ones(4), {"a": ["x", "z"], "b": [0, 1]}),
    )
    with pytest.raises(ModelError, match=r"node 'a' has the states \['x', 'y'\] and also"):
        from_pgmpy(network)


@needs_pgmpy
def test_potentials_beyond_plain_numbers_are_refused():
    model = PairwiseMRF.from_potentials({"a": [0, 1]}, {"a": [0.0, -800.0]})
    with pytest.raises(ModelError, match=r"of \('a',\) reach from -800 to 0, too far apart"):
        to_pgmpy(model)


@pytest.mark.skipif(not ABSENT, reason="pgmpy is installed")
def test_a_missing_pgmpy_is_named():
    with pytest.raises(MissingExtraError, match=r"pip install 'edgegraft\[pgmpy\]'"):
        to_pgmpy(example())
