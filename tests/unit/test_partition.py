"""Tables in parts: however they are cut, they have the schema and the codes of the whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegraft.errors import DataError
from edgegraft.ingest import pack
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.options import ReadOptions
from edgegraft.scale.partitions import merge, open_part, pack_part, settle

OPTIONS = ReadOptions()


def put_together(parts, options=OPTIONS):
    """The schema of parts, and their codes one below the other."""
    opened = [open_part(part, options) for part in parts]
    findings = Findings()
    schema = settle(merge([part.survey() for part in opened]), options, findings)
    tables = [part.close(schema.to_json(), options) for part in opened]
    return schema, np.concatenate([rows.table.codes() for rows in tables if rows]), findings


def whole_and_parts(frame, cuts):
    bounds = [0, *sorted(cuts), len(frame)]
    return pack(frame), [frame.iloc[a:b] for a, b in pairwise(bounds)]


@st.composite
def frames(draw):
    n = draw(st.integers(1, 18))
    cell = {
        "text": st.sampled_from(["a", "b", "c", None]),
        "whole": st.integers(-3, 3),
        "real": st.sampled_from([0.5, -1.25, 3.0, float("nan")]),
        "flag": st.booleans(),
        "code": st.sampled_from(["01", "1", "x", ""]),
    }
    columns = {name: draw(st.lists(of, min_size=n, max_size=n)) for name, of in cell.items()}
    frame = pd.DataFrame(columns)
    frame["kind"] = pd.Categorical(
        draw(st.lists(st.sampled_from("pqr"), min_size=n, max_size=n)),
        list("srqp"),
        ordered=draw(st.booleans()),
    )
    return frame.loc[:, frame.notna().any()]


@settings(deadline=None)
@given(frames(), st.lists(st.integers(0, 18), max_size=4))
@pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")
def test_parts_have_the_schema_and_codes_of_the_whole(frame, cuts):
    table, parts = whole_and_parts(frame, [min(cut, len(frame)) for cut in cuts])
    schema, codes, _ = put_together(parts)
    assert schema == table.schema
    np.testing.assert_array_equal(codes, table.codes())
    packed = [pack_part(part, table.schema.to_json(), OPTIONS) for part in parts]
    np.testing.assert_array_equal(
        np.concatenate([rows.table.codes() for rows in packed if rows]), table.codes()
    )


@settings(deadline=None)
@given(frames(), st.integers(0, 17), st.integers(0, 17))
@pytest.mark.filterwarnings("ignore::edgegraft.errors.EncodingWarning")
def test_merging_is_associative(frame, first, second):
    _, parts = whole_and_parts(frame, [min(cut, len(frame)) for cut in (first, second)])
    a, b, c = (open_part(part, OPTIONS).survey() for part in parts)
    left, right = merge([merge([a, b]), c]), merge([a, merge([b, c])])
    for one, other in zip(left, right, strict=True):
        assert (one.labels, one.dtype) == (other.labels, other.dtype)
        np.testing.assert_array_equal(one.counts, other.counts)


def test_columns_of_many_numbers_get_the_bins_of_the_whole():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=900).round(2), "y": rng.integers(0, 3, 900)})
    table, parts = whole_and_parts(frame, [100, 400])
    schema, codes, _ = put_together(parts)
    assert schema == table.schema
    np.testing.assert_array_equal(codes, table.codes())
    assert (schema["x"].kind, schema["x"].n_states) == ("numeric", 16)


def test_text_files_find_their_types_together(tmp_path):
    """Whole numbers in one file and halves in the other are numbers in both."""
    (tmp_path / "a.csv").write_text("n,t\n1,x\n2,y\n,x\n")
    (tmp_path / "b.csv").write_text("n,t\n2.5,x\n1.0,7\n")
    schema, codes, _ = put_together([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert schema["n"].categories == (1.0, 2.0, 2.5)
    assert codes[:, 0].tolist() == [0, 1, -1, 2, 0]
    assert schema["t"].categories == ("7", "x", "y")


def test_a_part_can_be_closed_again():
    part = open_part(pd.DataFrame({"a": [0, 1, 2] * 50}), OPTIONS)
    schema = settle(part.survey(), OPTIONS, Findings())
    first, second = part.close(schema.to_json(), OPTIONS), part.close(schema.to_json(), OPTIONS)
    np.testing.assert_array_equal(first.table.codes(), second.table.codes())


def test_whole_numbers_with_holes_go_with_those_without():
    parts = [pd.DataFrame({"a": [1, 2, 1]}), pd.DataFrame({"a": [2, None, 3]})]
    schema, codes, _ = put_together(parts)
    assert schema == pack(pd.concat(parts)).schema
    assert codes[:, 0].tolist() == [0, 1, 0, 1, -1, 2]


def test_categories_that_differ_are_joined_and_ordered_ones_refused():
    def part(labels, ordered):
        return pd.DataFrame({"a": pd.Categorical(labels[:2], labels, ordered=ordered)})

    schema, codes, _ = put_together([part(["x", "y"], False), part(["z", "x"], False)])
    assert schema["a"].categories == ("x", "y", "z")
    assert codes[:, 0].tolist() == [0, 1, 2, 0]
    with pytest.raises(DataError, match="'a' has ordered categories that differ"):
        put_together([part(["x", "y"], True), part(["y", "x"], True)])


def test_what_does_not_go_together_is_named():
    with pytest.raises(DataError, match=r"'a' has different types.*'bool', 'int64'"):
        put_together([pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [True, False]})])
    with pytest.raises(DataError, match="only some have 'b'"):
        put_together([pd.DataFrame({"a": [1, 2], "b": [1, 2]}), pd.DataFrame({"a": [1, 2]})])
    with pytest.raises(DataError, match="no rows"):
        settle(merge([()]), OPTIONS, Findings())
    with pytest.raises(DataError, match="'a' has no observed value"):
        put_together([pd.DataFrame({"a": [None, None], "b": [1, 2]})])


def test_categories_of_all_parts_together_must_not_be_too_many():
    options = ReadOptions(max_states=3)
    parts = [pd.DataFrame({"a": list(labels) * 2}) for labels in ("abc", "bcd")]
    with pytest.raises(DataError, match="'a' has 4 categories in all partitions together"):
        put_together(parts, options)


def test_more_numbers_than_can_be_gathered_need_a_schema():
    frame = pd.DataFrame({"a": np.arange(140_000) / 7})
    with pytest.raises(DataError, match=r"'a' have more distinct numbers.*schema="):
        open_part(frame, OPTIONS)
