"""Groups compared: against closed forms, with planted differences, and in awkward tables."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from edgegraft import GraftedMRF
from edgegraft.cli.app import app
from edgegraft.errors import DataError, EncodingWarning, SettingError
from edgegraft.study import compare, network_tests
from edgegraft.study.network_tests import PermutedTests, cauchy_p_value, combined_p_value

RNG = np.random.default_rng(3)


def chain(n_rows, agree, rng, states=2):
    """Return columns each of which repeats the one before with a chance of its own."""
    columns = [rng.integers(0, states, n_rows)]
    for share in agree:
        again = rng.random(n_rows) < share
        columns.append(np.where(again, columns[-1], rng.integers(0, states, n_rows)))
    return np.stack(columns, axis=1)


def two_groups(
    seed, agree=((0.5, 0.5, 0.5, 0.5), (0.5, 0.5, 0.0, 0.5)), sizes=(700, 500), states=2
):
    rng = np.random.default_rng(seed)
    rows = [chain(n, own, rng, states) for n, own in zip(sizes, agree, strict=True)]
    return np.concatenate(rows), np.repeat(["a", "b"], sizes)


def pairs(found, mask):
    columns = found.edges["first"][mask], found.edges["second"][mask]
    return set(zip(*columns, strict=True))


def p_of(found, edge=("x2", "x3")):
    chosen = (found.edges["first"] == edge[0]) & (found.edges["second"] == edge[1])
    return float(found.edges["p_value"][chosen][0])


@pytest.mark.parametrize("states", [2, 3])
def test_a_planted_difference_is_found_and_nothing_else(states):
    X, groups = two_groups(1, states=states)
    found = compare(X, groups, n_permutations=200, kinds="nominal")
    assert pairs(found, found.edges["differs"]) == {("x2", "x3")}
    assert found.p_value == pytest.approx(1 / 201)
    differing = found.variables["name"][found.variables["q_value"] < 0.05]
    assert set(differing) == {"x2", "x3"}
    edge = {name: values[0] for name, values in found.edges.items()}
    assert edge["in_a"]
    assert not edge["in_b"]
    if states == 2:
        assert edge["difference_high"] < 0
        assert edge["low_b"] < 0 < edge["high_b"]


def test_edges_that_do_not_differ_have_the_same_parameters_in_all_groups():
    X, groups = two_groups(1)
    found = compare(X, groups, n_permutations=0)
    first, second = (found.models[name] for name in "ab")
    order = found.places()
    for k, free in enumerate(found.edges["differs"][order]):
        tables = [model.layout.edge(model.theta, k) for model in (first, second)]
        assert np.allclose(*tables) != free


def test_two_binary_columns_give_the_test_of_equal_odds_ratios():
    counts = np.array([[[40, 25], [20, 45]], [[50, 30], [45, 35]]])
    cells = np.array([(g, i, j) for g in (0, 1) for i in (0, 1) for j in (0, 1)])
    rows = np.repeat(cells, counts.ravel(), axis=0)
    found = compare(rows[:, 1:], rows[:, 0], n_permutations=0)
    log_odds = np.log(counts[:, 0, 0] * counts[:, 1, 1] / (counts[:, 0, 1] * counts[:, 1, 0]))
    woolf = (log_odds[0] - log_odds[1]) ** 2 / (1 / counts).sum()
    assert found.edges["statistic"][0] == pytest.approx(woolf, rel=0.05)


def test_weights_that_count_rows_are_repeated_rows():
    X, groups = two_groups(4, sizes=(300, 300))
    twice = np.repeat(np.arange(600), 2)
    weighted = compare(X, groups, sample_weight=np.full(600, 2.0), n_permutations=0)
    repeated = compare(X[twice], groups[twice], n_permutations=0)
    assert np.allclose(weighted.edges["p_value"], repeated.edges["p_value"], rtol=1e-4)


@pytest.mark.parametrize("n_permutations", [0, 20])
def test_a_constant_column_has_no_edge_that_differs(n_permutations):
    X, groups = two_groups(4, sizes=(300, 300))
    X[:, 2] = X[0, 2]
    with pytest.warns(EncodingWarning, match="constant columns: 'x2'"):
        found = compare(X, groups, n_permutations=n_permutations)
    constant = (found.edges["first"] == "x2") | (found.edges["second"] == "x2")
    assert constant.any()
    assert not found.edges["differs"][constant].any()
    assert (found.edges["p_value"][constant] == 1).all()


@pytest.mark.parametrize("agree", [0.3, 0.8, 0.95])
def test_effects_of_strong_edges_are_those_of_a_fit(agree):
    X, groups = two_groups(4, agree=((agree, 0.4, 0.4, 0.4),) * 2)
    known = GraftedMRF(random_state=0).fit(X).edges_frame().set_index(["first", "second"])
    found = compare(X, groups, n_permutations=0)
    k = int(((found.edges["first"] == "x0") & (found.edges["second"] == "x1")).argmax())
    edge = {name: values[k] for name, values in found.edges.items()}
    for name in "ab":
        assert edge[f"effect_{name}"] == pytest.approx(known.effect["x0", "x1"], abs=0.07)
        assert edge[f"low_{name}"] < edge[f"effect_{name}"] < edge[f"high_{name}"] < 1
    assert edge["difference"] == pytest.approx(edge["effect_b"] - edge["effect_a"])
    assert edge["difference_low"] < 0 < edge["difference_high"]


def test_margins_of_groups_may_differ_without_a_difference_of_networks():
    rng = np.random.default_rng(5)
    X, groups = two_groups(6, agree=((0.6, 0.6, 0.6, 0.6),) * 2, sizes=(1500, 1500))
    b = groups == "b"
    for column in range(5):  # thinned at random, which leaves odds ratios alone
        X[b, column] = np.where(rng.random(1500) < 0.3, 1, X[b, column])
    shifted = compare(X, groups, n_permutations=100)
    assert shifted.edges["effect_a"].shape == shifted.edges["effect_b"].shape
    same = compare(X[b], np.where(rng.random(1500) < 0.5, "a", "b"), n_permutations=100)
    assert same.n_different == 0


def test_missing_cells_a_lacking_category_and_three_groups():
    X, groups = two_groups(7, sizes=(600, 600), states=3)
    frame = {f"q{k}": [f"s{cell}" for cell in X[:, k]] for k in range(5)}
    frame["q0"] = [
        "s1" if g == "b" and c == "s2" else c for c, g in zip(frame["q0"], groups, strict=True)
    ]
    frame["q1"][:50] = [None] * 50
    frame["group"] = np.where(np.arange(1200) % 400 == 0, "c", groups).tolist()
    with pytest.raises(DataError, match=r"fewer than 20 rows.*'c \(3\)'"):
        compare(frame, "group")
    thirds = np.where(np.arange(1200) < 400, "c", groups)
    frame["group"] = [None if k == 7 else label for k, label in enumerate(thirds.tolist())]
    with pytest.warns(EncodingWarning, match="1 of 1,200 rows have no group"):
        found = compare(frame, "group", n_permutations=50)
    assert found.groups == ("a", "b", "c")
    assert sum(found.sizes) == 1199
    assert ("q2", "q3") in pairs(found, found.edges["differs"])
    first = found.edges["first"] == "q0"
    assert (found.edges["dof"][first] < 2 * 2 * 2).all()  # what a group lacks is not tested


def test_clusters_widen_what_copies_of_rows_would_narrow():
    X, groups = two_groups(8, agree=((0.5, 0.5, 0.5, 0.5), (0.5, 0.5, 0.35, 0.5)), sizes=(250, 250))
    once = compare(X, groups, n_permutations=100)
    four = np.repeat(np.arange(500), 4)
    copied = compare(X[four], groups[four], clusters=four, n_permutations=100)
    naive = compare(X[four], groups[four], n_permutations=100)
    assert p_of(copied) == pytest.approx(p_of(once), abs=0.1)
    assert p_of(naive) < p_of(once) / 2
    assert copied.p_value > naive.p_value
    for low, high in (("low_a", "high_a"), ("difference_low", "difference_high")):
        widths = [np.median(f.edges[high] - f.edges[low]) for f in (once, copied, naive)]
        assert widths[1] == pytest.approx(widths[0], rel=0.1)
        assert widths[2] == pytest.approx(widths[0] / 2, rel=0.1)


def test_pairs_swap_within_clusters():
    X, _ = two_groups(9, agree=((0.5, 0.5, 0.5, 0.5),) * 2, sizes=(300, 1))
    rows = np.concatenate((X[:300], X[:300]))
    person = np.tile(np.arange(300), 2)
    found = compare(rows, np.repeat(["before", "after"], 300), clusters=person, n_permutations=50)
    assert found.n_different == 0
    assert found.p_value == 1.0
    assert np.abs(found.edges["difference"]).max() < 1e-6  # the same answers twice, for certain
    assert (found.edges["difference_high"] - found.edges["difference_low"]).max() < 1e-6
    assert (found.edges["high_after"] - found.edges["low_after"]).min() > 0.01


def test_p_values_of_one_do_not_silence_a_combination():
    assert cauchy_p_value(np.array([1e-6, 1.0, 1.0])) < 1e-5
    first, second = np.random.default_rng(4).uniform(size=(2, 2000, 30))
    corrected = np.minimum(1.0, np.minimum(first / 0.9, second / 0.1))  # as of ordered columns
    rate = np.mean([cauchy_p_value(p) <= 0.05 for p in corrected])
    assert 0.025 < rate < 0.055


def test_an_empty_cell_does_not_narrow_an_interval():
    rng = np.random.default_rng(6)
    first, second = rng.choice(3, (2, 800), p=[0.06, 0.5, 0.44])
    second[(first == 0) & (second == 0)] = 1  # two rare states that never meet
    again = np.where(rng.random(800) < 0.4, second, rng.integers(0, 3, 800))
    rows, groups = np.stack([first, second, again], axis=1), np.repeat(["a", "b"], 400)
    found = compare(rows, groups, n_permutations=0, kinds="nominal")
    k = int(((found.edges["first"] == "x0") & (found.edges["second"] == "x1")).argmax())
    assert found.edges["high_a"][k] - found.edges["low_a"][k] > 0.1


def test_bad_requests_are_refused():
    X, groups = two_groups(1, sizes=(60, 60))
    with pytest.raises(DataError, match="has 119 values where the table has 120 rows"):
        compare(X, groups[1:])
    with pytest.raises(DataError, match="comparing needs two"):
        compare(X, ["a"] * 120)
    with pytest.raises(DataError, match="no column 'grp'"):
        compare({"a": groups, "b": groups}, "grp")
    with pytest.raises(SettingError, match="fdr"):
        compare(X, groups, fdr=0)
    with pytest.raises(TypeError, match=r"compare\(\) has no argument .* mean 'n_permutations'"):
        compare(X, groups, permutations=100)


def test_an_edge_that_permutations_do_not_confirm_does_not_differ(monkeypatch):
    X, groups = two_groups(1)
    doubted = compare(X, groups, n_permutations=50)
    assert doubted.n_different == 1
    monkeypatch.setattr(network_tests, "rank_p_values", lambda statistics: np.full(51, 0.2))
    doubted = compare(X, groups, n_permutations=50)
    assert doubted.n_different == 0
    assert doubted.edges["q_value"].min() < 0.05
    first, second = (doubted.models[name] for name in "ab")
    for k in range(first.n_edges):
        assert np.allclose(*(own.layout.edge(own.theta, k) for own in (first, second)))


@pytest.mark.parametrize(
    ("changed", "apart"),
    [([0], 1e-5), ([5], 1e-5), (range(6), 0.05)],
    ids=["one weak edge", "the strongest", "all weaker"],
)
def test_one_weak_one_strong_and_all_differences_are_seen(changed, apart):
    rng = np.random.default_rng(1)
    p, along = rng.random((1000, 6)), rng.normal(size=(2, 1000, 6))
    p[0, list(changed)] = apart
    if len(changed) == 6:
        along[:, 0] = [[1.8], [-1.8]]
    tests = PermutedTests(p, along)
    assert combined_p_value(tests, np.geomspace(1e-3, 1e-20, 6), np.linspace(0.1, 0.5, 6)) < 0.01


def test_combined_p_values_are_uniform_if_rows_are_exchangeable():
    found = []
    for _ in range(400):
        tests = PermutedTests(RNG.random((40, 6)) ** 2, RNG.normal(size=(2, 40, 6)))
        found.append(combined_p_value(tests, RNG.random(6) ** 4, RNG.normal(size=6)))
    assert abs(np.mean(np.array(found) <= 0.1) - 0.1) < 0.05


def test_the_command_writes_columns_a_page_and_a_picture(tmp_path):
    X, groups = two_groups(1)
    lines = ["q0,q1,q2,q3,q4,sex"]
    lines += [",".join([*map(str, row), g]) for row, g in zip(X.tolist(), groups, strict=True)]
    table = tmp_path / "s.csv"
    table.write_text("\n".join(lines))
    files = [tmp_path / name for name in ("edges.csv", "page.html", "picture.png")]
    arguments = ["compare", str(table), "--by", "sex", "--permutations", "50", "-o", str(files[0])]
    arguments += ["--report", str(files[1]), "--plot", str(files[2])]
    runner = CliRunner()
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "Edges that differ: 1 of" in shown.stdout
    assert "q2" in shown.stdout
    page = files[1].read_text(encoding="utf-8")
    assert ">Groups<" in page
    assert page.count('src="data:image/png;base64,') == 1
    assert files[2].read_bytes()[:4] == b"\x89PNG"
    assert files[0].read_text().startswith("first,second,signed,effect_a")
    found = json.loads(runner.invoke(app, [*arguments[:6], "--json"]).stdout)
    assert found["n_different"] == 1
    assert found["groups"] == {"a": 700, "b": 500}
