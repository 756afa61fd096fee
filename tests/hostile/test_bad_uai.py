"""Malformed UAI files are refused, and the message says where."""

import gzip

import numpy as np
import pytest

from edgegraft.errors import FileFormatError
from edgegraft.io import read_evidence, read_uai

VALID = "MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n2 1 2\n\n2\n.4 .6\n\n4\n1 2\n3 4\n\n6\n1 2 3\n4 5 6e-3\n"


@pytest.fixture
def refused(tmp_path):
    def message(content, reader=read_uai):
        path = tmp_path / "bad.uai"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(FileFormatError) as caught:
            reader(path)
        text = str(caught.value)
        assert text.startswith(f"'{path}'")
        return text.removeprefix(f"'{path}'")

    return message


MODELS = {
    "empty": ("", 1, "", "open with MARKOV or BAYES"),
    "blank": (" \n\n", 1, "", "open with MARKOV or BAYES"),
    "wrong header": (VALID.replace("MARKOV", "MARKOW"), 1, "MARKOW", "open with MARKOV or BAYES"),
    "no header": (VALID[7:], 1, "3", "open with MARKOV or BAYES"),
    "a table": ("a,b\n1,2\n", 1, "a,b", "open with MARKOV"),
    "header alone": ("MARKOV\n", 1, "MARKOV", "ends here, before the number of variables"),
    "word": (VALID.replace("2 2 3", "2 two 3"), 3, "two", "decimal number"),
    "comma": (VALID.replace("1 2 3", "1, 2 3"), 17, "1,", "decimal number"),
    "nan": (VALID.replace(".6", "nan"), 10, "nan", "decimal number"),
    "inf": (VALID.replace(".6", "inf"), 10, "inf", "decimal number"),
    "underscore": (VALID.replace(".6", "1_0"), 10, "1_0", "decimal number"),
    "half a number": (VALID.replace(".6", "1e"), 10, "1e", "decimal number"),
    "two signs": (VALID.replace(".6", "--1"), 10, "--1", "decimal number"),
    "fraction as a count": (VALID.replace("\n3\n2", "\n2.5\n2", 1), 2, "2.5", "an integer"),
    "fraction as states": (VALID.replace("2 2 3", "2 2 2.5"), 3, "2.5", "of variable 2 must be"),
    "fraction in a scope": (VALID.replace("2 0 1", "2 0 .5"), 6, ".5", "an integer"),
    "negative count": (VALID.replace("\n3\n2", "\n-3\n2", 1), 2, "-3", "number of variables"),
    "absurd count": (VALID.replace("\n3\n2", "\n9000000000\n2", 1), 2, "9000000000", "variables"),
    "huge count": (VALID.replace("\n3\n2", "\n1e999\n2", 1), 2, "1e999", "number of variables"),
    "absurd factors": (VALID.replace("\n3\n1", "\n1e15\n1"), 4, "1e15", "number of factors"),
    "no states": (VALID.replace("2 2 3", "2 0 3"), 3, "0", "states of variable 1 must be in 1..65"),
    "many states": (VALID.replace("2 2 3", "2 2 65536"), 3, "65536", "in 1..65535"),
    "outside": (VALID.replace("2 0 1", "2 0 3"), 6, "3", "scope of factor 1 must be in 0..2"),
    "negative variable": (VALID.replace("2 0 1", "2 -1 1"), 6, "-1", "must be in 0..2"),
    "repeated": (VALID.replace("2 1 2", "2 1 1"), 7, "1", "factor 2 names variable 1"),
    "three variables": (
        VALID.replace("2 1 2", "3 1 2 0"), 7, "3",
        "factor 2 joins the 3 variables 1, 2, 0; a pairwise model",
    ),
    "absurd scope": (VALID.replace("2 1 2", "2000000 1 2"), 7, "2000000", "variables of factor 2"),
    "negative scope": (VALID.replace("2 1 2", "-2 1 2"), 7, "-2", "variables of factor 2"),
    "wrong size": (VALID.replace("\n4\n", "\n5\n"), 12, "5", "factor 1 over (0, 1) must be"),
    "entry missing": (VALID.replace("3 4\n", "3\n"), 17, "1", "factor 2 over (1, 2)"),
    "entry too many": (VALID.replace("3 4\n", "3 4 5\n"), 14, "5", "factor 1 has too few"),
    "negative entry": (VALID.replace(".6", "-.6"), 10, "-.6", "must not be negative"),
    "too large": (VALID.replace(".6", "1e1" + "0" * 30), 10, "1e1" + "0" * 30, "too large"),
    "trailing": (VALID + "7 8\n", 19, "7", "should end here; 2 tokens follow"),
    "ends in states": ("MARKOV\n3\n2 2", 3, "2", "before the number of states of variable 2"),
    "ends before factors": ("MARKOV\n3\n2 2 2\n", 3, "2", "before the number of factors"),
    "ends in scopes": ("MARKOV\n2\n2 2\n2\n1 0\n2 0", 6, "0", "before variable 1 of the scope"),
    "ends before tables": ("MARKOV\n1\n2\n1\n1 0\n", 5, "0", "2 entries of factor 0 over (0)"),
    "ends in a table": (VALID[: VALID.index("5 6e")], 18, "4", "6 entries of factor 2 over (1, 2)"),
    "states without factors": (
        "MARKOV\n1000\n" + "65535 " * 1000 + "\n0\n", 3, "65535", "no factor mentions",
    ),
    "long token": ("MARKOV\n" + "x" * 1000, 2, "x" * 40 + "...", "decimal number"),
    "not text": (b"MARKOV\n3\n\xff\xfe\x01", 3, r"\xff\xfe\x01", "decimal number"),
    "old line ends": (VALID.replace(".6", "-.6").replace("\n", "\r"), 10, "-.6", "negative"),
    "after comments": ("c one\n# two\n" + VALID.replace(".6", "x"), 12, "x", "decimal number"),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_a_malformed_model_is_refused_by_line_and_token(refused, case):
    content, line, token, problem = MODELS[case]
    message = refused(content)
    assert message.startswith(f", line {line}, token '{token}': ")
    assert problem in message


@pytest.mark.parametrize(
    ("content", "line", "token", "problem"),
    [
        ("", 1, "", "number of observed variables"),
        ("PR 2", 1, "PR", "open with a number"),
        ("2 1 0 2", 1, "2", "ends here, before the 2 pairs"),
        ("2 1 0 2 1\n5", 2, "5", "should end here"),
        ("1\n2 1 0 2", 2, "2", "ends here, before the 2 pairs"),
        ("2 1 0 1 0", 1, "1", "variable 1 is observed twice"),
        ("1 -1 0", 1, "-1", "must be in"),
        ("1 1 .5", 1, ".5", "an integer"),
        ("1 1 65535", 1, "65535", "in 0..65534"),
        ("1e300", 1, "1e300", "must be in"),
    ],
)
def test_malformed_evidence_is_refused(refused, content, line, token, problem):
    message = refused(content, read_evidence)
    assert message.startswith(f", line {line}, token '{token}': ")
    assert problem in message


def test_several_evidence_samples_are_refused_by_name(refused):
    assert "3 evidence samples" in refused("3\n1 0 1\n2 0 0 1 1\n1 0 1", read_evidence)


def test_damaged_gzip_is_refused(refused):
    packed = gzip.compress(VALID.encode())
    for content in (packed[: len(packed) // 2], packed[:5], packed[:-9] + b"\0" * 9):
        assert "gzip stream is truncated or damaged" in refused(content)


def test_utf16_is_refused(refused):
    assert "line 1: a zero byte" in refused(VALID.encode("utf-16"))


def test_a_file_that_is_not_there_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_uai(tmp_path / "absent.uai")


def outcome(reader, path):
    """Return what was read, or None if it was refused; any other error is a failure."""
    try:
        return reader(path)
    except FileFormatError as error:
        message = str(error)
    assert str(path) in message
    return None


@pytest.mark.parametrize("seed", range(2))
def test_random_damage_is_read_or_refused(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "damaged.uai"
    plain = VALID.encode()
    packed = gzip.compress(plain)
    for trial in range(200):
        data = bytearray(packed if trial % 4 == 0 else plain)
        for _ in range(rng.integers(0, 4)):
            data[rng.integers(len(data))] = rng.integers(256)
        if trial % 2:
            data = data[: rng.integers(len(data) + 1)]
        if trial % 5 == 0:
            cut = rng.integers(len(data) + 1)
            data[cut:cut] = rng.choice([b"9", b" 9", b"-", b"1e9", b"#", b"\nc "])
        path.write_bytes(data)
        model = outcome(read_uai, path)
        if model is not None:
            assert model.theta.shape == (model.layout.n_parameters,)
            assert not np.isnan(model.theta).any()
            assert not np.isposinf(model.theta).any()


@pytest.mark.parametrize("seed", range(2))
def test_random_tokens_are_read_or_refused(tmp_path, seed):
    rng = np.random.default_rng(seed)
    tokens = VALID.split()
    spare = ["0", "1", "2", "3", "-1", "1e9", "65535", "65536", "1e400", "1e-400", ".5", "x", ""]
    for _ in range(200):
        mixed = list(tokens)
        for _ in range(rng.integers(1, 4)):
            mixed[rng.integers(len(mixed))] = spare[rng.integers(len(spare))]
        path = tmp_path / "mixed.uai"
        path.write_text("\n".join(mixed))
        for reader in (read_uai, read_evidence):
            outcome(reader, path)
