"""UAI models, evidence and answers: what is read, and what is written."""

import gzip
import itertools
import math
import stat

import numpy as np
import pytest

from edgegraft.core import Layout
from edgegraft.errors import ModelError
from edgegraft.io import (
    format_map,
    format_pr,
    read_evidence,
    read_uai,
    write_evidence,
    write_uai,
)
from tests import uai_results

SIMPLE = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 2 1

2
 0.4 0.6

4
 1 2
 3 4

6
 1 2
 3 4
 5 6
"""


@pytest.fixture
def read(tmp_path):
    def read_text(content, reader=read_uai):
        path = tmp_path / "file"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return reader(path)

    return read_text


def same(a, b):
    assert np.array_equal(a.layout.states, b.layout.states)
    assert np.array_equal(a.layout.edges, b.layout.edges)
    assert np.array_equal(a.theta, b.theta)
    assert a.log_constant == b.log_constant


def test_a_model_is_read_into_its_layout(read):
    model = read(SIMPLE)
    layout, theta = model.layout, np.exp(model.theta)
    assert layout.states.tolist() == [2, 2, 3]
    assert layout.edges.tolist() == [[0, 1], [1, 2]]
    assert model.log_constant == 0.0
    np.testing.assert_allclose(layout.node(theta, 0), [0.4, 0.6])
    np.testing.assert_array_equal(layout.node(theta, 1), [1, 1])
    np.testing.assert_allclose(layout.edge(theta, 0), [[1, 2], [3, 4]])
    np.testing.assert_allclose(layout.edge(theta, 1), [[1, 3, 5], [2, 4, 6]])  # was (2, 1)


def test_what_is_read_cannot_be_changed(read):
    model = read(SIMPLE)
    with pytest.raises(ValueError, match="read-only"):
        model.theta[0] = 1


def test_factors_over_the_same_variables_are_multiplied(read):
    model = read(
        "MARKOV 2 2 3  4  1 1  2 0 1  1 1  2 1 0  3 1 2 3  6 1 2 3 4 5 6 3 2 2 0 6 1 2 3 4 5 6"
    )
    table = np.array([[1, 2, 3], [4, 5, 6]]) * np.array([[1, 2], [3, 4], [5, 6]]).T
    np.testing.assert_allclose(np.exp(model.layout.edge(model.theta, 0)), table)
    np.testing.assert_allclose(np.exp(model.layout.node(model.theta, 1)), [2, 4, 0])


def test_factors_over_no_variable_are_the_constant(read):
    model = read("MARKOV 1 2 3  0  1 0  0  1 3.5  2 1 1  1 2")
    assert model.log_constant == pytest.approx(math.log(7))
    assert model.theta.tolist() == [0, 0]
    assert read("MARKOV 1 2 1 0 1 0").log_constant == -math.inf


def test_zero_becomes_minus_infinity(read):
    model = read("MARKOV 1 4 1 1 0 4 0 -0.0 0e5 1")
    assert model.theta.tolist() == [-math.inf, -math.inf, -math.inf, 0]


def test_edges_keep_the_order_of_the_file(read):
    model = read("MARKOV 4 1 1 1 1 4  2 3 2  2 0 1  2 2 3  2 0 3   1 2 1 3 1 5 1 7")
    assert model.layout.edges.tolist() == [[2, 3], [0, 1], [0, 3]]
    np.testing.assert_allclose(np.exp(model.theta[4:]), [10, 3, 7])


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e-5", 1e-5), ("1E+5", 1e5), (".5", 0.5), ("5.", 5.0), ("+3", 3.0), ("0.1", 0.1)],
)
def test_every_way_to_write_a_number(read, written, value):
    assert read(f"MARKOV 1 1 1 1 0 1 {written}").theta[0] == np.log(value)


@pytest.mark.parametrize(
    ("written", "log"),
    [
        ("1e-400", -400 * math.log(10)),
        ("2.5E+400", math.log(2.5) + 400 * math.log(10)),
        ("0e-999", -math.inf),
        ("1e-99999999999999999999", -math.inf),
    ],
)
def test_entries_beyond_a_double_keep_their_logs(read, written, log):
    model = read(f"MARKOV 1 2 1 1 0 2 {written} 0")
    assert model.theta[0] == pytest.approx(log, rel=1e-15)
    assert model.theta[1] == -math.inf


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace(" ", "\t\v\f "),
        lambda text: " ".join(text.split()),
        lambda text: "\n".join(text.split()),
        lambda text: "\n\n" + text + "\n \n",
        lambda text: "\ufeff" + text,
        lambda text: "c a comment\nc\n# another: é\n" + text,
        lambda text: text.replace("\n\n", "  # the next table\nc 1 2 3\n"),
        lambda text: text.replace("MARKOV", "markov"),
        lambda text: text.replace("MARKOV", "BAYES"),
        lambda text: text.replace("2 0 1", "2.0 0 1e0"),
    ],
)
def test_dress_does_not_matter(read, change):
    same(read(change(SIMPLE)), read(SIMPLE))


def test_gzip_is_told_by_content_not_by_name(read):
    same(read(gzip.compress(SIMPLE.encode())), read(SIMPLE))


def test_a_file_longer_than_one_block(read):
    size = 200_000
    entries = np.random.default_rng(0).random(size)
    text = "MARKOV 4 50000 50000 50000 50000 4 1 0 1 1 1 2 1 3"
    for part in entries.reshape(4, -1):
        text += " 50000\n" + " ".join(map(repr, part.tolist()))
    np.testing.assert_array_equal(read(text).theta, np.log(entries))


def test_models_without_variables_or_factors(read):
    assert read("MARKOV 0 0").layout.n_variables == 0
    assert read("MARKOV\n2\n2 3\n0\n").theta.tolist() == [0] * 5


def energies(layout, theta, constant):
    rows = itertools.product(*(range(s) for s in layout.states))
    return np.array(
        [
            constant
            + sum(layout.node(theta, i)[x] for i, x in enumerate(row))
            + sum(layout.edge(theta, k)[row[i], row[j]] for k, (i, j) in enumerate(layout.edges))
            for row in rows
        ]
    )


@pytest.mark.parametrize("scale", [1e9, 1e14])
def test_huge_potentials_give_the_same_energies(tmp_path, scale):
    layout = Layout([2, 3], [(0, 1)])
    theta = np.random.default_rng(2).normal(size=layout.n_parameters) * scale
    theta[-1] = -np.inf
    write_uai(tmp_path / "model.uai", layout, theta, log_constant=3.0)
    model = read_uai(tmp_path / "model.uai")
    np.testing.assert_allclose(
        energies(model.layout, model.theta, model.log_constant),
        energies(layout, theta, 3.0),
        rtol=1e-13,
        atol=scale * 1e-14,
    )


def test_writing_compresses_by_name_and_is_reproducible(tmp_path):
    layout = Layout([2, 2], [(0, 1)])
    for name in ("a.uai", "a.uai.gz", "b.uai.gz"):
        write_uai(tmp_path / name, layout, np.zeros(8))
    packed = (tmp_path / "a.uai.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.uai").read_bytes()
    assert packed == (tmp_path / "b.uai.gz").read_bytes()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model.uai"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_uai(path, Layout([2]), [0, 0])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_is_readable_by_others_as_the_umask_says(tmp_path):
    write_uai(tmp_path / "model.uai", Layout([2]), [0, 0])
    (tmp_path / "plain").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("model.uai", "plain")]
    assert modes[0] == modes[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e16, -1e16])
def test_what_is_no_log_potential_is_not_written(tmp_path, bad):
    with pytest.raises(ModelError, match=r"(theta\[1\]|variable 0) is"):
        write_uai(tmp_path / "model.uai", Layout([2]), [0, bad])
    with pytest.raises(ModelError, match="log_constant"):
        write_uai(tmp_path / "model.uai", Layout([2]), [0, 0], log_constant=bad)
    with pytest.raises(ModelError, match=r"shape \(3,\): .* 2 parameters"):
        write_uai(tmp_path / "model.uai", Layout([2]), [0, 0, bad])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("2 1 0 2 1", {1: 0, 2: 1}),
        ("1\n2 1 0 2 1\n", {1: 0, 2: 1}),
        ("1 7 1", {7: 1}),
        ("1\n1 7 1", {7: 1}),
        ("0", {}),
        ("1\n0", {}),
        ("2 # two\n0 1\n 5 0", {0: 1, 5: 0}),
    ],
)
def test_both_forms_of_evidence(read, text, evidence):
    assert read(text, read_evidence) == evidence


def test_evidence_comes_back(tmp_path):
    for name in ("a.evid", "a.evid.gz"):
        write_evidence(tmp_path / name, {9: 3, 2: 0})
        assert read_evidence(tmp_path / name) == {2: 0, 9: 3}
    with pytest.raises(ValueError, match="-1"):
        write_evidence(tmp_path / "a.evid", {-1: 0})


@pytest.mark.parametrize("log_z", [0.0, 390.07716647377504, -1e-7, -math.inf])
def test_pr_has_all_digits(log_z):
    assert uai_results.pr(format_pr(log_z)) == pytest.approx(log_z, rel=1e-15)


def test_pr_is_the_decimal_log():
    word, value = format_pr(math.log(10) * 169.408).split()
    assert word == "PR"
    assert float(value) == pytest.approx(169.408, rel=1e-15)
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="log_z"):
            format_pr(bad)


def test_map_lists_the_states():
    assert format_map(np.array([0, 1, 0])) == "MAP\n3 0 1 0\n"
    assert format_map([2], word="MPE") == "MPE\n1 2\n"
