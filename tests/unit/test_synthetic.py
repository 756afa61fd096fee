import numpy as np
import pytest

from edgegraft import datasets
from edgegraft.datasets import graphs


def make_all(**options):
    options = {"n_rows": 50, "burn_in": 5, "random_state": 0, **options}
    yield datasets.make_scale_free(12, **options)
    yield datasets.make_chain(12, **options)
    yield datasets.make_star(12, **options)
    yield datasets.make_grid(3, 4, **options)
    yield datasets.make_erdos_renyi(12, n_edges=20, **options)
    yield datasets.make_erdos_renyi(12, p=0.2, **options)
    yield datasets.make_regular(12, 3, **options)


def test_every_generator_returns_its_truth():
    for data in make_all():
        assert data.X.shape == (50, 12)
        assert data.X.dtype == np.uint8
        assert (data.X.max(axis=0) < data.layout.states).all()
        np.testing.assert_array_equal(data.edges, data.layout.edges)
        assert data.theta.shape == (data.layout.n_parameters,)
        assert data.schema.names[:2] == ("x0", "x1")
        np.testing.assert_array_equal(data.schema.n_states, data.layout.states)
        assert data.sampler_info.burn_in == 5
        with pytest.raises(ValueError, match="read-only"):
            data.theta[0] = 1


def test_same_seed_same_data_on_any_number_of_threads():
    for one, two in zip(make_all(n_jobs=1), make_all(n_jobs=2), strict=True):
        np.testing.assert_array_equal(one.X, two.X)
        np.testing.assert_array_equal(one.theta, two.theta)
        np.testing.assert_array_equal(one.edges, two.edges)
    other = next(make_all(random_state=1))
    assert (other.X != next(make_all()).X).any()


def test_a_generator_may_be_the_seed():
    data = datasets.make_chain(5, n_rows=20, random_state=np.random.default_rng(3))
    same = datasets.make_chain(5, n_rows=20, random_state=3)
    np.testing.assert_array_equal(data.X, same.X)


def test_normal_potentials_have_the_stated_scales():
    data = datasets.make_scale_free(400, n_rows=1, burn_in=0, random_state=0)
    node, edge = np.split(data.theta, [data.layout.node_offset[-1]])
    assert abs(node.std() - 0.5) < 0.04
    assert abs(edge.std() - 1.0) < 0.03


def test_ising_couplings():
    data = datasets.make_grid(10, 10, couplings="ising", n_rows=1, burn_in=0, random_state=0)
    J = []
    for k in range(len(data.edges)):
        table = data.layout.edge(data.theta, k)
        np.testing.assert_array_equal(table, table[0, 0] * np.array([[1, -1], [-1, 1]]))
        J.append(table[0, 0])
    assert np.abs(J).min() >= 0.3
    assert np.abs(J).max() <= 0.8
    assert 0.3 < np.mean(np.sign(J) > 0) < 0.7


def test_states_of_each_variable():
    data = datasets.make_chain(3, n_states=[2, 300, 4], n_rows=10, random_state=0)
    assert data.layout.states.tolist() == [2, 300, 4]
    assert data.X.dtype == np.uint16


def test_a_chain_of_spins_has_the_known_correlation():
    data = datasets.make_mrf(
        graphs.chain(3), [2] * 3, 40_000, couplings="ising", node_scale=0.0, random_state=0
    )
    spin = 2.0 * data.X - 1
    J = [data.layout.edge(data.theta, k)[0, 0] for k in range(2)]
    for k in range(2):
        # Without fields, E[s_k s_{k+1}] = tanh(J) on a tree.
        assert abs(np.mean(spin[:, k] * spin[:, k + 1]) - np.tanh(J[k])) < 0.02


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match="variable 1 has 3"):
        datasets.make_chain(2, n_states=[2, 3], couplings="ising")
    with pytest.raises(ValueError, match="'potts'"):
        datasets.make_chain(2, couplings="potts")
    with pytest.raises(ValueError, match="3 numbers of states were given for 2"):
        datasets.make_chain(2, n_states=[2, 3, 3])
    with pytest.raises(ValueError, match="at least 1 state"):
        datasets.make_chain(2, n_states=0)
