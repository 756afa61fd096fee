"""Tests of many edges from counts, beside the same tests one by one."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.datasets import make_mrf
from edgegraft.learn.counted_tests import many_tests
from edgegraft.learn.edge_tests import EdgeTester
from edgegraft.learn.table_conditionals import TableConditionals
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable

EDGES = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (0, 6), (6, 7)]  # a triangle, a chain
ABSENT = [(1, 7), (3, 5)]


@pytest.mark.parametrize("states", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_have_the_tests_that_each_has_alone(states, weighted):
    n = 8
    data = make_mrf(EDGES, [states] * n, 3000, edge_scale=0.5, random_state=0)
    table = PackedTable.from_codes(data.X)
    weights = np.random.default_rng(0).integers(0, 3, 3000).astype(float) if weighted else None
    loss = Pseudolikelihood(table, weights=weights)
    layout = Layout([states] * n, sorted(EDGES + ABSENT))
    theta = minimize(loss, Penalty(0.0, 1e-4), layout, None, Stopping(1e-6)).theta
    tester = EdgeTester(TableConditionals(table, weights))
    every = np.arange(layout.n_edges)
    found, at = many_tests(tester.rows, layout, theta, every, 2)
    each = tester.test(layout, theta)  # too few edges for counts
    assert at.sum() >= 5
    np.testing.assert_allclose(found.statistic[at], each.statistic[at], rtol=1e-6)
    np.testing.assert_array_equal(found.dof[at], each.dof[at])
    np.testing.assert_allclose(np.log(found.p_value[at]), np.log(each.p_value[at]), rtol=1e-6)
