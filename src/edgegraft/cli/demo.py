"""The demonstration: the strongest pairs of pixels of handwritten digits, with every stage timed.

Pixels that belong to one pen stroke depend on each other, so the strongest pairs should be
neighbours on the page: a result that anyone can check by eye.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from edgegraft import __version__
from edgegraft.data import PackedTable, pack
from edgegraft.datasets import load_digits
from edgegraft.stats import LocalCounts, mutual_information

_BINS = 4


def run_demo(n_pairs: int, n_jobs: int) -> str:
    """Run every stage and return the report."""
    watch = _Watch()
    with watch("load the images"):
        digits = load_digits()
        frame = {name: digits.X[:, k] for k, name in enumerate(digits.names)}
        varying = [name for name, column in frame.items() if len(np.unique(column)) > 1]
    with watch(f"bin the pixels ({_BINS} bins) and pack them to bit planes"):
        table = pack(frame, columns=varying, bins=_BINS, bin_rule="uniform")
    with watch("count all pairs of pixels"):
        counts = LocalCounts(table, n_jobs=n_jobs)
        tables = next(counts.blocks())
    with watch("score them by mutual information"):
        scores = mutual_information(tables)
    best = np.argsort(-scores, kind="stable")[:n_pairs]
    return _report(table, tables.edges[best], scores[best], len(scores), watch)


class _Watch:
    """Seconds of named stages, in order."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float]] = []

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.stages.append((stage, perf_counter() - started))


def _report(
    table: PackedTable,
    edges: np.ndarray,
    scores: np.ndarray,
    n_all: int,
    watch: _Watch,
) -> str:
    names = table.schema.names
    lines = [
        "# edgegraft demo: pairs of pixels in handwritten digits",
        "",
        f"edgegraft {__version__}; scikit-learn's digits, {table!r}.",
        f"The {len(edges)} strongest of {n_all:,} pairs by mutual information "
        "(a measure of dependence, direct or not):",
        "",
        "| pixel | pixel | nats | steps apart on the page |",
        "| --- | --- | ---: | ---: |",
    ]
    for (i, j), score in zip(edges, scores, strict=True):
        steps = _steps(names[i], names[j])
        lines.append(f"| {names[i]} | {names[j]} | {score:.4f} | {steps} |")
    near = sum(_steps(names[i], names[j]) == 1 for i, j in edges)
    lines += [
        "",
        f"{near} of these {len(edges)} pairs are neighbours on the page.",
        "",
        "| stage | seconds |",
        "| --- | ---: |",
        *(f"| {stage} | {seconds:.3f} |" for stage, seconds in watch.stages),
        "",
        "The first run on a machine compiles the kernels; later runs load them from disk.",
        "",
    ]
    return "\n".join(lines)


def _steps(first: str, second: str) -> int:
    """Return the steps between pixels called ``r<row>c<column>``, diagonal steps included."""
    (r, c), (s, d) = (map(int, name[1:].split("c")) for name in (first, second))
    return max(abs(r - s), abs(c - d))
