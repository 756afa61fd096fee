"""A tour of the installed package: every usual call once, on small tables, with its result checked.

`make dist` runs it twice: to compile the kernels that a wheel ships, and in the environment into
which that wheel is installed, where nothing may be left to compile. It needs the extra ``cli``.

    python release/tour.py               # prints the kernels that had to be compiled
    python release/tour.py --compiled    # fails if there were any
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from numba.core import event

import edgegraft
from edgegraft import GraftedMRF, GraftingSettings
from edgegraft.kernels import compiler

N_ROWS, N_COLUMNS = 500, 12
MANY_COLUMNS = 120  # whose network is too large for plain Python
MANY_ROWS = 5_000  # of which a table is large enough to be worked on from counts


class Compiled(event.Listener):
    """The names of kernels that were compiled."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, given: event.Event) -> None:
        """Note the kernel."""
        function = given.data["dispatcher"].py_func
        self.names.append(f"{function.__module__}.{function.__qualname__}")

    def on_end(self, given: event.Event) -> None:
        """Do nothing."""


def survey(states: int, seed: int = 0, columns: int = N_COLUMNS, rows: int = N_ROWS) -> np.ndarray:
    """Return codes in which every column depends on the one before it."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, states, rows)]
    for _ in range(1, columns):
        kept = rng.random(rows) < 0.6
        codes.append(np.where(kept, codes[-1], rng.integers(0, states, rows)))
    return np.column_stack(codes)


def fits() -> None:
    """Fit numbers, words, missing cells and weights, by all objectives."""
    for states, kinds in ((2, "auto"), (3, "nominal"), (5, "nominal"), (5, "ordinal")):
        found = GraftedMRF(kinds=kinds, random_state=0).fit(survey(states))
        assert len(found.edges_) >= N_COLUMNS - 1
    codes = survey(3)
    words = np.array(["no", "maybe", "yes"], object)[codes]
    words[:40, 1] = None
    estimator = GraftedMRF(random_state=0).fit(words)
    assert len(estimator.score_samples(words)) == N_ROWS
    assert estimator.predict_proba(words, target=estimator.model_.names[0]).shape == (N_ROWS, 3)
    assert estimator.impute(words).shape == words.shape
    assert len(estimator.sample(10, random_state=0)) == 10
    weights = np.random.default_rng(0).random(N_ROWS)
    GraftedMRF(random_state=0).fit(codes, sample_weight=weights)
    GraftedMRF(search=GraftingSettings(penalty=0.02), random_state=0).fit(codes)
    GraftedMRF(search=GraftingSettings(objective="likelihood"), random_state=0).fit(codes)
    GraftedMRF(aim="prediction", random_state=0).fit(codes)
    GraftedMRF(random_state=0).fit(survey(2, columns=MANY_COLUMNS))
    GraftedMRF(random_state=0).fit(survey(2, columns=MANY_COLUMNS, rows=MANY_ROWS))
    estimator.bootstrap(words, 4)


def questions() -> None:
    """Ask a model by every engine."""
    model = GraftedMRF(random_state=0).fit(survey(3)).model_
    first, last = model.names[0], model.names[-1]
    label = model.schema.variables[0].categories[0]
    for engine in ("exact", "bp", "trw", "gibbs"):
        answer = model.marginals({first: label}, engine=engine)
        assert abs(sum(answer[last].values()) - 1.0) < 1e-9
    assert len(model.map()) == N_COLUMNS
    model.map(engine="bp")
    model.edge_strengths()
    model.log_partition()


def commands(folder: Path, variables: dict[str, str]) -> None:
    """Run the command line as its users do, each command in a process of its own."""
    table, model = folder / "survey.csv", folder / "survey.edgegraft"
    words = np.array(["no", "maybe", "yes"], object)[survey(3, seed=1)]
    words[:40, 1] = ""
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([[f"q{k}" for k in range(N_COLUMNS)], *words])
    for command in (
        ["learn", table, "-o", model],
        ["info", model],
        ["query", model, "--given", "q0=yes", "--of", "q1"],
        ["sample", model, "-o", folder / "drawn.csv"],
        ["impute", model, table, "-o", folder / "filled.csv"],
        ["score", model, table],
        ["export", model, folder / "edges.csv"],
    ):
        subprocess.run(
            [sys.executable, "-m", "edgegraft", *map(str, command)],
            check=True,
            capture_output=True,
            env=os.environ | variables,
        )


def main() -> None:
    """Take the tour."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiled", action="store_true", help="fail if a kernel was compiled")
    options = parser.parse_args()
    listener = Compiled()
    event.register("numba:compile", listener)
    compiler._is_too_small = lambda *_: False  # plain Python would hide that a kernel is missing
    warnings.simplefilter("ignore")
    fits()
    questions()
    names = [name for name in listener.names if name.startswith("edgegraft.")]
    with tempfile.TemporaryDirectory() as folder:
        commands(Path(folder), {"NUMBA_CACHE_DIR": folder} if options.compiled else {})
        names += [path.name for path in Path(folder).rglob("*.nbc")]
    print(f"edgegraft {edgegraft.__version__}: {len(names)} kernels compiled", *names, sep="\n  ")
    if options.compiled and names:
        sys.exit("kernels had to be compiled that the wheel should have brought")


if __name__ == "__main__":
    main()
