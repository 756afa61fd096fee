"""Errors of bp and trw on the UAI 2014 problems.

Errors of log Z are signed natural logarithms (trw is an upper bound: never negative); the marginal
error is the largest over all states of all variables. "MAP gap" is the difference between the best
score and that of bp's max-product assignment.

    python -m benchmarks.uai_accuracy
"""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from edgegraft.inference.bp import BeliefPropagation
from edgegraft.inference.trw import TreeReweighted
from edgegraft.io import read_uai

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "uai"


def run(scale: float = 1.0) -> list[dict[str, Any]]:
    """Return one row per instance and engine; `scale` is the share of the instances."""
    if not FOLDER.is_dir():
        return []
    answers = json.loads(gzip.decompress((FOLDER / "solutions.json.gz").read_bytes()))
    names = list(answers)[: max(1, round(scale * len(answers)))]
    return [row for name in names for row in _rows(name, answers[name])]


def _rows(name: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    file = read_uai(FOLDER / f"{name}.uai.gz")
    truth = np.concatenate([np.array(p) for p in answer["exact_marginals"]])
    rows = []
    for label, engine in {
        "bp": BeliefPropagation(),
        "bp, damping 0.5": BeliefPropagation(damping=0.5),
        "trw": TreeReweighted(),
    }.items():
        began = time.perf_counter()
        marginals, _, info = engine.run(file.theta, engine.init(file.layout))
        seconds = time.perf_counter() - began
        log_z = marginals.log_partition + file.log_constant
        worst = abs(marginals.values[: len(truth)] - truth).max()
        gap = ""
        if isinstance(engine, BeliefPropagation):
            found = engine.map(file.theta, file.layout)
            gap = f"{answer['exact_map_ln_value'] - found.value - file.log_constant:.3f}"
        rows.append(
            {
                "instance": name,
                "engine": label,
                "log Z error": f"{log_z - answer['exact_ln_Z']:+.4f}",
                "largest marginal error": f"{worst:.2g}",
                "converged": "yes" if info.converged else f"no ({info.residual:.1g})",
                "sweeps": info.n_iter,
                "ms": f"{1e3 * seconds:.1f}",
                "MAP gap": gap,
            }
        )
    return rows


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    if not rows:
        return "The UAI problems (../shared/data/uai) are not available."
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    print(as_markdown(run()))
