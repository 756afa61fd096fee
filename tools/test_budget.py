"""The sizes that the project keeps; the walk of a fit is in `test_walks`."""

from __future__ import annotations

import pytest
from tools import budget


def test_sizes_stay_within_the_budget(capsys):
    assert budget.main([]) == 0, capsys.readouterr().out


def test_a_size_beyond_its_limit_is_told(monkeypatch, capsys):
    figures = {"source_lines": 10**9, "source_files": 1, "heart_lines": 1, "constants": 1}
    monkeypatch.setattr(budget, "sizes", lambda heart: figures)
    assert budget.main([]) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if line.endswith("passed")] == told[:1]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("A = 1", ["A"]),
        ("A = -1.5", ["A"]),
        ("A, B = 1, 'text'", ["A"]),
        ("A: int = 1 << 20", ["A"]),
        ("A = (1, 2)", ["A", "A"]),
        ("A = True", []),
        ("a = 1", []),
        ("A = f(1)", []),
        ("def f():\n    A = 1", []),
        (
            "@dataclass(frozen=True)\nclass _Rule:\n    step: float = 2.0\n    name: str = 'x'",
            ["step"],
        ),
        ("@dataclass\nclass Public:\n    step: float = 2.0", []),
        ("class _Row(NamedTuple):\n    step: float = 2.0", []),
    ],
)
def test_constants_are_counted(source, names):
    assert list(budget.constants(source)) == names
