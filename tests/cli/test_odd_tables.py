"""`learn` over tables as people have them: what is odd is said in the words of the command."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import edgegraft as eg
from tests.cli.running import edgegraft, refused

N_ROWS = 300


def table(**more):
    """Return the text of a table of two columns that go together, and of some others."""
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y"], N_ROWS)
    b = np.where(rng.random(N_ROWS) < 0.8, a, "x")
    columns = {"a": a, "b": b, **more}
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *rows, ""])


@pytest.fixture
def learn(inside, tmp_path):
    """Learn from a file of some content; what is refused writes nothing."""

    def run(content, *options, name="t.csv"):
        path, model = tmp_path / name, tmp_path / "m.edgegraft"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        done = inside("learn", path, "-o", model, *options)
        assert model.exists() == (done.returncode == 0)
        return done

    return run


LETTERS = np.array(["e", "f", "g"])[np.arange(N_ROWS) % 3]
REFUSED = {
    "identifier": (table(id=[f"u{k}" for k in range(N_ROWS)]), "'id'", "--drop id"),
    "numbers of rows": (table(row=range(N_ROWS)), "'row'", "--drop row", "--bins row=5"),
    "index without name": (table(**{"": range(N_ROWS)}), "'column_3'", "--drop column_3"),
    "name with a comma": (table(**{'"n, m"': range(N_ROWS)}), "--drop '\"n, m\"'"),
    "times": (table(at=[f"2024-01-01 {k // 60:02}:{k % 60:02}" for k in range(N_ROWS)]), "--drop"),
    "prices": (table(p=[f"${k}.50" for k in range(N_ROWS)]), "'p'", "plainly (1234.5)"),
    "nothing known": (table(c=[""] * N_ROWS, d=["NA"] * N_ROWS), "'c', 'd'", "--drop c,d"),
    "half a delimiter": (
        table().split("\n", 1)[0].replace(",", ";") + "\nx\ny\n",
        "--delimiter ';'",
    ),
    "same names": (table().replace("a,b", "a,a", 1), "'a'", "rename"),
    "a long row": (table() + "x,y,z\n", "row 302", "3 cells"),
    "a short row": (table() + "x\n", "row 302", "1 cells"),
    "latin-1": (table(c=LETTERS).replace("e", "é").encode("latin-1"), "--encoding latin-1"),
    "utf-16": (table().encode("utf-16"), "--encoding utf-16"),
    "gzip": (gzip.compress(table().encode()), ".gz"),
    "spreadsheet": (b"PK\x03\x04" + bytes(100), "let its name end in .xlsx"),
    "no rows": ("a,b\n", "no rows"),
    "nothing": ("", "is empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tables_are_refused_with_the_remedy(learn, case):
    content, *words = REFUSED[case]
    refused(learn(content), *words)


def test_refusals_name_files_of_no_table(learn, inside, tmp_path):
    refused(learn(b"PK\x03\x04", name="t.docx"), "t.docx", "a spreadsheet")
    refused(learn("a b\n", name="t.dat"), "t.dat", "with --delimiter")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    refused(inside("learn", folder, "-o", tmp_path / "m"), "the folder", "folder.csv'")
    pq.write_table(pa.table({"a": [[1], [2]], "b": ["x", "y"]}), tmp_path / "t.parquet")
    refused(inside("learn", tmp_path / "t.parquet", "-o", tmp_path / "m"), "column 'a'", "list<")
    many = "\n".join(["c,d", *(f"c{k % 13_000},{k % 2}" for k in range(26_000))])
    done = learn(many)
    assert "warning: columns with many categories of few rows each: 'c' (13,000" in done.stderr
    assert "--drop c" in done.stderr
    assert done.returncode == 0
    assert "pooled as '(other)': 'c' (12,873 categories pooled)" in done.stderr


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(N_ROWS)], "'c' (84 categories)"),
        ([f"{k % 40}%" for k in range(N_ROWS)], "'c' (such as '0%')"),
        (["yes", "Yes", "no"] * 100, "'c' ('yes' and 'Yes')"),
        ([" ", "x", "y"] * 100, "add --missing ' '"),
        (["k"] * N_ROWS, "constant columns: 'c'"),
        ([*map(str, range(30)), "n.d."] * 9 + ["1"] * 21, "use --missing n.d."),
    ],
)
def test_doubts_are_said_and_the_rest_is_learned(learn, column, words):
    done = learn(table(c=column), "--top", 0)
    assert done.returncode == 0, done.stderr
    assert words in done.stderr


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (table().replace(",", "\t"), ("--delimiter", r"\t")),
        (table().replace(",", "\t"), ("--delimiter", "tab")),
        (table().replace(",", "\t"), ()),
        (table().replace(",", ";"), ()),
        (table().encode("utf-16"), ("--encoding", "utf-16")),
        (table().encode("utf-8-sig"), ()),
        ("\n\n" + table().replace("\n", "\n\n"), ()),
        (table().replace("x", '"x"'), ()),
        (table(**{"": LETTERS}), ("--drop", "column_3")),
    ],
)
def test_what_was_refused_or_odd_is_read_when_told_how(learn, tmp_path, content, options):
    done = learn(content, *options)
    assert done.returncode == 0, done.stderr
    stored = eg.read_details(tmp_path / "m.edgegraft")
    assert stored.names == ("a", "b")
    assert stored.details["source"]["rows"] == N_ROWS
    assert len(stored.edges) == 1
    assert "2 variables, 1 edge, " in done.stdout


@pytest.mark.parametrize("content", ["a,b\nx,y\n", table().split("\n", 1)[0] + "\nx,y\ny,x\n"])
def test_hardly_any_rows_give_a_model_without_edges(learn, content):
    done = learn(content)
    assert done.returncode == 0, done.stderr
    assert "2 variables, 0 edges" in done.stdout


def test_names_of_any_kind_come_back(learn, inside, tmp_path):
    names = {"a": "<script>alert(1)</script>", "b": "[red]naïve=😀[/], " + 200 * "x"}
    content = table().replace("a,b", f'{names["a"]},"{names["b"]}"', 1)
    pytest.importorskip("jinja2")
    done = learn(content, "--report", tmp_path / "r.html")
    assert done.returncode == 0, done.stderr
    assert names["a"] in done.stderr
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert names["a"] not in page
    model = tmp_path / "m.edgegraft"
    for of, given in ((names["a"], names["b"]), (names["b"], names["a"])):
        answer = inside("query", model, "--given", f"{given}=x", "--of", of)
        assert answer.returncode == 0, answer.stderr


def test_names_give_no_orders_to_the_terminal_and_do_not_flood_it(learn, inside, tmp_path):
    content = table().replace("a,b", '"\x1b[31ma\x07\nb",' + 3000 * "b", 1).replace("x", "\x1b[2J")
    done = learn(content)
    assert done.returncode == 0, done.stderr
    answer = inside("query", tmp_path / "m.edgegraft")
    shown = done.stderr + done.stdout + answer.stdout
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert r"\x1b[31ma\x07\nb" in shown
    assert "b" * 100 not in shown
    (tmp_path / "m.edgegraft").unlink()
    refused(learn(content, "--drop", "\x1b[0m"), r"\x1b[0m")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--jobs", 0), "--jobs must be a positive or negative integer"),
        (("--max-edges", -1), "--max-edges must be an integer of at least 0 or None, found '-1'"),
        (("--seed", -1), "--seed"),
        (("--strategy", "best"), "'best-choice'"),
        (("--penalty", -1), "--penalty must be a number of at least 0 or 'auto'"),
        (("--fdr", 0), "--fdr must be a number above 0 and at most 1 or None"),
        (("--delimiter", "ab"), "--delimiter ab must be one character"),
        (("--columns", "A"), "--columns names column 'A'"),
    ],
)
def test_options_without_sense_are_bad_usage(learn, options, word):
    done = learn(table(), *options)
    assert done.returncode == 2
    assert word in " ".join(done.stderr.replace("│", "").split())


def test_a_folder_that_cannot_be_written_to_is_refused_before_any_work(survey):
    done = edgegraft("learn", survey, "-o", "/proc/m.edgegraft", "--drop", "id")
    refused(done, "'m.edgegraft' cannot be written to the folder '/proc'")
    assert "columns of" not in done.stderr
