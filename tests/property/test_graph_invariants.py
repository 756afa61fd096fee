"""Invariants of generated graphs: sorted, distinct edges in the stated number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgegraft.datasets import graphs

seeds = st.integers(0, 2**32 - 1)


def check(edges, n):
    assert edges.dtype == np.int64
    assert edges.ndim == 2
    assert edges.shape[1] == 2
    assert (edges[:, 0] < edges[:, 1]).all()
    assert ((edges >= 0) & (edges < n)).all()
    keys = edges[:, 0] * n + edges[:, 1]
    assert (np.diff(keys) > 0).all()


@given(st.integers(1, 60))
def test_chain_and_star(n):
    for edges in (graphs.chain(n), graphs.star(n)):
        check(edges, n)
        assert len(edges) == n - 1


@given(st.integers(1, 9), st.integers(1, 9))
def test_grid(rows, columns):
    edges = graphs.grid(rows, columns)
    check(edges, rows * columns)
    assert len(edges) == rows * (columns - 1) + columns * (rows - 1)


@given(st.integers(2, 80), seeds)
def test_scale_free(n, seed):
    edges = graphs.scale_free(n, np.random.default_rng(seed))
    check(edges, n)
    assert len(edges) == 2 * n - 4


@given(st.integers(1, 40), st.floats(0, 1), seeds)
def test_erdos_renyi(n, share, seed):
    n_edges = round(share * n * (n - 1) / 2)
    edges = graphs.erdos_renyi(n, np.random.default_rng(seed), n_edges=n_edges)
    check(edges, n)
    assert len(edges) == n_edges


@given(st.integers(1, 30), st.integers(0, 29), seeds)
def test_regular(n, degree, seed):
    degree %= n
    degree -= n * degree % 2
    edges = graphs.regular(n, degree, np.random.default_rng(seed))
    check(edges, n)
    assert (np.bincount(edges.ravel(), minlength=n) == degree).all()
