"""The growing graph against plain sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.core import ActiveGraph, Layout
from edgegraft.errors import EdgeError

N = 7
PAIRS = [(i, j) for i in range(N) for j in range(i + 1, N)]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sets(st.sampled_from(PAIRS), max_size=6), max_size=10), st.randoms())
def test_edges_come_and_go_like_in_a_set(steps, random):
    graph, truth = ActiveGraph(np.full(N, 3)), []
    for step in steps:
        new = [pair for pair in step if pair not in truth]
        gone = [pair for pair in step if pair in truth]
        graph.add([pair[::-1] if random.random() < 0.5 else pair for pair in new])
        graph.remove(gone)
        truth = [pair for pair in truth + new if pair not in gone]
        assert [tuple(edge) for edge in graph.layout.edges] == truth
        assert graph.contains(PAIRS).tolist() == [pair in truth for pair in PAIRS]
        assert graph.degree.tolist() == [sum(v in pair for pair in truth) for v in range(N)]
        assert len(graph) == len(truth)


def test_an_active_edge_cannot_be_added_nor_an_inactive_one_removed():
    graph = ActiveGraph([2, 2, 2], [(0, 1)])
    with pytest.raises(EdgeError, match=r"edge \(0, 1\) is given more than once"):
        graph.add([(1, 0)])
    with pytest.raises(EdgeError, match=r"edge \(1, 2\) is not active"):
        graph.remove([(1, 2)])
    assert graph.layout.edges.tolist() == [[0, 1]]
    assert graph.degree.tolist() == [1, 1, 0]


@settings(max_examples=50, deadline=None)
@given(st.sets(st.sampled_from(PAIRS)), st.sets(st.sampled_from(PAIRS)), st.randoms())
def test_parameters_are_carried_by_edge(old_edges, new_edges, random):
    states = np.array([2, 3, 4, 2, 5, 2, 3])
    old = Layout(states, random.sample(sorted(old_edges), len(old_edges)))
    new = Layout(states, random.sample(sorted(new_edges), len(new_edges)))
    theta = np.random.default_rng(0).normal(size=old.n_parameters)
    carried = new.carry(theta, old)
    for i in range(N):
        np.testing.assert_array_equal(new.node(carried, i), old.node(theta, i))
    at = {tuple(edge): k for k, edge in enumerate(old.edges)}
    for k, edge in enumerate(new.edges):
        truth = old.edge(theta, at[tuple(edge)]) if tuple(edge) in at else 0.0
        np.testing.assert_array_equal(new.edge(carried, k) - truth, 0.0)


def test_parameters_of_other_variables_are_not_carried():
    with pytest.raises(EdgeError, match="same variables"):
        Layout([2, 2]).carry(np.zeros(5), Layout([2, 3]))
