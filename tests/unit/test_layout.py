"""The flat parameter layout."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.errors import EdgeError


def test_growing_appends_and_moves_nothing():
    layout = Layout([2, 3, 4], [(0, 2)])
    grown = layout.grow([(0, 1), (1, 2)])
    np.testing.assert_array_equal(grown.edge_offset[:2], layout.edge_offset)
    theta = np.arange(float(grown.n_parameters))
    assert grown.edge(theta, 0).shape == (2, 4)
    assert grown.edge(theta, 2)[2, 3] == grown.n_parameters - 1
    assert grown.node(theta, 1).tolist() == [2, 3, 4]


def test_views_write_through():
    layout = Layout([2, 2], [(0, 1)])
    theta = np.zeros(layout.n_parameters)
    layout.edge(theta, 0)[1, 0] = 5
    assert theta[6] == 5


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 3)], r"edge 0, \(0, 3\), names a variable outside 0..2"),
        ([(1, 1)], r"edge 0, \(1, 1\), joins a variable to itself"),
        ([(2, 1)], r"edge \(2, 1\) is not written with the smaller index first"),
        ([(0, 1), (1, 2), (0, 1)], r"edge \(0, 1\) is given more than once"),
    ],
)
def test_bad_edges_are_refused(edges, message):
    with pytest.raises(EdgeError, match=message):
        Layout([2, 2, 2], edges)


def test_the_arrays_are_frozen():
    with pytest.raises(ValueError, match="read-only"):
        Layout([2, 2]).states[0] = 3
