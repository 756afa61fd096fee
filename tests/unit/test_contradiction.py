"""A loss that contradicts itself is left for a surer one, and for good."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.counts import PairCounts
from edgegraft.datasets import make_regular
from edgegraft.errors import ConvergenceWarning
from edgegraft.inference import (
    AutoEngine,
    BeliefPropagation,
    ExactBudget,
    ExactEngine,
    TreeReweighted,
)
from edgegraft.objective import Likelihood, Penalty
from edgegraft.optimize import Stopping, minimize
from edgegraft.table import PackedTable

PENALTY = Penalty(0.002, 1e-3)
STOPPING = Stopping(tol=1e-5)
ENGINES = {
    "bp": BeliefPropagation(tol=1e-8),
    "coarse bp": BeliefPropagation(tol=1e-4),
    "damped bp": BeliefPropagation(tol=1e-8, damping=0.5),
    "auto": AutoEngine(
        ExactBudget(0.0), BeliefPropagation(tol=1e-8), TreeReweighted(tol=1e-8, max_iter=3000)
    ),
}  # fmt: skip


def make_counts(n=8, noise=0.12, n_rows=4000, seed=0):
    """Columns that copy one hidden column: no couplings give such pairs as beliefs of a clique.

    Belief propagation needs couplings that make its symmetric fixed point unstable, so one of two
    others is found, in which all columns lean to the same side.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.random((n_rows, 1)) < 0.5
    codes = hidden ^ (rng.random((n_rows, n)) < noise)
    return PairCounts(PackedTable.from_codes(codes.astype(np.int32)))


def clique(n=8):
    return Layout([2] * n, np.stack(np.triu_indices(n, 1), axis=1))


def star(n=8):
    return Layout([2] * n, [(0, j) for j in range(1, n)])


@pytest.fixture(scope="module")
def counts():
    return make_counts()


@pytest.mark.parametrize("name", ENGINES)
def test_several_fixed_points_are_noticed(counts, name):
    loss = Likelihood(counts, ENGINES[name])
    stopping = Stopping(tol=1e-3) if name == "coarse bp" else STOPPING
    with pytest.warns(ConvergenceWarning, match="continuing with the engine 'trw'"):
        found = minimize(loss, PENALTY, clique(), stopping=stopping)
    assert found.info.engine == "trw"
    assert found.info.converged
    assert found.info.residual <= stopping.tol
    safe = minimize(loss.fallback, PENALTY, clique(), stopping=stopping)
    assert found.info.objective == pytest.approx(safe.info.objective, rel=1e-5)
    # The loss that was fitted in the end is convex: its minimum is no matter of the way there.
    np.testing.assert_allclose(found.gradient, safe.gradient, atol=10 * stopping.tol)


@pytest.mark.parametrize("engine", [BeliefPropagation(tol=1e-8), ExactEngine()])
def test_one_fixed_point_is_trusted(counts, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimize(Likelihood(counts, engine), PENALTY, star(), stopping=STOPPING)
    assert found.info.converged
    assert found.info.engine == engine.capabilities.name


def test_loops_of_weak_couplings_are_trusted():
    counts = make_counts(noise=0.35)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimize(
            Likelihood(counts, BeliefPropagation(tol=1e-8)), PENALTY, clique(), stopping=STOPPING
        )
    assert found.info.converged
    assert found.info.engine == "bp"


def test_errors_within_the_engines_tolerance_prove_nothing():
    data = make_regular(60, 4, 2, 4000, couplings="ising", random_state=0, burn_in=300)
    counts = PairCounts(PackedTable.from_codes(data.X.astype(np.int32)))
    layout = Layout([2] * 60, data.edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimize(
            Likelihood(counts, BeliefPropagation(tol=1e-3)), Penalty(0.003, 1e-3), layout,
            stopping=Stopping(tol=1e-3),
        )  # fmt: skip
    assert found.info.converged
    assert found.info.engine == "bp"


def test_the_choice_lasts(counts):
    loss = Likelihood(counts, BeliefPropagation(tol=1e-8))
    with pytest.warns(ConvergenceWarning):
        first = minimize(loss, PENALTY, clique(), stopping=STOPPING)
    assert first.objective is loss.fallback
    # On another graph, one on which belief propagation would do, and back.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = minimize(loss, PENALTY, star(), first, STOPPING)
        third = minimize(loss, PENALTY, clique(), second, STOPPING)
    for found in (second, third):
        assert found.objective is loss.fallback
        assert found.info.engine == "trw"
        assert found.info.converged
    assert third.info.objective == pytest.approx(first.info.objective, rel=1e-7)


def test_the_choice_is_not_that_of_another_loss(counts):
    loss, other = (Likelihood(counts, BeliefPropagation(tol=1e-8)) for _ in range(2))
    with pytest.warns(ConvergenceWarning):
        first = minimize(loss, PENALTY, clique(), stopping=STOPPING)
    found = minimize(other, PENALTY, star(), first, STOPPING)
    assert found.objective is other
    assert found.info.engine == "bp"


def test_parameters_alone_carry_no_choice(counts):
    loss = Likelihood(counts, BeliefPropagation(tol=1e-8))
    with pytest.warns(ConvergenceWarning):
        first = minimize(loss, PENALTY, clique(), stopping=STOPPING)
    theta = star().carry(first.theta, first.layout)
    assert minimize(loss, PENALTY, star(), theta, STOPPING).info.engine == "bp"


class Kinked(Likelihood):
    """A loss whose gradient jumps where the first entry of the first table passes .05."""

    def evaluate(self, theta, state):
        found = super().evaluate(theta, state)
        at = int(state.layout.edge_offset[0])
        side = 1.0 if theta[at] > 0.05 else -1.0
        gradient = found.gradient.copy()
        gradient[at] += 2.0 * side
        value = found.value + 2.0 * abs(theta[at] - 0.05)
        return found._replace(value=value, gradient=gradient)


class Falling(Likelihood):
    """A loss that finds a false, lower value far from the first point."""

    def evaluate(self, theta, state):
        found = super().evaluate(theta, state)
        far = np.abs(theta[int(state.layout.edge_offset[0]) :]).max() > 0.02
        return found._replace(value=found.value - 1e4 * far)


@pytest.mark.parametrize("kind", [Kinked, Falling])
def test_a_kink_and_a_false_value_are_noticed(counts, kind):
    loss = kind(counts, BeliefPropagation(tol=1e-8))
    with pytest.warns(ConvergenceWarning, match="contradict|again and again"):
        found = minimize(loss, PENALTY, star(), stopping=STOPPING)
    assert found.info.engine == "trw"
    assert found.info.converged


@pytest.mark.parametrize("kind", [Kinked, Falling])
def test_without_a_fallback_nobody_takes_over(counts, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = minimize(kind(counts, ExactEngine()), PENALTY, star(), stopping=STOPPING)
    assert isinstance(found.objective, kind)
