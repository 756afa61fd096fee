"""Cells removed at random: the network is still found, and incomplete rows are informative.

Pairwise-available counts (likelihood) are consistent if cells are missing at random. The
pseudolikelihood omits the tables of missing neighbours from a conditional, an approximation that
costs more on denser graphs; the bounds of its scores are therefore wider.
"""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.datasets import make_chain, make_scale_free
from edgegraft.learn import Plan, discover
from edgegraft.optimize import fit_parameters
from edgegraft.table import PackedTable, Schema

OBJECTIVES = ["pseudolikelihood", "likelihood"]
STATES = 3
N_TRAIN = 4000


def remove(codes, share, seed=5):
    holes = np.random.default_rng(seed).random(codes.shape) < share
    return np.where(holes, -1, codes)


def pack(codes, states=STATES):
    return PackedTable.from_codes(codes, Schema.from_states([states] * codes.shape[1]))


def pairs_of(edges):
    return {tuple(sorted(edge)) for edge in edges.tolist()}


def score(model, codes):
    return float(model.pseudo_log_likelihood(codes=codes).mean())


@pytest.fixture(scope="module")
def chain():
    data = make_chain(12, STATES, N_TRAIN + 2000, random_state=0)
    return data.X.astype(np.int64), data.edges


@pytest.mark.filterwarnings("ignore::edgegraft.errors.IdentificationWarning")
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_edges_found_are_correct_for_columns_with_many_neighbours(objective):
    # In rows that lack the middle of a path, its ends depend on each other: such edges must not
    # pass. Fewer cells may only lead to fewer edges.
    data = make_scale_free(20, STATES, N_TRAIN, random_state=1, burn_in=300)
    codes, truth = data.X.astype(np.int64), pairs_of(data.edges)
    whole = pairs_of(discover(pack(codes), Plan(objective=objective)).model.edges)
    found = pairs_of(discover(pack(remove(codes, 0.2)), Plan(objective=objective)).model.edges)
    assert len(found - truth) <= 1
    assert len(found & truth) >= 0.65 * len(whole & truth)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_removed_cells_cost_a_chain_almost_nothing(chain, objective):
    codes, truth = chain
    train, test = codes[:N_TRAIN], codes[N_TRAIN:]
    holed = remove(train, 0.2)
    complete = holed[(holed >= 0).all(axis=1)]
    assert len(complete) < 0.1 * N_TRAIN
    fits = [fit_parameters(pack(rows), truth, objective, ridge=1e-3)[0] for rows in
            (train, holed, complete)]  # fmt: skip
    whole, known, few = (score(model, test) for model in fits)
    assert known > whole - 0.02
    assert known > few + 0.05  # the score from complete rows only


@pytest.mark.parametrize(("objective", "cost"), [("likelihood", 0.02), ("pseudolikelihood", 0.12)])
def test_removed_cells_of_a_dense_survey(shared_data, objective, cost):
    path = shared_data / "debd" / "nltcs.npz"
    if not path.is_file():
        pytest.skip("nltcs.npz is not in the folder of real data")
    with np.load(path) as file:
        train, test = (file[part].astype(np.int64) for part in ("train", "test"))
    holed = remove(train, 0.2)
    complete = holed[(holed >= 0).all(axis=1)]
    options = {"ridge": 1e-5, "engine": "exact", "tol": 1e-4}
    whole, known, few = (
        score(fit_parameters(pack(rows, 2), None, objective, **options)[0], test)
        for rows in (train, holed, complete)
    )
    assert whole - cost < known < whole
    assert known > few + 0.2
