"""Networks with tests on a GPU, beside the same on the processor of the same machine.

The same learner and settings, apart from `device`. Kernels are compiled, and PyTorch is loaded,
beforehand; times include reading the array and all transfers. The processor uses one thread. The
generators are those of the section "networks"; F1 is that of `edges_` against the true graph, and
"differ" counts the edges that only one of the two has. Without a GPU nothing is measured.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from benchmarks.networks import Case, Figures, draw, grafted
from benchmarks.rows import Row
from edgegraft import GraftedMRF

CASES = (
    Case(100, 5, 10_000, {}, 0.0, 0.0, 0.5, 1, 1),
    Case(200, 5, 19_000, {}, 0.0, 0.0, 1.0, 1, 1),
    Case(400, 5, 20_000, {}, 0.0, 0.0, 2.0, 1, 0),
    Case(600, 5, 20_000, {}, 0.0, 0.0, 4.0, 1, 0),
    Case(2_000, 5, 20_000, {}, 0.0, 0.0, 20.0, 1, 0),
)


class Run(NamedTuple):
    """One fit."""

    figures: Figures
    edges: set[tuple[int, int]]


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section."""
    if not has_gpu():
        print("no GPU was found: nothing is measured", file=sys.stderr)
        return []
    rows: list[Row] = []
    for case in CASES:
        size = case._replace(n=max(20, int(case.n * scale)), n_rows=int(case.n_rows * scale))
        rows.append(beside(size))
    return rows


def beside(case: Case) -> Row:
    """Return the time of a case on the GPU, beside the processor's where it is not too long."""
    codes, truth = draw(case, 0)
    for device in ("cuda", "cpu"):
        fit(codes[:1000, :20], truth, device)
    on_gpu = fit(codes, truth, "cuda")
    here = fit(codes, truth, "cpu") if case.rival_seeds else None
    notes = f"Aim: {case.seconds:g} s. F1 {on_gpu.figures.f1:.3f}"
    if here is not None:
        differ = len(on_gpu.edges ^ here.edges)
        notes += f", on the processor {here.figures.f1:.3f}; {differ} edges differ"
    kind = "Ising" if case.options else f"{case.n_states} states"
    work = f"{case.n:,} variables, {kind}, N={case.n_rows:,}"
    theirs = None if here is None else here.figures.seconds
    return Row(work, on_gpu.figures.seconds, "processor", theirs, "s", None, f"{notes}.")


def fit(codes: np.ndarray, truth: set[tuple[int, int]], device: str) -> Run:
    """Return the figures and edges of one fit."""
    kept: list[GraftedMRF] = []
    figures = grafted(codes, truth, 1, device=device, kept=kept)
    return Run(figures, {(int(i), int(j)) for i, j in kept[0].model_.edges})


def has_gpu() -> bool:
    """Return whether PyTorch finds a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())
