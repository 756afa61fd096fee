"""Sources: the same batches twice, any batch size, nothing left behind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edgegraft.ingest.csv_source import CsvSource
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from tests.table_kinds import TEXT, TYPED

N_ROWS = 50
TABLE = pa.table(
    {
        "number": np.arange(N_ROWS, dtype=float) / 8,
        "text": [f"t{i % 3}" for i in range(N_ROWS)],
        "count": np.arange(N_ROWS) % 4,
    }
)


def cells(source, columns):
    batches = list(source.batches(columns))
    assert all(batch.schema.names == list(columns) for batch in batches)
    table = pa.Table.from_batches(batches)
    return [[str(cell) for cell in column.to_pylist()] for column in table.columns]


@pytest.mark.parametrize("kind", [*TYPED, *TEXT])
def test_columns_can_be_read_again(tmp_path, kind):
    table = TABLE.select(["number", "text", "count"])
    if kind in TEXT:  # 1.0 is written as 1
        table = table.set_column(0, "number", pa.array(np.arange(N_ROWS)))
    data = {**TYPED, **TEXT}[kind](table, tmp_path)
    with open_source(data, ReadOptions(batch_rows=7)) as source:
        assert source.names == ["number", "text", "count"]
        source.select(["text", "number"])
        want = [[str(c) for c in table.column(n).to_pylist()] for n in ("text", "number")]
        assert cells(source, ["text", "number"]) == want
        assert cells(source, ["number"]) == [want[1]]


@pytest.mark.parametrize("kind", [k for k in TYPED if k not in ("ipc",)])
def test_batches_are_small(tmp_path, kind):
    with open_source(TYPED[kind](TABLE, tmp_path), ReadOptions(batch_rows=8)) as source:
        source.select(["text"])
        assert max(batch.num_rows for batch in source.batches(["text"])) <= 8


def test_a_stream_keeps_its_numbers_in_a_file_that_goes_away(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_source(TABLE.to_reader(), ReadOptions()) as source:
        list(source.batches(["text", "count"]))
        (folder,) = tmp_path.iterdir()
        assert [file.name for file in folder.iterdir()] == ["numeric.arrow"]
    assert list(tmp_path.iterdir()) == []


def test_a_stream_of_text_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with open_source(TABLE.to_reader(), ReadOptions()) as source:
        list(source.batches(["text"]))
        assert list(tmp_path.iterdir()) == []


class TestCsv:
    def read(self, tmp_path, text, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with open_source(path, ReadOptions(**options)) as source:
            return source.names, cells(source, source.names)

    def test_quotes_newlines_and_blank_lines(self, tmp_path):
        names, columns = self.read(tmp_path, 'a,"b,c"\r\n"x\ny",1\r\n\r\n"say ""no""",2\r\n')
        assert names == ["a", "b,c"]
        assert columns == [["x\ny", 'say "no"'], ["1", "2"]]

    def test_rows_longer_than_a_block(self, tmp_path):
        long = "x" * 300_000
        text = "a,b\n" + "y,1\n" * 40_000 + f"{long},2\n" + "z,1\n" * 10
        _, columns = self.read(tmp_path, text, batch_rows=1)
        assert len(columns[0]) == 40_011
        assert columns[0][40_000] == long

    def test_quoted_newlines_at_block_borders(self, tmp_path):
        text = "a,b\n" + '"x\ny",1\n' * 50_000
        _, columns = self.read(tmp_path, text, batch_rows=1)
        assert columns == [["x\ny"] * 50_000, ["1"] * 50_000]

    def test_block_size_follows_the_batch_size(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("a,b\n" + "x,1\n" * 100_000)
        small = CsvSource(path, ReadOptions(batch_rows=1), ",")
        assert len(list(small.batches(["a"]))) > 4
        large = CsvSource(path, ReadOptions(), ",")
        assert len(list(large.batches(["a"]))) <= 2
