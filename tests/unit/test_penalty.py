"""Penalties against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.core import Layout, PairTables
from edgegraft.core.pairs import table_offsets
from edgegraft.objective import Penalty
from edgegraft.objective.noise import NoiseWeights

LAYOUT = Layout([2, 3, 4, 2], [(0, 1), (1, 2), (0, 3)])
NOISE = NoiseWeights(np.array([1.2, 0.7, 2.0, 0.3]), np.array([1.0, 1.5, 2.0, 1.0]), 2.0)
SETTINGS = [
    Penalty(0.3),
    Penalty(0.3, 0.2),
    Penalty(0.0, 0.2),
    Penalty(0.05, 0.1, group_weight="states"),
    Penalty(0.3, 0.1, penalize_nodes=True),
    Penalty(0.3, 0.1, noise=NOISE, group_weight="noise"),
]


def chi2_share(k):
    """Wilson and Hilferty's quantile over its degrees of freedom."""
    return (1 - 2 / (9 * k) + NOISE.z * np.sqrt(2 / (9 * k))) ** 3


def draw(seed=0):
    return np.random.default_rng(seed).normal(size=LAYOUT.n_parameters)


@pytest.mark.parametrize("penalty", SETTINGS[:4] + SETTINGS[-1:], ids=repr)
def test_scores_of_a_gradient_and_of_tables_agree(penalty):
    gradient = draw(7)
    shapes = LAYOUT.states[LAYOUT.edges]
    flat = gradient[int(LAYOUT.edge_offset[0]) :]
    tables = PairTables(LAYOUT.edges, shapes, flat, table_offsets(shapes))
    scores = penalty.score(gradient, LAYOUT)
    np.testing.assert_array_equal(scores, penalty.score(tables))
    if penalty.group_weight == "sqrt":
        expected = [np.linalg.norm(t) / np.sqrt(t.size) for t in tables]
    elif penalty.group_weight == "states":
        expected = [np.linalg.norm(t) / t.size for t in tables]
    else:
        expected = [
            np.linalg.norm(t)
            / (np.sqrt(chi2_share(NOISE.dof[[i, j]].prod())) * NOISE.spread[[i, j]].prod())
            for t, (i, j) in zip(tables, LAYOUT.edges, strict=True)
        ]
    np.testing.assert_allclose(scores, expected, rtol=1e-13)
    assert penalty.largest_useful(tables) == scores.max()


def test_noise_weights_ask_for_data():
    with pytest.raises(ValueError, match="need data"):
        Penalty(0.1, group_weight="noise").groups(LAYOUT)


def test_no_edges_have_no_score():
    assert Penalty().largest_useful(np.zeros(4), Layout([2, 2])) == 0.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"penalty": -1.0}, "penalty must be finite"),
        ({"ridge": np.nan}, "ridge must be finite"),
        ({"group_weight": "cells"}, "group_weight must be one of"),
    ],
)
def test_senseless_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Penalty(**settings)


def test_a_flat_gradient_needs_its_layout():
    with pytest.raises(TypeError, match="layout"):
        Penalty().score(np.zeros(4))
