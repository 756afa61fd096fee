"""One column given its neighbours: distinct rows, coordinates, derivatives and fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

from edgegraft.conditional import conditional as module
from edgegraft.conditional import rows as counting
from edgegraft.conditional.conditional import RIDGE_ROWS, Conditional, start_from_tables
from edgegraft.conditional.coordinates import MAX_STATES, MIN_ROWS, group_states
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core import Layout
from edgegraft.kernels.conditionals.distinct import derive
from tests.judge_cases import rows_of

STATES = [3, 2, 4, MAX_STATES + 4, 5]
KINDS = ["nominal", "ordinal", "numeric", "nominal", "ordinal"]


def draw(n_rows=700, missing=0.0, seed=0):
    """Return columns of which each leans on the one before, the first a third of the time."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, s, n_rows) for s in STATES])
    for j in range(1, len(STATES)):
        codes[:, j] = np.where(rng.random(n_rows) < 0.3, codes[:, j - 1] % STATES[j], codes[:, j])
    codes[rng.random(codes.shape) < missing] = -1
    return codes


def make_rows(case, seed=0):
    rng = np.random.default_rng(10 + seed)
    codes = draw(missing=0.1 if case == "missing" else 0.0, seed=seed)
    weights = rng.uniform(0, 2, len(codes)) if case == "weights" else None
    return rows_of(codes, STATES, KINDS if case == "scores" else None, weights)


CASES = ["nominal", "scores", "weights", "missing"]
ENDS = [(0, [1, 2]), (3, [0, 4]), (4, [0, 1, 3]), (2, [])]


def twin(found, theta):
    """Return value, gradient and information in plain NumPy, row by row of the states."""
    design, q, k = found.design, found.q, found.k
    features = []
    for place, other in enumerate(found.others):
        own = found.rows.columns[other].own
        features.append(own[design.codes[:, place]])
    z = np.concatenate(features, axis=1) if features else np.empty((len(design.codes), 0))
    logits = design.free @ theta[:q] + (z @ theta[q:].reshape(-1, k)) @ design.own.T
    log_p = logits - np.logaddexp.reduce(logits, axis=1)[:, None]
    value, gradient = (design.counts * log_p).sum(), np.zeros(len(theta))
    information = np.zeros((len(theta), len(theta)))
    for g in range(len(z)):
        slopes = np.column_stack(
            (design.free, *(z[g, f] * design.own[:, m, None] for f in range(z.shape[1])
                            for m in range(k)))
        )  # fmt: skip
        p, counts = np.exp(log_p[g]), design.counts[g]
        left = slopes - p @ slopes
        gradient += counts @ left
        information += counts.sum() * (p[:, None] * left).T @ left
    return value, gradient, information


def derived(found, theta):
    gradient, information = np.empty(len(theta)), np.empty((len(theta), len(theta)))
    value = derive(found.design, theta, gradient, information)
    lower = np.tril(information)
    return value, gradient, lower + np.tril(lower, -1).T


def ridged(found, theta):
    """Return value and gradient with the ridge, by the twin."""
    value, gradient, _ = twin(found, theta)
    slopes = theta[found.q :]
    gradient[found.q :] -= RIDGE_ROWS * slopes
    return value - 0.5 * RIDGE_ROWS * slopes @ slopes, gradient


@pytest.fixture
def to_the_end(monkeypatch):
    """Fits that end at the maximum, not near it."""
    monkeypatch.setattr(module, "_TOL", 1e-13)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("target", "others"), ENDS)
def test_the_kernel_is_its_twin(case, target, others):
    found = Conditional(make_rows(case), target, others)
    theta = np.random.default_rng(1).normal(scale=0.4, size=found.n_parameters)
    value, gradient, information = twin(found, theta)
    shown = derived(found, theta)
    assert shown[0] == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(shown[1], gradient, atol=1e-8)
    np.testing.assert_allclose(shown[2], information, atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_is_that_of_differences(case):
    found = Conditional(make_rows(case), 4, [0, 1])
    theta = np.random.default_rng(2).normal(scale=0.3, size=found.n_parameters)
    expected = approx_fprime(theta, lambda at: derived(found, at)[0], 1e-6)
    np.testing.assert_allclose(derived(found, theta)[1], expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("target", "others"), ENDS)
def test_a_fit_is_a_maximum(case, target, others, to_the_end):
    found = Conditional(make_rows(case), target, others)
    value, gradient = ridged(found, found.fit.theta)
    assert found.fit.value == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-4)
    _, _, information = twin(found, found.fit.theta)
    ridge = np.concatenate((np.zeros(found.q), np.full(found.n_parameters - found.q, RIDGE_ROWS)))
    product = found.inverse @ (information + np.diag(ridge))
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_a_fit_that_ends_early_knows_its_value(case, monkeypatch):
    early = Conditional(make_rows(case), 4, [0, 3]).fit
    monkeypatch.setattr(module, "_TOL", 1e-13)
    whole = Conditional(make_rows(case), 4, [0, 3]).fit
    assert early.value == pytest.approx(whole.value, abs=0.01)


@pytest.mark.parametrize(("target", "pair"), [(0, 1), (4, 0), (0, 4)])
def test_ratios_are_those_of_a_logistic_regression(target, pair, to_the_end):
    rows = make_rows("nominal")
    others = [j for j in (0, 1, 2, 4) if j != target]
    found = Conditional(rows, target, others)
    without = found.within(found.cells_of(pair), np.empty((len(found.cells_of(pair)), 0)))
    codes, losses = draw(), []
    for chosen in (others, [j for j in others if j != pair]):
        x = np.concatenate([codes[:, [j]] == np.arange(STATES[j]) for j in chosen], axis=1)
        fitted = LogisticRegression(C=1e4, max_iter=5000, tol=1e-8).fit(x, codes[:, target])
        log_p = fitted.predict_log_proba(x)
        losses.append(log_p[np.arange(len(codes)), codes[:, target]].sum())
    ratio = 2.0 * (found.fit.value - without.value)
    assert ratio == pytest.approx(2.0 * (losses[0] - losses[1]), rel=0.01, abs=0.05)


def test_a_weight_is_a_number_of_rows(to_the_end):
    codes = draw()
    weights = np.random.default_rng(3).integers(0, 4, len(codes))
    one = Conditional(rows_of(codes, STATES, weights=weights), 4, [0, 2])
    other = Conditional(rows_of(np.repeat(codes, weights, axis=0), STATES), 4, [0, 2])
    assert one.weight == other.weight == weights.sum()
    assert one.fit.value == pytest.approx(other.fit.value, rel=1e-10)
    np.testing.assert_allclose(one.fit.theta, other.fit.theta, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("others", [[0], [0, 1, 3], [1, 2]])
def test_a_fit_does_not_depend_on_where_it_begins(case, others, to_the_end):
    rows = make_rows(case)
    fresh = Conditional(rows, 4, others)
    last = Conditional(rows, 4, [0, 1])
    carried = Conditional(rows, 4, others, start=last.carried(others))
    assert len(carried.start) == carried.n_parameters
    np.testing.assert_allclose(carried.fit.theta, fresh.fit.theta, atol=1e-5)
    assert carried.fit.value == pytest.approx(fresh.fit.value, abs=1e-8)


@pytest.mark.parametrize("kinds", [None, KINDS])
@pytest.mark.parametrize("target", [0, 1, 2, 4])
def test_tables_are_a_start(kinds, target, to_the_end):
    rows = rows_of(draw(), STATES, kinds)
    layout = Layout(STATES, [(0, 1), (0, 2), (1, 2), (0, 4), (1, 4), (2, 4)])
    rng, maps = np.random.default_rng(4), [column.own for column in rows.columns]
    theta = np.zeros(layout.n_parameters)
    for i in range(len(STATES)):
        layout.node(theta, i)[:] = rng.normal(size=STATES[i])
    for k, (i, j) in enumerate(layout.edges.tolist()):
        weights = rng.normal(scale=0.5, size=(maps[i].shape[1], maps[j].shape[1]))
        shift = rng.normal(size=(STATES[i], 1)) + rng.normal(size=STATES[j])
        layout.edge(theta, k)[:] = maps[i] @ weights @ maps[j].T + shift
    others = [j for j in (0, 1, 2, 4) if j != target]
    start = start_from_tables(rows, target, others, layout, theta)
    found = Conditional(rows, target, others, start=start)
    logits = np.tile(layout.node(theta, target), (len(found.design.codes), 1))
    for place, other in enumerate(others):
        k = layout.edges.tolist().index(sorted((target, other)))
        table = layout.edge(theta, k)
        shown = (table if target < other else table.T)[:, found.design.codes[:, place]]
        logits += shown.T
    expected = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    first = module.Fit(start, 0.0)
    np.testing.assert_allclose(found.probabilities(first), expected, atol=1e-9)
    np.testing.assert_allclose(
        found.fit.theta, Conditional(rows, target, others).fit.theta, atol=1e-4
    )


def test_pairs_that_a_model_lacks_begin_at_zero():
    rows, layout = make_rows("nominal"), Layout(STATES, [(0, 1)])
    theta = np.random.default_rng(0).normal(size=layout.n_parameters)
    found = Conditional(rows, 0, [1, 4], start=start_from_tables(rows, 0, [1, 4], layout, theta))
    assert not found.start[found.cells_of(4)].any()
    assert found.start[found.cells_of(1)].all()


def test_states_that_never_occur_are_left_out(to_the_end):
    codes = draw()
    narrow = Conditional(rows_of(codes, STATES), 0, [1, 2])
    wide = Conditional(rows_of(codes, [6, 4, 4, *STATES[3:]]), 0, [1, 2])
    moved = codes.copy()
    moved[:, 0] += 2  # the first two never occur
    other = Conditional(rows_of(moved, [6, *STATES[1:]]), 0, [1, 2])
    for found in (wide, other):
        assert found.n_parameters == narrow.n_parameters
        assert found.fit.value == pytest.approx(narrow.fit.value, rel=1e-10)
        scores = found.by_row(found.rows_along(found.fit, np.eye(found.n_parameters)))
        expected = narrow.by_row(narrow.rows_along(narrow.fit, np.eye(found.n_parameters)))
        np.testing.assert_allclose(scores, expected, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("target", "others"), ENDS)
def test_scores_of_rows_add_up_to_the_gradient(case, target, others):
    rows = make_rows(case)
    found = Conditional(rows, target, others)
    size = found.n_parameters
    at = module.Fit(np.random.default_rng(5).normal(scale=0.3, size=size), 0.0)
    by_row = found.by_row(found.rows_along(at, np.eye(size)))
    assert by_row.shape == (rows.n_rows, size)
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    np.testing.assert_allclose(weights @ by_row, twin(found, at.theta)[1], atol=1e-8)


def test_clusters_have_the_variance_of_their_sums():
    rng = np.random.default_rng(6)
    codes, clusters, weights = draw(), rng.integers(0, 30, 700), rng.uniform(0.5, 2, 700)
    survey = SurveyDesign.of(700, clusters=clusters)
    found = Conditional(rows_of(codes, STATES, weights=weights, survey=survey), 0, [1, 2])
    scores = found.rows_along(found.fit, np.eye(found.n_parameters))
    sums = np.zeros((30, found.n_parameters))
    np.add.at(sums, clusters, weights[:, None] * found.by_row(scores))
    np.testing.assert_allclose(found.clustered(scores), 30 * np.cov(sums.T), rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_wider_spans_fit_better(case, to_the_end):
    found = Conditional(make_rows(case), 4, [0, 2])
    cells = found.cells_of(2)
    turn = np.linalg.qr(np.random.default_rng(7).normal(size=(len(cells), len(cells))))[0]
    fits = [found.within(cells, turn[:, :width]) for width in range(len(cells) + 1)]
    values = [fit.value for fit in fits]
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] == pytest.approx(found.fit.value, abs=1e-8)
    for width, fit in enumerate(fits):
        np.testing.assert_allclose(turn[:, width:].T @ fit.theta[cells], 0.0, atol=1e-9)
    alone = Conditional(found.rows, 4, [0]).fit
    if case != "missing":  # other rows are known
        assert values[0] == pytest.approx(alone.value, abs=1e-8)


def test_a_step_is_the_ratio_of_a_weak_table():
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 3, (3000, 3))
    codes[:, 1] = np.where(rng.random(3000) < 0.08, codes[:, 0], codes[:, 1])
    found = Conditional(rows_of(codes), 0, [1, 2])
    cells, every = found.cells_of(1), np.eye(4)
    ratio = 2.0 * (found.fit.value - found.within(cells, every[:, :0]).value)
    assert ratio > 20
    assert found.step(cells, every) == pytest.approx(ratio, rel=0.05)


def test_a_conditional_without_enough_rows_or_states_is_not_usable():
    codes = draw(60)
    assert Conditional(rows_of(codes, STATES), 1, [0]).usable
    assert not Conditional(rows_of(codes, STATES), 1, [0, 3, 4]).usable
    codes[:, 1] = 1
    assert not Conditional(rows_of(codes, STATES), 1, [0]).usable


@st.composite
def tables(draw):
    """Return codes with missing cells, their states, weights, and drawn cells or None."""
    states = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(1, 30))
    codes = np.column_stack([rng.integers(0, s, n) for s in states])
    drawn = None
    if draw(st.booleans()):
        drawn = rng.random(codes.shape) < 0.3
    else:
        codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.3]))] = -1
    weights = rng.integers(0, 3, n) + 0.25 if draw(st.booleans()) else None
    return codes, states, weights, drawn


@settings(max_examples=100, deadline=None)
@given(tables(), st.booleans(), st.sampled_from([1 << 62, 8]))
def test_counts_are_those_of_rows(case, sampling, most):
    codes, states, weights, drawn = case
    rows = rows_of(codes, states, weights=weights, drawn=drawn, sampling=sampling)
    others = list(range(1, len(states)))
    known = [0, 1] if drawn is not None else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_MAX_CODE", most)
        found = [rows.count(0, others, known)]
        patch.setattr(counting, "_CODES_PER_ROW", 0)  # sorted, not counted in an array
        found.append(rows.count(0, others, known))
    usable = (codes >= 0).all(axis=1) if drawn is None else ~drawn[:, :2].any(axis=1)
    shown = np.ones(len(codes)) if weights is None else weights
    expected = {}
    for code, weight in zip(codes[usable].tolist(), shown[usable], strict=True):
        counts, squares = expected.setdefault(tuple(code[1:]), np.zeros((2, states[0])))
        counts[code[0]] += weight
        squares[code[0]] += weight**2 if sampling and weights is not None else weight
    for each in found:
        assert len(set(map(tuple, each.codes.tolist()))) == len(each.codes) == len(expected)
        assert each.counts.sum() == pytest.approx(shown[usable].sum())
        for code, counts, squares in zip(each.codes, each.counts, each.variances, strict=True):
            np.testing.assert_allclose((counts, squares), expected[tuple(code.tolist())])
        chosen = np.arange(len(codes)) if each.rows is None else each.rows
        np.testing.assert_array_equal(chosen, np.flatnonzero(usable))
        np.testing.assert_array_equal(each.codes[each.place], codes[usable][:, 1:])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.integers(1, 200))
def test_groups_of_states_are_heavy_enough(weights, least):
    held = np.array(weights, float)
    group = group_states(held, float(least))
    n = group.max() + 1
    np.testing.assert_array_equal(np.unique(group[group >= 0]), np.arange(n))
    for state in np.flatnonzero(held >= least):  # a common state is alone
        assert (group == group[state]).sum() == 1
    sums = np.bincount(group[group >= 0], held[group >= 0], minlength=n)
    if (held < least).all():
        assert (sums[:-1] >= least).all()  # the last is what is left over
    else:
        assert (sums >= min(least, MIN_ROWS)).all()
        assert held[group < 0].sum() < MIN_ROWS
        assert group[np.lexsort((np.arange(len(held)), held))[-1]] >= 0


@pytest.mark.parametrize(("decay", "n_own", "grouped"), [(0.9, MAX_STATES, False), (0.5, 8, True)])
def test_many_states_share_coordinates_and_rare_ones_a_test(decay, n_own, grouped):
    n_states = 30 if not grouped else 9
    p = decay ** np.arange(n_states)
    codes = np.random.default_rng(9).choice(n_states, (3000, 2), p=p / p.sum())
    column = rows_of(codes, [n_states] * 2).columns[0]
    assert column.free.shape[1] == n_states - 1
    assert column.own.shape[1] <= n_own
    assert column.tested.shape[0] == column.own.shape[1]
    assert (column.tested.shape[1] < column.own.shape[1]) == grouped
    assert (column.own.sum(axis=1) <= 1).all()
    assert not column.own[column.margin.argmax()].any()
    assert not column.scored
