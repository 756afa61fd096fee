"""Files that cannot be read, or hold something else than their name says, are refused by name."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from edgegraft.errors import DataError, DataTypeError, FileFormatError, MissingExtraError
from edgegraft.ingest import pack
from tests.table_kinds import TEXT, TYPED


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file '.*absent\.csv'"):
        pack(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="has no file with a known extension"):
        pack(str(tmp_path))
    with pytest.raises(DataError, match=r"'\.docx'; known are \.csv"):
        pack(write(tmp_path, "", "table.docx"))
    with pytest.raises(DataError, match="delimiter="):
        pack(write(tmp_path, "a b\n1 2", "table.txt"))
    for library, name in (("openpyxl", "table.xlsx"), ("pyreadstat", "table.sav")):
        if find_spec(library) is None:
            with pytest.raises(MissingExtraError, match=rf"'{library}'.*edgegraft\[files\]"):
                pack(write(tmp_path, "a", name))
        else:
            with pytest.raises(FileFormatError, match=f"{name}' cannot be read as"):
                pack(write(tmp_path, "a", name))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ragged(tmp_path, n_jobs):
    path = write(tmp_path, "a,b\n1,2\n3,4\n5,6,7\n")
    with pytest.raises(FileFormatError, match=r"row 4 of the file.* has 3 cells .* has 2"):
        pack(path, n_jobs=n_jobs)
    rows = ["1,2"] * 60_000
    rows[50_000] = "1"
    path = write(tmp_path, "\n".join(["a,b", *rows]))
    with pytest.raises(FileFormatError, match=r"row 50002 of the file.* has 1 cells"):
        pack(path, n_jobs=n_jobs)


def test_empty_files(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        pack(write(tmp_path, ""))
    with pytest.raises(DataError, match=r"table\.csv' has no rows"):
        pack(write(tmp_path, "a,b\n"))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        pack(write(tmp_path, "", "table.parquet"))
    with pytest.raises(DataError, match="cannot be read as Arrow IPC"):
        pack(write(tmp_path, "", "table.feather"))


def test_duplicate_header(tmp_path):
    with pytest.raises(DataError, match=r"header of '.*table.csv' .* named 'a'"):
        pack(write(tmp_path, "a,b,a\n1,2,3\n"))


def test_truncated_gzip(tmp_path):
    rng = np.random.default_rng(0)
    text = "a,b\n" + "\n".join(f"{i},{j}" for i, j in rng.integers(0, 5, (50_000, 2)))
    whole = gzip.compress(text.encode())
    for size in (8, 15, len(whole) // 2, len(whole) - 4):
        with pytest.raises(FileFormatError, match=r"'.*table\.csv\.gz'"):
            pack(write(tmp_path, whole[:size], "table.csv.gz"))
    with pytest.raises(FileFormatError, match=r"'.*table\.csv\.gz'"):
        pack(write(tmp_path, text, "table.csv.gz"))


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_truncated_binary_files(tmp_path, kind):
    table = pa.table({"a": np.arange(10_000) % 7})
    path = tmp_path / f"table.{kind}"
    (pq.write_table if kind == "parquet" else feather.write_feather)(table, path)
    whole = path.read_bytes()
    for size in (0, 3, 20, len(whole) // 2, len(whole) - 5):
        with pytest.raises(FileFormatError, match="truncated, damaged or of another format"):
            pack(write(tmp_path, whole[:size], path.name))


def test_damaged_parquet_pages(tmp_path):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": np.arange(10_000) % 7}), path)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    with pytest.raises(FileFormatError, match="cannot be read as Parquet"):
        pack(write(tmp_path, bytes(content), path.name))


@pytest.mark.parametrize("kind", ["parquet", "feather", "csv", "csv.gz"])
@pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")
def test_flipped_bytes_never_do_worse_than_a_data_error(tmp_path, kind):
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "a": np.array(["x", "y", "zz"])[rng.integers(0, 3, 300)],
            "b": rng.integers(0, 9, 300),
            "c": rng.normal(size=300),
            "d": pa.array(["u", "v"] * 150).dictionary_encode(),
        }
    )
    whole = {**TYPED, **TEXT}[kind](table, tmp_path).read_bytes()
    refused = 0
    for _ in range(80):
        content = bytearray(whole)
        for place in rng.integers(0, len(whole), 4):
            content[place] = rng.integers(256)
        try:
            pack(write(tmp_path, bytes(content), f"damaged.{kind}"))
        except (DataError, DataTypeError):
            refused += 1
    assert refused


def test_other_encodings(tmp_path):
    path = write(tmp_path, "name,b\nx,1\ny,2\nMünchen,1\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"encoding='latin-1'"):
        pack(path)
    packed = pack(path, encoding="latin-1")
    assert packed.schema["name"].categories == ("München", "x", "y")


def test_other_encodings_far_down(tmp_path):
    rows = "\n".join(["x,1", "y,2"] * 50_000)
    path = write(tmp_path, f"a,name\n{rows}\nz,".encode() + b"\xfc\n")
    with pytest.raises(FileFormatError, match=r"column 'name' cannot be decoded as utf8"):
        pack(path)


def test_a_file_with_another_delimiter_is_not_taken_for_one_column(tmp_path):
    path = tmp_path / "spreadsheet.csv"
    path.write_text("name;b\nx;1,5\ny;2\nx;1,5\n", encoding="utf-8-sig")
    assert pack(path).schema.names == ("name", "b")
    path.write_text("name;b\nx\ny\n", encoding="utf-8-sig")
    with pytest.raises(FileFormatError, match=r"one column, called 'name;b'.*delimiter=';'"):
        pack(path)
    assert pack(path, delimiter=",").schema.names == ("name;b",)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (gzip.compress(b"a,b\n"), r"gzipped: let its name end in \.gz"),
        (b"PK\x03\x04rest", r"a spreadsheet: .* end in \.xlsx"),
        (b"PAR1rest", r"a Parquet file: let its name end in \.parquet"),
        ("a,b\n1,2\n".encode("utf-16"), r"UTF-16: say encoding='utf-16'"),
    ],
    ids=["gzip", "spreadsheet", "parquet", "utf-16"],
)
def test_what_a_file_is_by_its_content(tmp_path, start, message):
    with pytest.raises(FileFormatError, match=rf"table\.csv' is not text but .*{message}"):
        pack(write(tmp_path, start))
    with pytest.raises(DataError, match=f"unknown extension '.data' and is .*{message}"):
        pack(write(tmp_path, start, "table.data"))


def test_text_of_any_extension_is_read_where_the_delimiter_is_given(tmp_path):
    path = write(tmp_path, "a|b\nx|1\ny|2\n", "table.data")
    with pytest.raises(DataError, match=r"unknown extension '\.data'; .*delimiter="):
        pack(path)
    assert pack(path, delimiter="|").schema.names == ("a", "b")
    assert pack(path, delimiter=",").schema.names == ("a|b",)


@pytest.mark.parametrize("before", ["", "\n\n"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_columns_without_a_name_are_called_by_their_place(tmp_path, before, n_jobs):
    header = '"",a, ,"b\nb"'
    path = write(tmp_path, f"{before}{header}\n0,x,,1\n1,y,,2\n\n1,y,,2\n")
    with pytest.raises(DataError, match=r"'column_3' has no observed.*drop=\['column_3'\]"):
        pack(path, n_jobs=n_jobs)
    table = pack(path, drop=["column_3"], n_jobs=n_jobs)
    assert table.schema.names == ("column_1", "a", "b\nb")
    assert table.codes().tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 1]]


def test_all_columns_without_a_cell_are_named_at_once(tmp_path):
    path = write(tmp_path, "a,b,c\n,1,NA\n,2,\n")
    with pytest.raises(DataError, match=r"columns 'a', 'c' have no .*drop=\['a', 'c'\]"):
        pack(path)
