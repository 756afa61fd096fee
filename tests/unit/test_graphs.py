import numpy as np
import pytest

from edgegraft.datasets import graphs


def rng(seed=0):
    return np.random.default_rng(seed)


def test_scale_free_has_two_edges_for_each_new_variable_and_hubs():
    edges = graphs.scale_free(2000, rng())
    assert len(edges) == 2 * 2000 - 4
    degree = np.bincount(edges.ravel())
    assert degree.min() == 2
    # Under uniform attachment the largest degree would be near 2 log2(n), about 20.
    assert degree.max() > 60
    np.testing.assert_array_equal(np.bincount(edges[:, 1], minlength=2000)[2:], 2)


def test_preferential_attachment_follows_degree():
    # Of four variables, the last joins two of 0, 1, 2 with degrees 1, 1, 2.
    found = [tuple(graphs.scale_free(4, rng(seed))[:, 0].tolist()) for seed in range(4000)]
    picks = [set(first) for first in found]
    # P(2 is left out) = 2 * 1/4 * (1/4) / (1 - 1/4) = 1/6
    left_out = np.mean([2 not in pick for pick in picks])
    assert abs(left_out - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6 / 4000)


def test_erdos_renyi_draws_every_pair_equally_often():
    count = np.zeros((6, 6))
    for seed in range(3000):
        i, j = graphs.erdos_renyi(6, rng(seed), n_edges=4).T
        count[i, j] += 1
    observed = count[np.triu_indices(6, 1)] / 3000
    assert np.abs(observed - 4 / 15).max() < 4 * np.sqrt(4 / 15 * 11 / 15 / 3000)


def test_erdos_renyi_with_a_probability():
    edges = graphs.erdos_renyi(300, rng(), p=0.9)
    assert abs(len(edges) - 0.9 * 44_850) < 5 * np.sqrt(44_850 * 0.09)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.chain(0), "at least 1"),
        (lambda: graphs.star(0), "at least 1"),
        (lambda: graphs.grid(0, 3), "no cells"),
        (lambda: graphs.scale_free(1, rng()), "at least 2"),
        (lambda: graphs.erdos_renyi(5, rng()), "either p or n_edges"),
        (lambda: graphs.erdos_renyi(5, rng(), p=0.1, n_edges=2), "either p or n_edges"),
        (lambda: graphs.erdos_renyi(5, rng(), p=1.5), "probability"),
        (lambda: graphs.erdos_renyi(5, rng(), n_edges=11), "10 pairs"),
        (lambda: graphs.regular(5, 3, rng()), "even"),
        (lambda: graphs.regular(5, 5, rng()), "cannot all have"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
