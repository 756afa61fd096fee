"""Check the sizes that the project keeps: lines, files, numeric constants and the walk of a fit.

    python -m tools.budget [--walk]

Figures are compared with `tools/budget.toml`; the exit status is 1 if one is passed. With `--walk`
the functions and files that a fit enters are counted too. A figure is raised there in the commit
that needs it, which says what it removed elsewhere.

A constant is a name in capitals that a module binds to a number, or a numeric field of a private
dataclass; of a tuple every number counts.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "edgegraft"


def main(arguments: list[str] | None = None) -> int:
    """Print every figure beside its limit; return 1 if one is passed."""
    parser = argparse.ArgumentParser(prog="python -m tools.budget", description=__doc__)
    parser.add_argument("--walk", action="store_true", help="count the walk of a fit too")
    options = parser.parse_args(arguments)
    budget = tomllib.loads((ROOT / "tools" / "budget.toml").read_text())
    figures = sizes(budget["heart"]["packages"])
    if options.walk:
        figures |= walk_of_a_fit()
    passed = False
    for name, value in figures.items():
        limit = budget["limits"][name]
        passed |= value > limit
        print(f"{name}: {value:,} of {limit:,}{' -- passed' if value > limit else ''}")
    return int(passed)


def sizes(heart: list[str]) -> dict[str, int]:
    """Return the sizes of the source; `heart` are packages that are also counted alone."""
    files = sorted(SOURCE.rglob("*.py"))
    lines = {path: len(path.read_text().splitlines()) for path in files}
    folders = [SOURCE / name for name in heart]
    return {
        "source_lines": sum(lines.values()),
        "source_files": len(files),
        "heart_lines": sum(
            n for path, n in lines.items() if any(path.is_relative_to(folder) for folder in folders)
        ),
        "constants": sum(len(list(constants(path.read_text()))) for path in files),
    }


def constants(source: str) -> Iterator[str]:
    r"""Yield the names of numeric constants, once for every number.

    >>> list(constants("A, B = 1, 2.0\nPAIR = (1, -1)\nname = 3\nTEXT = 'x'\nBIG = 1 << 20"))
    ['A', 'B', 'PAIR', 'PAIR', 'BIG']
    """
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef):
            if statement.name.startswith("_") and any(map(_is_dataclass, statement.decorator_list)):
                for field in statement.body:
                    if isinstance(field, ast.AnnAssign) and field.value is not None:
                        yield from [ast.unparse(field.target)] * _numbers(field.value)
            continue
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            bound = [(statement.target, statement.value)]
        elif isinstance(statement, ast.Assign):
            bound = [pair for target in statement.targets for pair in _bound(target, statement)]
        else:
            continue
        for target, value in bound:
            if isinstance(target, ast.Name) and target.id.isupper():
                yield from [target.id] * _numbers(value)


def _bound(target: ast.expr, statement: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Return names with their values."""
    value = statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _numbers(value: ast.expr) -> int:
    """Return how many numbers a value has; a product or a power of numbers is one."""
    if isinstance(value, ast.Tuple | ast.List):
        return sum(map(_numbers, value.elts))
    if isinstance(value, ast.BinOp):
        return int(bool(_numbers(value.left) and _numbers(value.right)))
    if isinstance(value, ast.UnaryOp):
        return _numbers(value.operand)
    return int(isinstance(value, ast.Constant) and type(value.value) in (int, float))


def _is_dataclass(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Name) and name.id == "dataclass"


def walk_of_a_fit() -> dict[str, int]:
    """Return how many functions and files a default fit enters."""
    from benchmarks.walks import take_walks

    walk, files = next(iter(take_walks().values()))
    return {"walk_functions": len(walk.functions), "walk_files": len(files)}


if __name__ == "__main__":
    sys.exit(main())
