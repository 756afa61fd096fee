"""The benchmark of least rows: its solver and its search."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.recovery import least_rows
from benchmarks.recovery.methods import Method, screening
from benchmarks.recovery.models import POINTS, Point, Sample, random_regular, torus
from benchmarks.recovery.screening import minimise

POINT = POINTS[1]


@pytest.mark.parametrize("loss", ["RISE", "logRISE", "RPLE"])
def test_the_solver_ends_where_no_coordinate_helps(loss):
    sample = POINT.draw(np.random.default_rng(0), 500)
    spins, share = 2.0 * sample.codes - 1.0, sample.counts / sample.n_rows
    products, penalty = spins[:, 1:] * spins[:, :1], np.full(15, 0.05)
    theta = minimise(products, share, loss, penalty, np.zeros(15))
    field = products @ theta
    if loss == "RPLE":
        slope = -2 * share / (1 + np.exp(2 * field))
    else:
        slope = -share * np.exp(-field)
        slope = slope / -slope.sum() if loss == "logRISE" else slope
    gradient = slope @ products
    used = theta != 0
    np.testing.assert_allclose(gradient[used], -0.05 * np.sign(theta[used]), atol=1e-6)
    assert (np.abs(gradient[~used]) <= 0.05 + 1e-6).all()


def test_graphs_are_regular():
    assert (np.bincount(torus().ravel()) == 4).all()
    assert (np.bincount(random_regular(16, 3, np.random.default_rng(0)).ravel()) == 3).all()


def test_the_least_rows_are_found_and_their_lack_is_reported():
    def enough(n_rows):
        return Method("toy", lambda s: s.edges if s.n_rows >= n_rows else set(), "")

    def draw(rng, n_rows):
        return Sample(np.zeros((1, 2), int), np.array([float(n_rows)]), {(0, 1)}, 1.0, 2)

    point = Point("toy", 1.0, 2, 2, draw, 45, 10_000)
    found = least_rows(enough(1000), point, 3)
    assert found.exact
    assert 1000 <= found.rows < 1000 * 2**0.25
    assert not least_rows(enough(20_000), point, 3).exact


def test_interaction_screening_recovers_a_glass():
    sample = POINT.draw(np.random.default_rng(0), 4000)
    assert screening("RISE")(sample) == sample.edges
