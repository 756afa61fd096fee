"""The pseudolikelihood, compared with scikit-learn's multinomial logistic regressions.

Regressions of each variable on all others have two tables per pair, one in each direction, whereas
the composite pseudolikelihood has one, so their losses can only be lower. At the coefficients of
the regressions, each of our conditional losses must equal scikit-learn's.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from edgegraft import datasets, fit_parameters
from edgegraft.core import Layout
from edgegraft.objective import Pseudolikelihood
from edgegraft.table import PackedTable, Schema

STATES = np.array([3, 2, 4, 3])
PAIRS = np.stack(np.triu_indices(4, 1), axis=1)


@pytest.fixture(scope="module")
def rows():
    data = datasets.make_mrf(PAIRS, STATES, n_rows=4000, edge_scale=0.5, random_state=0)
    return data.X.astype(np.int64)


def one_hot(rows, without):
    columns = [np.eye(s)[rows[:, j]] for j, s in enumerate(STATES) if j != without]
    return np.concatenate(columns, axis=1)


def regress(rows, target):
    """Return the unpenalised regression of one variable on the others, and its loss."""
    model = LogisticRegression(C=1e8, tol=1e-10, max_iter=5000)
    features = one_hot(rows, target)
    model.fit(features, rows[:, target])
    return model, log_loss(rows[:, target], model.predict_proba(features))


def as_parameters(model, target, layout):
    """Return a regression's coefficients as the node vector and the tables of its target."""
    theta = np.zeros(layout.n_parameters)
    # Two states have one row of coefficients, those of the second state relative to the first.
    binary = len(model.classes_) == 2
    intercept = np.append(0.0, model.intercept_) if binary else model.intercept_
    weights = np.vstack((np.zeros_like(model.coef_), model.coef_)) if binary else model.coef_
    layout.node(theta, target)[:] = intercept
    at = 0
    for j, s in enumerate(STATES):
        if j == target:
            continue
        k = int(np.flatnonzero((layout.edges == sorted((target, j))).all(axis=1))[0])
        table = weights[:, at : at + s]
        layout.edge(theta, k)[:] = table if target < j else table.T
        at += s
    return theta


def test_conditional_losses_are_those_of_the_regressions(rows):
    objective = Pseudolikelihood(PackedTable.from_codes(rows, Schema.from_states(STATES)))
    layout = Layout(STATES, PAIRS)
    fitted, _ = fit_parameters(objective=objective, source=rows, edges=PAIRS)
    state = objective.evaluate(fitted.theta, objective.init(layout)).state
    for target in range(len(STATES)):
        model, loss = regress(rows, target)
        theta = as_parameters(model, target, layout)
        ours = objective.evaluate(theta, objective.init(layout)).state.losses[target]
        np.testing.assert_allclose(ours, loss, rtol=1e-7)
        # One table for both directions costs something, but little if the true model has that form.
        assert loss - 1e-9 <= state.losses[target] < loss + 0.01


def test_a_single_pair_is_saturated_and_agrees_exactly(rows):
    pair = rows[:, [0, 2]]
    model, info = fit_parameters(pair, [(0, 1)], tol=1e-7)
    assert info.converged
    for target, other in ((0, 1), (1, 0)):
        features = np.eye(STATES[[0, 2]][other])[pair[:, other]]
        regression = LogisticRegression(C=1e8, tol=1e-10, max_iter=5000)
        regression.fit(features, pair[:, target])
        np.testing.assert_allclose(
            model.predict_proba(pair, model.names[target]),
            regression.predict_proba(features),
            atol=2e-4,
        )
