"""Count the functions and files of ours that three walks through the code enter.

    python -m benchmarks.walks [--list]

The walks: `GraftedMRF().fit(frame)`; `edgegraft learn survey.csv`, what it enters beyond the fit;
a query by belief propagation of a loaded model.

What is counted: distinct functions and methods with a name, properties and special methods
included, in Python files under the package; not module bodies, lambdas and comprehensions, nor
methods that a decorator generated. Every walk is done once before, so that caches are warm and
nothing is imported or compiled. Kernels (the package ``kernels``) are counted apart, one for each
that Python calls: what they call among themselves is not seen. "Doors" are those of the functions
that are entered from another file of ours, the number of jumps that a reader makes.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
import pandas as pd

import edgegraft

ROOT = str(Path(edgegraft.__file__).parent)
KERNELS = "kernels"


class Function(NamedTuple):
    """A function of ours, by the file that it is in."""

    file: str
    name: str
    line: int


class Walk(NamedTuple):
    """What was entered.

    Attributes
    ----------
    functions : set of Function
        Without kernels.
    doors : set of Function
        Those of them that were entered from another file.
    kernels : set of Function
    """

    functions: frozenset[Function]
    doors: frozenset[Function]
    kernels: frozenset[Function]

    @property
    def files(self) -> set[str]:
        """The files of the functions."""
        return {function.file for function in self.functions}

    def beyond(self, other: Walk) -> Walk:
        """Return what this walk enters and the other does not."""
        return Walk(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the functions of every file")
    options = parser.parse_args(arguments)
    walks = take_walks()
    print("| walk | functions | of them doors | files | kernels |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, (walk, files) in walks.items():
        figures = (len(walk.functions), len(walk.doors), len(files), len(walk.kernels))
        print(f"| {name} | {' | '.join(map(str, figures))} |")
    if options.list:
        for name, (walk, _) in walks.items():
            print(f"\n## {name}\n")
            print("\n".join(listed(walk)))


def take_walks() -> dict[str, tuple[Walk, set[str]]]:
    """Return the three walks by name, with the files that count for each."""
    frame, estimator = survey(), edgegraft.GraftedMRF
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder) / "survey.csv", Path(folder) / "survey.edgegraft"
        frame.to_csv(table, index=False)
        fit = follow(lambda: estimator(random_state=0).fit(frame))
        learn = follow(lambda: command("learn", table, "-o", model, "--force"))
        loaded = edgegraft.load(model)
        query = follow(lambda: loaded.marginals({loaded.names[0]: "a"}, engine="bp"))
    return {
        "`GraftedMRF().fit(frame)`": (fit, fit.files),
        "`edgegraft learn survey.csv`, beyond the fit": (
            learn.beyond(fit),
            learn.files - fit.files,
        ),
        "a query by belief propagation": (query, query.files),
    }


def survey() -> pd.DataFrame:
    """Return a table of text that is large enough for every step of a fit."""
    codes = edgegraft.datasets.make_scale_free(20, 3, 2000, random_state=0).X
    letters = np.array(["a", "b", "c"], object)
    return pd.DataFrame({f"x{i}": letters[column] for i, column in enumerate(codes.T)})


def command(*arguments: object) -> None:
    """Run the command in this process, in silence."""
    from edgegraft.cli import main as run

    given, sys.argv = sys.argv, ["edgegraft", *map(str, arguments)]
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            run()
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"edgegraft {arguments}: {said.getvalue()}") from ended
    finally:
        sys.argv = given


def follow(work: Callable[[], object]) -> Walk:
    """Return what some work enters, the second time that it is done."""
    functions: set[Function] = set()
    doors: set[Function] = set()

    def enter(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name[0] == "<":
            return
        file = str(Path(code.co_filename).relative_to(ROOT))
        function = Function(file, code.co_qualname, code.co_firstlineno)
        functions.add(function)
        if caller_of(frame) != code.co_filename:
            doors.add(function)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work()
        with profiled(enter):
            work()
    kernels = {f for f in functions if Path(f.file).parts[0] == KERNELS}
    return Walk(frozenset(functions - kernels), frozenset(doors - kernels), frozenset(kernels))


def caller_of(frame: FrameType) -> str | None:
    """Return the file of ours that a function was entered from; None for the caller's own."""
    before = frame.f_back
    while before is not None and not before.f_code.co_filename.startswith(ROOT):
        before = before.f_back
    return None if before is None else before.f_code.co_filename


@contextmanager
def profiled(enter: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """Report the calls of this thread, and of those that it starts."""
    before = sys.getprofile()
    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def listed(walk: Walk) -> list[str]:
    """Return a line per file with the names of its functions; a door is marked with a star."""
    by_file = defaultdict(list)
    for function in sorted(walk.functions | walk.kernels, key=lambda f: (f.file, f.line)):
        by_file[function.file].append(function.name + "*" * (function in walk.doors))
    return [f"{file} ({len(names)}): {', '.join(names)}" for file, names in by_file.items()]


if __name__ == "__main__":
    main()
