"""Files that other libraries read, and compressed text: the same table whatever it is kept in."""

from __future__ import annotations

import bz2

import pyarrow as pa
import pytest

from edgegraft import pack
from tests.cli.running import edgegraft

ROWS = [
    ["a", "b", "c"],
    *([["x", "y"][k % 2], k % 3, None if k % 5 == 0 else k % 4] for k in range(40)),
]


def text(delimiter=","):
    lines = [delimiter.join("" if cell is None else str(cell) for cell in row) for row in ROWS]
    return "\n".join(lines) + "\n"


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "rows.csv").write_text(text())
    return pack(tmp_path / "rows.csv")


def write_xlsx(path):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in [[], *ROWS]:  # blank rows and columns around the table are passed over
        book.active.append([None, *row])
    book.save(path)


def write_zstd(path):
    with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as file:
        file.write(text().encode())


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.csv.bz2", lambda path: path.write_bytes(bz2.compress(text().encode()))),
        ("rows.tsv.zst", write_zstd),  # commas all the same: the delimiter is found
        ("rows.txt", lambda path: path.write_text(text("|"))),
        ("rows.CSV", lambda path: path.write_text(text(";"))),
        ("rows.xlsx", write_xlsx),
    ],
)
def test_a_table_is_the_same_in_every_file(tmp_path, plain, name, write):
    write(tmp_path / name)
    found = pack(tmp_path / name)
    assert found.schema == plain.schema
    assert (found.codes() == plain.codes()).all()


def test_commands_read_other_columns_of_a_spreadsheet_than_the_model(tmp_path):
    write_xlsx(tmp_path / "rows.xlsx")
    model, filled = tmp_path / "rows.edgegraft", tmp_path / "filled.csv"
    done = edgegraft("learn", tmp_path / "rows.xlsx", "-o", model, "--weights", "b", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    done = edgegraft("impute", model, tmp_path / "rows.xlsx", "-o", filled)
    assert done.returncode == 0, done.stderr
    written = filled.read_text().splitlines()
    assert written[0] == "a,b,c"
    assert len(written) == len(ROWS)
    assert not any(line.endswith(",") for line in written)


def test_spss_labels_are_ordered_categories(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"mood": [3.0, 1, 2, 2, None, 9], "n": [1.0, 2, 3, 3, 1, 1], "s": [*"uvuvu", ""]}
    )
    labels = {"mood": {1: "low", 2: "middle", 3: "high", 9: "no answer"}, "n": {1: "one"}}
    pyreadstat.write_sav(
        frame,
        str(tmp_path / "rows.sav"),
        variable_value_labels=labels,
        variable_measure={"mood": "ordinal"},
        missing_ranges={"mood": [9]},
    )
    table = pack(tmp_path / "rows.sav")
    assert table.schema["mood"].categories == ("low", "middle", "high")
    assert table.schema["mood"].ordered
    assert table.schema["n"].categories == (1, 2, 3)  # not all have a label
    assert table.codes().tolist() == [
        [2, 0, 0], [0, 1, 1], [1, 2, 0], [1, 2, 1], [-1, 0, 0], [-1, 0, -1],
    ]  # fmt: skip
