"""Variables and schemas: validation, exact text form, decoding."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from edgegraft.errors import DataError, FileFormatError
from edgegraft.table import Schema, Variable

SCHEMA = Schema(
    [
        Variable("text", ("a", "b"), "category[string]", ordered=True),
        Variable("whole", (1, 2, 3), "int8"),
        Variable("real", (0.1, 1.0), "double"),
        Variable("flag", (False, True), "bool"),
        Variable("day", ("2020-02-29", "2021-01-01"), "date32[day]"),
        Variable("bin", ("[0, 1)", "[1, 2]"), "double", True, (0.0, 1.0, 2.0)),
    ]
)


class TestVariable:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((1, ("a",)), "name must be a string"),
            (("v", ()), "'v' has 0 categories"),
            (("v", ("a", "a")), "same category twice"),
            (("v", (1, True)), "same category twice"),
            (("v", tuple(range(65536))), "has 65536 categories"),
            (("v", (None,)), "None is a NoneType"),
            (("v", (np.int64(1),)), "is a int64; use str, int, float or bool"),
            (("v", (float("inf"),)), "not finite"),
            (("v", ("a", "b"), "double", True, (0.0, 1.0)), "2 bins need 3 rising edges"),
            (("v", ("a", "b"), "double", True, (0.0, 0.0, 1.0)), "rising"),
            (("v", ("a", "b"), "double", True, (0.0, 2.0, 1.0)), "rising"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(DataError, match=message):
            Variable(*arguments)

    def test_properties(self):
        assert SCHEMA["text"].declared
        assert not SCHEMA["whole"].declared
        assert SCHEMA["bin"].binned
        assert SCHEMA["bin"].n_states == 2

    def test_a_last_bin_may_be_one_point(self):
        assert Variable("v", ("a", "b"), "double", True, (0.0, 1.0, 1.0)).binned


class TestSchema:
    def test_reading(self):
        assert len(SCHEMA) == 6
        assert SCHEMA.names == ("text", "whole", "real", "flag", "day", "bin")
        assert SCHEMA.n_states.tolist() == [2, 3, 2, 2, 2, 2]
        assert SCHEMA.n_states.dtype == np.int64
        assert SCHEMA[1] is SCHEMA["whole"] is list(SCHEMA)[1]
        assert SCHEMA.index("real") == 2
        assert SCHEMA[-1].name == "bin"
        assert "flag" in SCHEMA
        assert SCHEMA[1] in SCHEMA
        assert "other" not in SCHEMA

    def test_is_frozen(self):
        with pytest.raises(AttributeError):
            SCHEMA.variables = ()
        with pytest.raises(ValueError, match="read-only"):
            SCHEMA.n_states[0] = 1

    def test_unknown_names(self):
        with pytest.raises(DataError, match="no variable 'wholes'; did you mean 'whole'"):
            SCHEMA["wholes"]
        with pytest.raises(IndexError):
            SCHEMA[6]

    def test_same_name_twice(self):
        with pytest.raises(DataError, match="two variables have the name 'a'"):
            Schema([Variable("a", (0,)), Variable("a", (0,))])

    def test_select_and_slice(self):
        assert SCHEMA.select(["flag", 0]).names == ("flag", "text")
        assert SCHEMA[:2].names == ("text", "whole")

    def test_equality_and_hash(self):
        same = Schema(list(SCHEMA))
        assert same == SCHEMA
        assert hash(same) == hash(SCHEMA)
        assert SCHEMA[:2] != SCHEMA
        assert Schema([Variable("a", (0, 1), "int64")]) != Schema([Variable("a", (0, 1), "int8")])

    def test_from_states(self):
        schema = Schema.from_states(np.array([2, 3]))
        assert schema.names == ("x0", "x1")
        assert schema[1].categories == (0, 1, 2)
        assert Schema.from_states([2], ["a"]).names == ("a",)
        with pytest.raises(DataError, match="1 names were given for 2 variables"):
            Schema.from_states([2, 2], ["a"])

    def test_repr_is_short(self):
        assert repr(Schema.from_states([2] * 8)).endswith("x5: 2, ... 2 more)")


class TestText:
    def test_round_trip_keeps_types(self):
        again = Schema.from_json(SCHEMA.to_json())
        assert again == SCHEMA
        for before, after in zip(SCHEMA, again, strict=True):
            assert list(map(type, before.categories)) == list(map(type, after.categories))

    def test_awkward_labels(self):
        labels = ("", "ü", '"', "\n", "1", "True", "🦀", "\x00")
        schema = Schema([Variable("π", labels, "string"), Variable("r", (0.1 + 0.2, 5e-324))])
        assert Schema.from_json(schema.to_json()) == schema

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda d: d.update(format="x"), "not a schema"),
            (lambda d: d.update(version=2), "version 2; this release reads version 1"),
            (lambda d: d.pop("variables"), 'no list "variables"'),
            (lambda d: d["variables"].append(3), "variable 6 of the schema is int"),
            (lambda d: d["variables"][0].pop("name"), '"name" must be a str'),
            (lambda d: d["variables"][0].update(categories="ab"), "'text'.*\"categories\""),
            (lambda d: d["variables"][0].update(categories=["a", None]), "None cannot be"),
            (lambda d: d["variables"][0].update(categories=["a", ["b"]]), "cannot be a category"),
            (lambda d: d["variables"][0].update(categories=["a", "a"]), "same category twice"),
            (lambda d: d["variables"][1].update(dtype="quaternion"), 'unknown "dtype"'),
            (lambda d: d["variables"][1].update(ordered=1), '"ordered" must be a bool'),
            (lambda d: d["variables"][5].update(edges=[0, "1", 2]), '"edges" must be numbers'),
            (lambda d: d["variables"][5].update(edges=[0, 1]), "rising edges"),
            (lambda d: d["variables"].append(d["variables"][0]), "two variables"),
        ],
    )
    def test_malformed(self, change, message):
        document = json.loads(SCHEMA.to_json())
        change(document)
        with pytest.raises(FileFormatError, match=message):
            Schema.from_json(json.dumps(document))

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1}', "[" * 100_000])
    def test_not_a_schema(self, text):
        with pytest.raises(FileFormatError, match="not a schema"):
            Schema.from_json(text)


class TestDecode:
    def test_types_come_back(self):
        codes = [[0, 2, 0, 1, 0, 1], [-1] * 6, [1, 0, 1, 0, 1, 0]]
        table = SCHEMA.decode(codes)
        assert table.column("text").type == pa.dictionary(pa.int32(), pa.string(), ordered=True)
        assert table.column("text").to_pylist() == ["a", None, "b"]
        assert table.column("whole").type == pa.int8()
        assert table.column("whole").to_pylist() == [3, None, 1]
        assert table.column("flag").to_pylist() == [True, None, False]
        assert table.column("day").type == pa.date32()
        assert str(table.column("day").to_pylist()[0]) == "2020-02-29"
        assert table.column("bin").to_pylist() == ["[1, 2]", None, "[0, 1)"]

    def test_pandas_gets_its_categorical_back(self):
        frame = SCHEMA.decode([[1, 0, 0, 0, 0, 0]]).to_pandas()
        assert list(frame["text"].cat.categories) == ["a", "b"]
        assert frame["text"].cat.ordered

    @pytest.mark.parametrize("codes", [[0, 1], [[0.0] * 6], [[0] * 5]])
    def test_refuses_shapes(self, codes):
        with pytest.raises(DataError, match=r"expected \(rows, 6\)|expected integers"):
            SCHEMA.decode(codes)

    @pytest.mark.parametrize("code", [-2, 3])
    def test_refuses_codes(self, code):
        with pytest.raises(
            DataError, match=rf"row 0, column 'whole' holds the code {code}: its codes"
        ):
            SCHEMA.decode([[0, code, 0, 0, 0, 0]])


def test_declared_categories_decode_to_what_they_were():
    schema = Schema.from_categories({"a": ["no", "yes"], "b": [0.5, 1.5], "c": [False, True]})
    table = schema.decode([[1, 0, -1], [0, 1, 1]])
    assert table.to_pydict() == {"a": ["yes", "no"], "b": [0.5, 1.5], "c": [None, True]}
    with pytest.raises(DataError, match="variable 'a' mix int and str"):
        Schema.from_categories({"a": [1, "x"]})
