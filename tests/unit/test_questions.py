"""Every question against brute force, with and without evidence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from edgegraft.errors import ConvergenceWarning, ImpossibleEvidenceError, ModelError
from edgegraft.inference import AutoEngine, BeliefPropagation, ExactBudget, affordability
from edgegraft.model import PairwiseMRF, evidence
from edgegraft.table import Schema
from tests.brute import Brute

EVIDENCE = [None, {"x1": 2}, {"x0": 1, "x4": 0}]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]
    schema = Schema.from_states([2, 3, 2, 4, 2, 3])
    size = 16 + 6 + 6 + 4 + 8 + 8
    return PairwiseMRF(schema, edges, rng.normal(size=size))


@pytest.mark.parametrize("given", EVIDENCE)
def test_marginals(model, given):
    found, brute = model.marginals(given), Brute(model, given)
    assert found.engine.exact
    assert list(found) == [name for name in model.names if name not in (given or {})]
    for name in found:
        truth = brute.marginal(model.schema.index(name))
        np.testing.assert_allclose(list(found[name].values()), truth, atol=1e-12)
        np.testing.assert_allclose(found.array(name), truth, atol=1e-12)


@pytest.mark.parametrize("given", EVIDENCE)
@pytest.mark.parametrize("pair", [("x2", "x3"), ("x3", "x2"), ("x5", "x2")])
def test_pair_marginals(model, given, pair):
    found = model.pair_marginal(*pair, given)
    truth = Brute(model, given).pair(*(model.schema.index(name) for name in pair))
    np.testing.assert_allclose(found.table, truth, atol=1e-12)
    assert found[1, 0] == found.table[1, 0]
    assert found.method == "exact"


def test_pair_marginals_by_bp_name_their_method(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert model.pair_marginal("x0", "x1", engine="bp").method == "edge belief"
        assert model.pair_marginal("x0", "x3", engine="bp").method == "product of beliefs"


@pytest.mark.parametrize("given", EVIDENCE)
def test_the_likeliest_state(model, given):
    found, brute = model.map(given), Brute(model, given)
    best = int(np.argmax(brute.scores))
    assert found.exact
    assert found.codes.tolist() == brute.codes[best].tolist()
    np.testing.assert_allclose(found.value, brute.scores[best])
    assert all(found[name] == label for name, label in (given or {}).items())
    assert not model.map(given, engine="bp").exact


@pytest.mark.parametrize("given", EVIDENCE)
def test_log_partition(model, given):
    found = model.log_partition(given)
    np.testing.assert_allclose(float(found), Brute(model, given).log_z, rtol=1e-12)
    assert found.kind == "exact"
    assert model.log_partition(given, engine="trw").value >= found.value - 1e-9


def test_row_likelihoods_sum_over_missing_cells(model):
    brute = Brute(model)
    np.testing.assert_allclose(np.exp(model.log_likelihood(codes=brute.codes).rows), brute.p)
    rows = brute.codes[[3, 40]].copy()
    rows[0, [0, 3]] = -1
    rows[1] = -1
    keep = (brute.codes[:, [1, 2, 4, 5]] == rows[0, [1, 2, 4, 5]]).all(axis=1)
    truth = np.log([brute.p[keep].sum(), 1.0])
    np.testing.assert_allclose(model.log_likelihood(codes=rows).rows, truth, atol=1e-10)


@pytest.mark.parametrize("affordable", [True, False])
def test_predictions_sum_over_missing_cells(model, monkeypatch, affordable):
    brute, rng = Brute(model), np.random.default_rng(0)
    if not affordable:
        monkeypatch.setattr(evidence, "affordable", lambda *_: None)
    rows = brute.codes[rng.integers(len(brute.codes), size=12)].copy()
    rows[rng.random(rows.shape) < 0.6] = -1
    rows[0] = -1  # nothing is known: the model's shares
    for i in range(6):
        found = model.predict_proba(target=model.names[i], codes=rows)
        for row, shares in zip(rows, found, strict=True):
            known = np.flatnonzero((row >= 0) & (np.arange(6) != i))
            same = (brute.codes[:, known] == row[known]).all(axis=1)
            truth = np.bincount(brute.codes[same, i], brute.p[same], len(shares))
            atol = 1e-9 if affordable else 0.06
            np.testing.assert_allclose(shares, truth / truth.sum(), atol=atol)


def test_pseudolikelihood_and_predictions_are_conditionals(model):
    brute = Brute(model)
    rows = brute.codes[::17]
    found = model.pseudo_log_likelihood(rows, per_variable=True)
    for r, row in enumerate(rows):
        for i in range(6):
            others = np.delete(np.arange(6), i)
            same = (brute.codes[:, others] == row[others]).all(axis=1)
            truth = brute.p[same] / brute.p[same].sum()
            np.testing.assert_allclose(np.exp(found[r, i]), truth[row[i]], rtol=1e-9)
            np.testing.assert_allclose(
                model.predict_proba(row[None], model.names[i])[0], truth, rtol=1e-9
            )
    np.testing.assert_allclose(model.pseudo_log_likelihood(rows), found.sum(axis=1))


@pytest.mark.parametrize("engine", ["exact", "gibbs"])
def test_samples_have_the_models_frequencies(model, engine):
    given = {"x3": 1}
    codes = model.sample_codes(20_000, given, engine=engine, random_state=0)
    brute = Brute(model, given)
    assert (codes[:, 3] == 1).all()
    for i in range(6):
        freq = np.bincount(codes[:, i], minlength=model.schema.n_states[i]) / len(codes)
        spread = np.sqrt(np.maximum(brute.marginal(i) * (1 - brute.marginal(i)), 1e-9) / 20_000)
        assert (np.abs(freq - brute.marginal(i)) < 5 * spread + 1e-6).all()
    freq = np.bincount(codes[:, 0] * 3 + codes[:, 1], minlength=6) / len(codes)
    assert np.abs(freq - brute.pair(0, 1).ravel()).max() < 0.02


def test_samples_come_with_names_and_repeat_with_their_seed(model):
    first, second = (model.sample(5, random_state=3) for _ in range(2))
    assert first.column_names == list(model.names)
    assert first.equals(second)
    assert model.sample(0).num_rows == 0


def test_everything_given_leaves_nothing_to_ask():
    model = PairwiseMRF(Schema.from_states([2, 2]), [(0, 1)], np.arange(8.0))
    given = {"x0": 1, "x1": 0}
    assert len(model.marginals(given)) == 0
    assert model.map(given).codes.tolist() == [1, 0]
    assert model.log_partition(given).value == 1 + 2 + 6
    assert model.sample_codes(2, given).tolist() == [[1, 0], [1, 0]]


def test_impossible_evidence_says_so():
    hard = PairwiseMRF.from_potentials(
        {"a": ["no", "yes"], "b": ["no", "yes"], "c": ["no", "yes"]},
        edges={
            ("a", "b"): [[0, -np.inf], [-np.inf, 0]],
            ("b", "c"): [[0, -np.inf], [-np.inf, 0]],
        },
    )
    assert hard.marginals({"a": "yes"})["c"] == {"no": 0.0, "yes": 1.0}
    for ask in (hard.marginals, hard.log_partition, hard.map):
        with pytest.raises(ImpossibleEvidenceError):
            ask({"a": "yes", "b": "no"})
        with pytest.raises(ImpossibleEvidenceError):
            ask({"a": "yes", "c": "no"})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.marginals({"x9": 0}), "no variable 'x9'"),
        (lambda m: m.marginals({"x1": 7}), "'x1' has no category 7; its categories are 0, 1, 2"),
        (lambda m: m.marginals({"x0": True}), "'x0' has no category True"),
        (lambda m: m.pair_marginal("x0", "x0"), "found 'x0' twice"),
        (lambda m: m.pair_marginal("x0", "x1", {"x1": 0}), "'x1' is given"),
        (lambda m: m.predict_proba(np.zeros((1, 6), int), "y"), "no variable 'y'"),
        (lambda m: m.map(engine="gibbs"), "'gibbs' does not maximise"),
        (lambda m: m.sample(1, engine="bp"), "'bp' does not sample"),
        (lambda m: m.log_partition(engine="gibbs"), "gives no log-partition function"),
    ],
)
def test_questions_that_make_no_sense_are_refused(model, ask, message):
    with pytest.raises(ModelError, match=message):
        ask(model)


def test_answers_that_did_not_converge_warn():
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    schema = Schema.from_states([2] * 6)
    frustrated = PairwiseMRF(schema, edges, 5 * rng.normal(size=12 + 4 * len(edges)))
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        found = frustrated.marginals(engine=BeliefPropagation(max_iter=2))
    assert "NOT CONVERGED" in repr(found)


def test_log_partition_where_exact_inference_is_too_dear(monkeypatch):
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(8) for j in range(i + 1, 8)]
    dense = PairwiseMRF(Schema.from_states([2] * 8), edges, 0.3 * rng.normal(size=16 + 112))
    monkeypatch.setattr("edgegraft.model.questions.affordable", lambda layout: None)
    found, truth = dense.log_partition(random_state=0), Brute(dense).log_z
    assert found.kind == "annealed importance sampling"
    assert 0 < found.standard_error < 0.1
    assert abs(found.value - truth) < 4 * found.standard_error
    assert found.upper_bound >= truth


def test_samples_of_chains_that_do_not_agree_warn():
    strong = PairwiseMRF.from_potentials(
        {"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): [[9.0, -9.0], [-9.0, 9.0]]}
    )
    with pytest.warns(ConvergenceWarning, match="R-hat of '[ab]' is"):
        assert strong.sample_codes(10, engine="gibbs", random_state=0).shape == (10, 2)
    assert strong.sample_codes(10, engine="exact", random_state=0).shape == (10, 2)


def test_answers_name_their_approximation(model):
    assert model.marginals().approximation is None
    assert model.pair_marginal("x0", "x1").approximation is None
    assert model.map().approximation is None
    assert model.log_partition().approximation is None
    assert model.log_likelihood(codes=[[0] * 6]).approximation is None
    assert model.marginals(engine="bp").approximation == "belief propagation"
    assert model.pair_marginal("x0", "x1", engine="gibbs").approximation == "Gibbs sampling"
    assert model.map(engine="bp").approximation.startswith("max-product belief propagation")
    assert model.log_partition(engine="trw").approximation == "upper bound"
    auto = AutoEngine(ExactBudget(seconds=0.0))
    found = model.marginals(engine=auto).approximation
    assert found.startswith("belief propagation; exact inference would take at least")


def test_a_row_prepares_exact_inference_once_per_pattern_of_gaps(model, monkeypatch):
    calls = []
    search = affordability.order_variables
    monkeypatch.setattr(
        affordability, "order_variables", lambda *given: calls.append(1) or search(*given)
    )
    affordability._search.cache_clear()
    rows = np.tile([[-1, -1, 1, 0, 0, 1], [0, 1, -1, -1, 1, 0]], (20, 1))
    for method in ("map", "draw"):
        model.impute_codes(rows, method=method)
    assert len(calls) == 2
    model.log_likelihood(codes=rows)
    assert len(calls) == 5  # log Z, and another budget for each pattern


def test_exact_samples_take_no_marginals(model, monkeypatch):
    monkeypatch.setattr("edgegraft.kernels.elimination.junction.distribute", None)
    assert model.sample_codes(3, engine="exact", random_state=0).shape == (3, 6)
    assert (model.impute_codes([[-1] * 6], method="draw") >= 0).all()
