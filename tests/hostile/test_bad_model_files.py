"""Files that are not models, or no longer: refused with a reason, never loaded as another."""

from __future__ import annotations

import hashlib
import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

import edgegraft
from edgegraft.core.container import KEY
from edgegraft.errors import FileFormatError, ModelFileError
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema, Variable

COLUMNS = {"q_value": [0.01, 0.5], "kept": [True, False]}
DETAILS = {"settings": {"penalty": 0.25, "seed": 1}, "certificate": None}


def original():
    rng = np.random.default_rng(3)
    schema = Schema(
        [
            Variable("smoker", ("no", "yes"), "string"),
            Variable("dose", (0.5, 1.0, 2.0), "double"),
            Variable("age", ("[0, 1)", "[1, 2]"), "double", True, (0.0, 1.0, 2.0)),
        ]
    )
    return PairwiseMRF(schema, [(1, 2), (0, 1)], rng.normal(size=7 + 6 + 6))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a good file."""
    path = tmp_path_factory.mktemp("whole") / "m.edgegraft"
    original().save(path, details=DETAILS, edge_columns=COLUMNS)
    return path.read_bytes()


@pytest.fixture
def refused(tmp_path):
    def message(content):
        path = tmp_path / "bad.edgegraft"
        path.write_bytes(content)
        with pytest.raises(ModelFileError) as caught:
            edgegraft.load(path)
        assert isinstance(caught.value, FileFormatError)
        text = str(caught.value)
        assert text.startswith(f"'{path}' ")
        assert len(text) < len(str(path)) + 400
        assert "model.save" in text or "again" in text or "upgrade" in text
        return text

    return message


def split(content):
    """The header and the tensors of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header, tensors):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + tensors


def seal(content):
    text = json.dumps(content, sort_keys=True, allow_nan=False).encode()
    document = {"format": "edgegraft-model", "version": 1, "content": content}
    return json.dumps(document | {"sha256": hashlib.sha256(text).hexdigest()})


def described(array):
    kind = {"float64": "F64", "int64": "I64", "bool": "BOOL"}[array.dtype.name]
    checksum = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"dtype": kind, "shape": list(array.shape), "sha256": checksum}


def resealed(whole, change=None, tensors=None):
    """A file with other content under checksums that are right: what a forger would write."""
    header, _ = split(whole)
    content = json.loads(header["__metadata__"][KEY])["content"]
    arrays = load(whole) | (tensors or {})
    arrays = {name: array for name, array in arrays.items() if array is not None}
    content["tensors"] = {name: described(array) for name, array in arrays.items()}
    if change:
        change(content)
    return save(arrays, {KEY: seal(content)})


def test_a_file_written_again_is_still_the_model(whole, tmp_path):
    for content in (resealed(whole), joined(*split(whole))):
        (tmp_path / "m").write_bytes(content)
        assert edgegraft.load(tmp_path / "m") == original()


def test_foreign_files(refused, tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a", "b")
    np.savez(tmp_path / "a.npz", a=np.ones(3))
    for content in (
        b"",
        b"\0",
        b"a,b\n1,2\n",
        pickle.dumps({"a": 1}),
        (tmp_path / "z.zip").read_bytes(),
        (tmp_path / "a.npz").read_bytes(),
        b'{"model": 1}',
        b"\x89HDF\r\n\x1a\n" + bytes(100),
        bytes(1000),
        b"\xff" * 1000,
    ):
        text = refused(content)
        size = f"({len(content):,} bytes)"
        assert f"{size} is not a model file of edgegraft, or is truncated or damaged" in text
    assert "a safetensors file of something else" in refused(save({"a": np.ones(3)}))
    assert "a safetensors file of something else" in refused(save({}, {"format": "pt"}))
    assert 'has no "format"' in refused(save({}, {KEY: '{"format": "other"}'}))
    assert 'has no "format"' in refused(save({}, {KEY: "[]"}))


def test_truncated_and_lengthened_files(refused, whole):
    for stop in range(0, len(whole), 7):
        assert "truncated or damaged" in refused(whole[:stop])
    assert "truncated or damaged" in refused(whole + b"\0")
    assert "truncated or damaged" in refused(whole + whole)


def test_headers_that_claim_more_than_there_is(refused, whole):
    for claimed in (len(whole), 10**8, 2**40, 2**63, 2**64 - 1):
        refused(claimed.to_bytes(8, "little") + whole[8:])
    header, tensors = split(whole)
    header["theta"]["shape"] = [2**60]
    refused(joined(header, tensors))
    header["theta"]["data_offsets"] = [0, 2**62]
    refused(joined(header, tensors))


def test_newer_versions(refused, whole):
    header, tensors = split(whole)
    document = json.loads(header["__metadata__"][KEY])
    for version, words in (
        (2, "has format version 2: a newer release of edgegraft wrote it"),
        (0, "states the format version 0"),
        ("1", "states the format version '1'"),
        (None, "states the format version None"),
        (True, "states the format version True"),
    ):
        header["__metadata__"][KEY] = json.dumps(document | {"version": version})
        assert words in refused(joined(header, tensors))
    assert "upgrade edgegraft" in refused(
        save({}, {KEY: '{"format": "edgegraft-model", "version": 7}'})
    )


def test_a_schema_of_a_newer_version(refused, whole):
    def change(content):
        content["schema"]["version"] = 2

    assert "the schema has version 2" in refused(resealed(whole, change))


def test_headers_that_are_no_json(refused):
    def with_header(text):
        return refused(save({}, {KEY: text}))

    assert "not JSON" in with_header("{")
    assert "not JSON" in with_header("[" * 100_000)
    assert "NaN is not a number of JSON" in with_header('{"a": NaN}')
    start = '{"format": "edgegraft-model", "version": 1, '
    assert "not JSON" in with_header(start + '"content": {"a": ' + "9" * 5000 + "}}")
    assert "no content" in with_header(start + '"content": []}')
    assert "checksum" in with_header(start + '"content": {}}')


def remove(*keys):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return change


def put(value, *keys):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


FORGED = {
    "no schema": (remove("schema"), "lacks a part (KeyError('schema')"),
    "no details": (remove("details"), "lacks a part"),
    "no column": (put(["kept"], "edge_columns"), "does not list all edge columns"),
    "column of no tensor": (put(["p_value"], "edge_columns"), "lacks a part"),
    "columns a number": (put(3, "edge_columns"), "lacks a part"),
    "no tensors": (remove("tensors"), "not those that its header lists"),
    "tensor not listed": (remove("tensors", "theta"), "not those that its header lists"),
    "tensor of no file": (put({}, "tensors", "other"), "not those that its header lists"),
    "listed as nothing": (put(None, "tensors", "theta"), "tensor 'theta' does not match"),
    "details a list": (put([1], "details"), "lacks a part"),
    "schema a list": (put([1], "schema"), "lacks a part"),
    "variables a number": (put(5, "schema", "variables"), "lacks a part"),
    "no name": (remove("schema", "variables", 0, "name"), "lacks a part"),
    "no variables": (put([], "schema", "variables"), "variable that does not exist"),
    "name a number": (put(3, "schema", "variables", 0, "name"), '"name" must be a str'),
    "names repeated": (put("dose", "schema", "variables", 0, "name"), "two variables have the"),
    "category repeated": (
        put(["no", "no"], "schema", "variables", 0, "categories"), "the same category twice",
    ),
    "category too many": (
        put(["a", "b", "c"], "schema", "variables", 0, "categories"), "theta has shape (19,)",
    ),
    "no categories": (put([], "schema", "variables", 0, "categories"), "0 categories"),
    "category null": (
        put([None, 1], "schema", "variables", 0, "categories"), "None cannot be a category",
    ),
    "unknown type": (put("qubit", "schema", "variables", 0, "dtype"), "unknown \"dtype\" 'qubit'"),
    "bins that fall": (put([2, 1, 0], "schema", "variables", 2, "edges"), "rising"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_headers(refused, whole, name):
    change, words = FORGED[name]
    assert words in refused(resealed(whole, change))


THETA = original().theta
WRONG_TENSORS = {
    "no theta": ({"theta": None}, "lacks a part (KeyError('theta')"),
    "no edges": ({"edges": None}, "lacks a part (KeyError('edges')"),
    "nan": ({"theta": np.append(THETA[:-1], np.nan)}, "edge ('smoker', 'dose') is nan"),
    "infinite": ({"theta": np.append(np.inf, THETA[1:])}, "'smoker' is inf"),
    "short": ({"theta": THETA[:-1]}, "theta has shape (18,)"),
    "matrix": ({"theta": THETA[None]}, "not one vector of doubles"),
    "scalar": ({"theta": np.array(1.0)}, "not one vector of doubles"),
    "theta of integers": ({"theta": np.arange(19)}, "not one vector of doubles"),
    "edges of floats": ({"edges": np.ones((2, 2))}, "not pairs of integers"),
    "edges in one row": ({"edges": np.array([1, 2, 0, 1])}, "not pairs of integers"),
    "triples": ({"edges": np.array([[1, 2, 0]])}, "not pairs of integers"),
    "beyond": ({"edges": np.array([[1, 3], [0, 1]])}, "variable that does not exist"),
    "negative": ({"edges": np.array([[-1, 2], [0, 1]])}, "variable that does not exist"),
    "reversed": ({"edges": np.array([[2, 1], [0, 1]])}, "smaller index first"),
    "loop": ({"edges": np.array([[1, 1], [0, 1]])}, "joins a variable to itself"),
    "twice": ({"edges": np.array([[1, 2], [1, 2]])}, "edge (1, 2) is given more than once"),
    "short column": ({"column.kept": np.array([True])}, "not one value for each edge"),
}


@pytest.mark.parametrize("name", WRONG_TENSORS)
def test_tensors_that_are_no_model(refused, whole, name):
    tensors, words = WRONG_TENSORS[name]
    assert words in refused(resealed(whole, tensors=tensors))


def test_types_that_no_model_has(refused, whole):
    header, tensors = split(whole)
    for code, shape in (("F32", [38]), ("F16", [76]), ("BF16", [76]), ("U8", [152])):
        header["theta"] |= {"dtype": code, "shape": shape}
        unknown = f"tensor 'theta' has the unknown type {code}"
        words = "tensor 'theta' does not match" if code in ("F32", "U8") else unknown
        assert words in refused(joined(header, tensors))
    header["theta"] |= {"dtype": "I64", "shape": [19]}
    assert "tensor 'theta' does not match" in refused(joined(header, tensors))


def test_every_flipped_bit_of_the_tensors_is_seen(refused, whole):
    start = len(whole) - len(split(whole)[1])
    for place in range(start, len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        assert "checksum" in refused(bytes(damaged))


def test_what_is_no_readable_file_is_what_the_system_says(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        edgegraft.load(tmp_path / "absent.edgegraft")
    with pytest.raises(IsADirectoryError):
        edgegraft.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        original().save(tmp_path / "absent" / "m.edgegraft")


def check_refused_or_same(path, content):
    """Load a damaged file: an error of ours, or exactly what was saved."""
    path.unlink(missing_ok=True)  # some file systems flush what is written over
    path.write_bytes(content)
    try:
        model, stored = edgegraft.load(path), edgegraft.read_details(path)
    except ModelFileError:
        return False
    assert model == original()
    assert model.theta.tobytes() == original().theta.tobytes()
    assert stored.details == DETAILS
    assert {name: v.tolist() for name, v in stored.edge_columns.items()} == COLUMNS
    return True


def corrupt(content, rng):
    """One to three random changes: bits, bytes, cuts, insertions, swaps, repeats."""
    out = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, max(len(out), 1)))
        width = int(rng.integers(1, 40))
        kind = rng.integers(0, 8)
        if not out or kind == 0:
            out[at:at] = rng.bytes(width)
        elif kind in (1, 2):
            out[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 3:
            out[at : at + width] = rng.bytes(width)
        elif kind == 4:
            del out[at : at + width]
        elif kind == 5:
            del out[at:]
        elif kind == 6:
            out[at:at] = out[at : at + width]
        else:
            out[at] = rng.choice(list(b'0123456789{}[]",:\\ eE-'))
    return bytes(out)


def test_thousands_of_damaged_files(tmp_path, whole):
    rng = np.random.default_rng(6)
    path = tmp_path / "fuzz.edgegraft"
    same = sum(check_refused_or_same(path, corrupt(whole, rng)) for _ in range(1500))
    assert same < 150  # a few changes (a space in the header) leave the model as it was


def test_every_changed_character_of_the_header(tmp_path, whole):
    start = len(whole) - len(split(whole)[1])
    path = tmp_path / "fuzz.edgegraft"
    rng = np.random.default_rng(7)
    for place in range(start):
        changed = bytearray(whole)
        changed[place] = rng.choice(list(b'0123456789abcdef{}[]",: '))
        check_refused_or_same(path, bytes(changed))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
places = st.sampled_from(
    [
        ("schema",), ("schema", "variables"), ("schema", "variables", 0),
        *(("schema", "variables", i, key) for i in (0, 2)
          for key in ("name", "dtype", "categories", "ordered", "edges")),
        ("schema", "version"), ("schema", "format"),
        ("details",), ("written_by",), ("tensors",), ("tensors", "theta"),
        ("tensors", "edges", "shape"),
    ]
)  # fmt: skip


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(places, json_values)
def test_any_value_anywhere_in_a_sealed_header(tmp_path, whole, place, value):
    if isinstance(value, float) and not np.isfinite(value):
        value = 0.0
    try:
        content = resealed(whole, put(value, *place))
    except ValueError:  # an infinity inside: no file can hold it
        return
    path = tmp_path / "m.edgegraft"
    path.write_bytes(content)
    try:
        model = edgegraft.load(path)
    except ModelFileError:
        return
    assert model.theta.tobytes() == original().theta.tobytes()
    assert model.edges.tolist() == original().edges.tolist()
