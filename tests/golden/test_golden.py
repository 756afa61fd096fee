"""Stored results of earlier code, computed again and compared.

`make.py` describes how they were stored, `compare.py` which differences are tolerated.
"""

from __future__ import annotations

import json

import pytest

from edgegraft.kernels.compiler import shipped_level
from tests.golden import answers, networks, sources  # noqa: F401 - they register their cases
from tests.golden.compare import differences, plain
from tests.golden.registry import CASES, RESULTS, SHARED, compute


def every_case():
    return [
        pytest.param(name, marks=[getattr(pytest.mark, mark) for mark in case.marks], id=name)
        for name, case in CASES.items()
    ]


def skip_without(needs):
    if shipped_level() is not None:
        pytest.skip("stored results are those of kernels that were compiled for the processor")
    for need in needs:
        if "." not in need:
            pytest.importorskip(need, reason=f"this golden case needs the package {need}")
        elif not (SHARED / need).is_file():
            pytest.skip(f"{need} is not in the folder of real data (../shared/data)")


@pytest.mark.parametrize("name", every_case())
def test_results_are_unchanged(name, tmp_path):
    skip_without(CASES[name].needs)
    expected = json.loads((RESULTS / f"{name}.json").read_text())
    found = json.loads(json.dumps(plain(compute(name, tmp_path))))
    lines = differences(found, expected, tolerance=CASES[name].tolerance)
    assert not lines, "\n".join([f"{name}: {len(lines)} values differ", *lines[:12]])


def test_every_stored_result_has_a_case():
    assert {path.stem for path in RESULTS.glob("*.json")} == set(CASES)
    total = sum(path.stat().st_size for path in RESULTS.iterdir())
    assert total < 1_000_000, f"the stored results take {total:,} bytes"


@pytest.mark.parametrize(
    ("found", "same"),
    [
        ({"x": [1.0, 2.0 + 1e-10]}, True),
        ({"x": [1.0, 2.0 + 1e-7]}, False),
        ({"x": [1.0, None]}, False),
        ({"x": [1.0]}, False),
        ({"x": [1, 2]}, False),
        ({"x": [1.0, 2.0], "y": 1}, False),
    ],
)
def test_the_comparison_detects_differences(found, same):
    assert (differences(found, {"x": [1.0, 2.0]}) == []) is same


def test_tail_probabilities_are_compared_by_logarithm():
    expected = {"p_value": [1e-300]}
    assert differences({"p_value": [1e-300 * (1 + 1e-8)]}, expected) == []
    assert differences({"p_value": [2e-300]}, expected) != []
