"""What is known of pairs before the search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from edgegraft import GraftedMRF, read_details
from edgegraft.cli.app import app
from edgegraft.config import GraftingSettings
from edgegraft.core import all_pairs
from edgegraft.datasets import make_chain
from edgegraft.errors import SettingError
from edgegraft.grafting.pair_rules import PairRules

NAMES = ["a1", "a2", "b1", "b2", "c"]
ROWS = make_chain(6, n_rows=1500, couplings="ising", random_state=0).X


def allowed(*rules):
    pairs = all_pairs(5)
    found = PairRules.read(rules, NAMES)
    kept = pairs[found.allows(pairs)]
    assert found.n_allowed == len(kept)
    return {(NAMES[i], NAMES[j]) for i, j in kept}


def edges(**options):
    fitted = GraftedMRF(random_state=0, **options).fit(ROWS)
    return {tuple(edge) for edge in fitted.edges_.tolist()}, fitted


def test_rules_name_pairs_by_name_pattern_place_and_tier(tmp_path):
    assert len(allowed()) == 10
    assert allowed("only a* -- b1") == {("a1", "b1"), ("a2", "b1")}
    assert ("a1", "a2") not in allowed("forbid a* -- a*")
    assert allowed("gap 3") == {("a1", "c")}
    assert allowed("tiers a* < b* < c") == allowed("forbid a* -- c")
    file = tmp_path / "rules.txt"
    file.write_text("# known\nforbid a* -- c\n\n")
    assert allowed(f"file {file}") == allowed("forbid a* -- c")
    table = tmp_path / "rules.csv"
    table.write_text("first,second,rule,weight\na*,c,forbid,\na1,b1,weight,3\n")
    assert allowed(f"file {table}") == allowed("forbid a* -- c")


@given(st.lists(st.sampled_from(["weight 3 a* -- c", "weight .2 a1 -- *", "forbid b* -- c"])))
def test_weights_of_allowed_pairs_have_mean_one(rules):
    found, pairs = PairRules.read(rules, NAMES), all_pairs(5)
    weights = found.weights(pairs)[found.allows(pairs)]
    assert weights.mean() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("exclude a1 -- c", "must begin with require"),
        ("forbid a1", "must name a pair"),
        ("forbid a1 -- d", "no column is called 'd'"),
        ("weight none a1 -- c", "weight above 0"),
        ("gap wide", "whole number of places"),
        ("file nowhere.txt", "does not exist"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule, problem):
    with pytest.raises(SettingError, match=problem):
        PairRules.read([rule], NAMES)


def test_a_pair_is_not_both_required_and_forbidden():
    with pytest.raises(SettingError, match="both require and forbid the pair 'a1' -- 'c'"):
        PairRules.read(["require a1 -- c", "forbid a* -- c"], NAMES)


@pytest.mark.parametrize(
    "options",
    [{}, {"search": GraftingSettings(relaxed=False)}, {"fdr": None}, {"fwer": 0.05}],
)
def test_required_pairs_are_edges_and_forbidden_ones_are_not_even_scored(options):
    found, fitted = edges(rules=["require x0 -- x5", "forbid x1 -- x2"], **options)
    assert (0, 5) in found
    assert (1, 2) not in found
    assert fitted.certificate_.n_pairs == 14 - len(found)
    if fitted.pair_ranking_ is not None:
        assert len(fitted.pair_ranking_["first"]) == 14
    assert fitted.n_tables_ <= 14


def test_without_rules_nothing_changes_and_fewer_pairs_lower_q_values():
    plain, whole = edges()
    _, same = edges(rules=[])
    assert np.array_equal(whole.edge_table_["q_value"], same.edge_table_["q_value"])
    chain, fewer = edges(rules=[f"only x{k} -- x{k + 1}" for k in range(5)])
    assert chain == plain
    assert fewer.n_tables_ == 5
    assert (fewer.edge_table_["q_value"] <= np.sort(whole.edge_table_["q_value"])[:5].max()).all()


def test_weights_move_q_values_of_their_pairs():
    _, whole = edges()
    _, weighted = edges(rules=["weight 10 x0 -- x1"])
    q = [
        dict(zip(zip(t["first"], t["second"], strict=True), t["q_value"], strict=True))
        for t in (whole.edge_table_, weighted.edge_table_)
    ]
    assert q[1]["x0", "x1"] < q[0]["x0", "x1"]
    assert q[1]["x1", "x2"] > q[0]["x1", "x2"]


def test_the_command_takes_rules_and_the_model_file_keeps_them(tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.edgegraft"
    lines = [",".join(f"x{k}" for k in range(6))]
    table.write_text("\n".join(lines + [",".join(map(str, row)) for row in ROWS.tolist()]))
    arguments = ["learn", str(table), "-o", str(model), "--rule", "forbid x1 -- x2"]
    done = CliRunner().invoke(app, [*arguments, "--rule", "require x0 -- x5"])
    assert done.exit_code == 0, done.output
    stored = read_details(model)
    assert [0, 5] in stored.edges.tolist()
    assert [1, 2] not in stored.edges.tolist()
    assert stored.details["settings"]["rules"] == ["forbid x1 -- x2", "require x0 -- x5"]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [("forbid x1", "must name a pair"), ("forbid x1 -- y", "no column is called 'y'")],
)
def test_a_wrong_rule_is_reported_before_the_rows_are_read(tmp_path, rule, problem):
    table = tmp_path / "t.csv"
    table.write_text("x0,x1\n1,2\n1,2,3\n")  # its third line cannot be read
    arguments = ["learn", str(table), "-o", str(tmp_path / "m.edgegraft"), "--rule", rule]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code
    assert problem in " ".join(done.stderr.split())
