"""A network read, and rows over time."""

import json
import shlex
from datetime import date, datetime

import numpy as np
import pytest
from typer.testing import CliRunner

from edgegraft import GraftedMRF
from edgegraft.cli.app import app
from edgegraft.datasets import make_chain
from edgegraft.errors import DataError, SettingError
from edgegraft.model import PairwiseMRF
from edgegraft.report import (
    plot_adjacency,
    plot_centrality,
    plot_edge_differences,
    plot_edge_intervals,
    plot_predictability,
)
from edgegraft.study import kernel_weights, lagged, read_network
from edgegraft.study.predictability import predictability

ROWS = make_chain(7, n_rows=1200, couplings="ising", random_state=2).X
NAMES = [f"q{k}" for k in range(7)]


@pytest.fixture(scope="module")
def fitted():
    return GraftedMRF(random_state=0).fit(dict(zip(NAMES, ROWS.T, strict=True)))


@pytest.fixture(scope="module")
def found(fitted):
    table = dict(zip(NAMES, ROWS.T, strict=True))
    return read_network(fitted, table, held_out=table, n_resamples=60)


def test_centralities_are_sums_of_effects(found, fitted):
    effects = dict(fitted.model_.edge_columns)["effect"]
    for k in range(7):
        touching = (fitted.model_.edges == k).any(axis=1)
        assert found.variables["strength"][k] == pytest.approx(np.abs(effects[touching]).sum())
        assert found.variables["influence"][k] == pytest.approx(effects[touching].sum())
    assert (found.variables["bridge"] <= found.variables["strength"] + 1e-12).all()
    low, high = (found.variables[f"strength_{end}"] for end in ("low", "high"))
    assert ((low < found.variables["strength"]) & (found.variables["strength"] < high)).all()


def test_errors_are_those_of_the_tests(found):
    width = (found.edges["high"] - found.edges["low"]) / 3.92
    clear = np.abs(found.edges["effect"]) > 0.25  # tests of rare states are careful
    assert np.allclose(found.influence.error[clear], width[clear], rtol=0.3)
    spread = found.influence.resampled(400, np.random.default_rng(0)).std(axis=0)
    assert np.allclose(spread, found.influence.error, rtol=0.25)


@pytest.mark.parametrize("states", [2, 3])
def test_errors_of_strong_and_of_unordered_edges_are_those_of_their_intervals(states):
    rows = make_chain(8, n_states=states, n_rows=1500, random_state=3).X
    fitted = GraftedMRF(random_state=0, kinds="nominal").fit(rows)
    known = dict(fitted.model_.edge_columns)
    error = read_network(fitted, rows, n_resamples=5).influence.error
    ratio = 3.92 * error / (known["effect_high"] - known["effect_low"])
    assert ((ratio > 0.85) & (ratio < 1.15)).all()  # though cells are empty


def test_edges_that_only_predict_have_intervals_and_no_tests():
    z = np.random.default_rng(0).normal(size=(500, 6))
    z[:, 1:] += 0.4 * z[:, :-1]
    fitted = GraftedMRF(aim="prediction", random_state=0).fit(z > 0)
    found = read_network(fitted, z > 0, n_resamples=5)
    untested = np.isnan(found.edges["q_value"])
    assert (found.edges["low"] < found.edges["high"]).all()
    assert (np.isnan(found.edges["replication_probability"]) == untested).all()
    assert (~untested).sum() == fitted.network_model_.n_edges < fitted.model_.n_edges


def test_the_same_rows_held_out_are_predicted_alike(found):
    for name in ("accuracy", "explained", "r2"):
        assert np.allclose(found.variables[name], found.variables[f"held_{name}"])
    assert (found.variables["accuracy"] >= found.variables["baseline_accuracy"] - 0.01).all()
    assert ((found.variables["explained"] > 0) & (found.variables["explained"] < 1)).all()


def test_pairs_that_are_not_edges_exclude_effects_and_come_once(found, fitted):
    assert len(found.absent["effect_upper_bound"]) == 21 - len(fitted.edges_)
    # Of 1,200 rows: nearly three standard errors at least, and not much more.
    assert (found.absent["effect_upper_bound"] > 2.9 / np.sqrt(1200)).all()
    assert (found.absent["effect_upper_bound"] < 6 / np.sqrt(1200)).all()


def test_stability_falls_with_the_rows_that_are_dropped(found):
    assert (np.diff(found.dropped["strength_correlation"]) < 0.05).all()
    assert 0.3 <= found.coefficient["strength"] <= 0.9
    assert set(found.communities) == {0.5, 1.0, 2.0}
    assert (found.edges["replication_probability"] > 0.5).all()


def test_two_edges_are_compared(found):
    columns = found.differences()
    assert (columns["low"] < columns["difference"]).all()
    assert (columns["difference"] < columns["high"]).all()
    sizes = np.abs(found.edges["effect"])
    assert columns["difference"][0] == pytest.approx(sizes[0] - sizes[1])
    assert len(found.frame("differences")) == len(sizes) * (len(sizes) - 1) // 2


@pytest.mark.parametrize(
    "draw", [plot_adjacency, plot_edge_differences, plot_edge_intervals, plot_predictability]
)
def test_plots_are_drawn(found, draw, tmp_path):
    draw(found).figure.savefig(tmp_path / "p.png")


def test_the_legend_of_centralities_names_their_colours(found):
    ax = plot_centrality(found)
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["strength", "expected influence"]
    assert len({handle.get_color() for handle in handles}) == 2


def test_rows_of_a_cluster_are_resampled_together(fitted, found):
    table = {name: np.repeat(column, 3) for name, column in zip(NAMES, ROWS.T, strict=True)}
    whose = np.repeat(np.arange(len(ROWS)), 3)
    naive = read_network(fitted, table, n_resamples=20)
    grouped = read_network(fitted, table, clusters=whose, n_resamples=20, resolutions=[2.0, 0.5])
    once = dict(zip(NAMES, ROWS.T, strict=True))
    counted = read_network(fitted, once, sample_weight=np.full(1200, 3.0), n_resamples=20)
    named = {"once": found, "naive": naive, "grouped": grouped, "counted": counted}
    width = {
        name: one.variables["strength_high"] - one.variables["strength_low"]
        for name, one in named.items()
    }
    assert width["counted"] == pytest.approx(width["naive"], rel=0.02)
    assert counted.absent["effect_upper_bound"] == pytest.approx(
        naive.absent["effect_upper_bound"], rel=0.02
    )
    assert width["naive"] == pytest.approx(width["once"] / np.sqrt(3), rel=0.02)
    assert width["grouped"] == pytest.approx(width["once"], rel=0.02)
    single, copied = (np.median(one.absent["effect_upper_bound"]) for one in (found, grouped))
    assert copied == pytest.approx(single, rel=0.1)
    assert {"community", "community_0.5"} <= set(grouped.variables)
    own = [one.edges["high"] - one.edges["low"] for one in (found, grouped)]
    assert own[1] == pytest.approx(own[0], rel=0.25)  # tests of rare states are careful
    with pytest.raises(DataError, match="has 2 values where the table has 3,600 rows"):
        read_network(fitted, table, clusters=["a", "b"])
    with pytest.raises(SettingError, match="resolutions"):
        read_network(fitted, table, resolutions=[0.0])


def test_the_command_reads_a_model_file(fitted, tmp_path):
    model, table = tmp_path / "m.edgegraft", tmp_path / "t.csv"
    fitted.save(model)
    lines = [",".join([*map(str, r), str(k // 2), "2"]) for k, r in enumerate(ROWS.tolist())]
    table.write_text("\n".join([",".join([*NAMES, "who", "w"]), *lines]))
    files = [str(tmp_path / name) for name in ("v.csv", "r.html", "p.svg")]
    arguments = ["read", str(model), str(table), "-o", files[0], "--report", files[1]]
    done = CliRunner().invoke(app, [*arguments, "--plot", files[2], "--kind", "stability"])
    assert done.exit_code == 0, done.output
    assert "exclude effects above" in done.stdout
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert ">Centrality<" in page
    assert page.count('src="data:image/png;base64,') == 6
    options = ["--json", "--clusters", "who", "--weights", "w", "--resolution", "1.5"]
    found = json.loads(CliRunner().invoke(app, [*arguments[:3], *options]).stdout)
    assert len(found["variables"]) == 7
    assert list(found["communities"]) == ["1.5"]
    wrong = CliRunner().invoke(app, [*arguments[:3], "--clusters", "whose"])
    assert wrong.exit_code == 2
    assert "whose" in wrong.output


def test_lags_stay_within_subjects_and_skip_gaps(tmp_path):
    diary = {"who": list("aaabb"), "day": [1, 2, 4, 1, 2], "mood": [1, 2, 3, 4, 5]}
    rows = lagged(diary, subject="who", time="day")
    assert rows.columns == {"mood": [2, 5], "mood_lag1": [1, 4]}
    assert rows.clusters.tolist() == ["a", "b"]
    for days in (date, datetime):
        dated = diary | {"day": [days(2026, 1, day) for day in diary["day"]]}
        assert lagged(dated, subject="who", time="day").columns == rows.columns
    assert repr(rows) == "LaggedRows(2 rows of 2 subjects x 2 columns, lags among them)"
    two = lagged({"mood": [1, 2, 3]}, lags=2)
    assert two.columns["mood_lag2"] == [None, 1]
    file = tmp_path / "diary.csv"  # whose numbers are numbers, as in a fit of the file
    file.write_text("who,day,mood\na,9,1\na,10,2.5\n")
    assert lagged(file, subject="who", time="day").columns == {"mood": [2.5], "mood_lag1": [1.0]}
    with pytest.raises(DataError, match="same 'day'"):
        lagged({"day": [1, 1], "mood": [1, 2]}, time="day")
    with pytest.raises(SettingError, match="lags"):
        lagged(diary, 0)


def test_the_command_writes_lags_that_learn_takes(tmp_path):
    diary, rows = tmp_path / "diary.csv", tmp_path / "rows.csv"
    lines = [f"p{k // 12},{k % 12},{(k * 7) % 3},{(k // 2) % 2}" for k in range(300)]
    diary.write_text("\n".join(["who,day,mood,sleep", *lines]))
    typed = ["lag", str(diary), "-o", str(rows), "--subject", "who", "--time", "day"]
    done = CliRunner().invoke(app, [*typed, "--at", "5", "--bandwidth", "2"])
    assert done.exit_code == 0, done.output
    head, first, *others = rows.read_text().splitlines()
    assert len(others) == 25 * 11 - 1  # text is sorted by its numbers: 10 comes after 9
    assert others[8].split(",")[:2] == ["1", "0"]
    assert head == "mood,mood_lag1,sleep,sleep_lag1,who,weight"
    assert first.startswith("1,0,0,0,p0,0.1353")
    learn = shlex.split(done.output.splitlines()[-1])
    assert learn[5:] == ["--clusters", "who", "--weights", "weight", "--rule", learn[-1]]
    learned = CliRunner().invoke(app, [*learn[1:4], str(tmp_path / "m.edgegraft"), *learn[5:]])
    assert learned.exit_code == 0, learned.output
    assert CliRunner().invoke(app, [*typed, "--force", "--at", "5"]).exit_code == 2
    assert CliRunner().invoke(app, [*typed[:2], "-o", str(tmp_path / "rows.xyz")]).exit_code == 2


def test_a_temporal_edge_is_found_and_lags_are_not_linked():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 3000)
    b = np.where(rng.random(3000) < 0.6, np.roll(a, 1), rng.integers(0, 2, 3000))
    rows = lagged({"a": a.tolist(), "b": b.tolist()})
    fitted = GraftedMRF(random_state=0, rules=rows.rules).fit(rows.columns)
    names = fitted.schema_.names
    edges = {frozenset((names[i], names[j])) for i, j in fitted.edges_.tolist()}
    assert frozenset(("a_lag1", "b")) in edges
    assert frozenset(("a_lag1", "b_lag1")) not in edges


def test_weights_around_a_moment_show_a_network_that_changes():
    rng = np.random.default_rng(1)
    time = np.linspace(0, 1, 3000)
    a = rng.integers(0, 2, 3000)
    b = np.where(rng.random(3000) < 0.8 * (time > 0.5), a, rng.integers(0, 2, 3000))
    X = np.stack((a, b), axis=1)
    early, late = (
        GraftedMRF(random_state=0).fit(X, sample_weight=kernel_weights(time, at, 0.1))
        for at in (0.15, 0.85)
    )
    assert len(early.edges_) == 0
    assert len(late.edges_) == 1
    with pytest.raises(SettingError, match="bandwidth"):
        kernel_weights(time, 0.5, 0)
    with pytest.raises(SettingError, match="near the time of a row"):
        kernel_weights(time, 7.0, 0.1)
    with pytest.raises(DataError, match="days since a start"):
        kernel_weights(np.array(["2026-01-01"], "datetime64[D]"), 0.5, 1.0)


def test_a_variable_that_nothing_explains_has_no_share_by_rounding():
    categories, shares = {"a": [0, 1, 2], "b": [0, 1]}, np.array([3, 2, 5])
    model = PairwiseMRF.from_potentials(categories, nodes={"a": np.log(shares)})
    codes = np.column_stack((np.repeat([0, 1, 2], 10 * shares), np.arange(100) % 2))
    found = predictability(model, codes)
    assert found["explained"].tolist() == [0.0, 0.0]
    assert found["r2"][1] == 0.0
