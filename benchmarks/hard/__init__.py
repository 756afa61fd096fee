"""Hard cases for edges: hubs, cold models, copies, sparse cells, weights, missing cells.

One thread, default settings, the rows of each case drawn by exact samplers of its own. Average
precision is that of `pair_ranking_`, over all pairs.
"""

from __future__ import annotations

import warnings
from statistics import fmean
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks.hard.cases import CASES, Case, Data


class Outcome(NamedTuple):
    """What one fit found."""

    precision: float  # average precision; NaN if there is no true edge
    f1: float
    n_edges: int
    n_false: int
    seconds: float
    warned: bool


def fit(data: Data) -> Outcome:
    """Fit one table and judge its edges."""
    from edgegraft import GraftedMRF

    started = process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = GraftedMRF(kinds="nominal", random_state=0).fit(data.X, sample_weight=data.weights)
    seconds = process_time() - started
    kept = [(min(i, j), max(i, j)) for i, j in found.edges_.tolist()]
    table = found.pair_ranking_
    position = {name: k for k, name in enumerate(found.schema_.names)}
    ends = [[position[name] for name in table[end]] for end in ("first", "second")]
    order = [(min(i, j), max(i, j)) for i, j in zip(*ends, strict=True)]
    hits = len(data.edges.intersection(kept))
    f1 = 2 * hits / (len(kept) + len(data.edges)) if data.edges else float(not kept)
    return Outcome(
        average_precision(order, data.edges), f1, len(kept), len(kept) - hits, seconds, bool(caught)
    )


def average_precision(order: list[tuple[int, int]], true: set[tuple[int, int]]) -> float:
    """Return the average precision of a ranking; true edges that it lacks count as zero."""
    if not true:
        return float("nan")
    hit = np.array([pair in true for pair in order], float)
    return float((hit * hit.cumsum() / np.arange(1, len(hit) + 1)).sum() / len(true))


def run(scale: float = 1.0, names: str = "") -> list[tuple[Case, list[Outcome]]]:
    """Fit every case whose name contains `names`; `scale` shrinks the number of seeds."""
    chosen = [case for case in CASES if names in case.name]
    return [
        (case, [fit(case.draw(np.random.default_rng(1000 + k))) for k in range(count)])
        for case in chosen
        for count in [max(1, round(case.seeds * scale))]
    ]


def as_markdown(results: list[tuple[Case, list[Outcome]]]) -> str:
    """Return the table of a run."""
    lines = [
        "| case | seeds | average precision | F1 of own cut | edges | false | runs with false "
        "edges | CPU s | warned |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for case, runs in results:
        precision = fmean(r.precision for r in runs)
        shown = "" if np.isnan(precision) else f"{precision:.2f}"
        lines.append(
            f"| {case.name} | {len(runs)} | {shown} | {fmean(r.f1 for r in runs):.2f} "
            f"| {fmean(r.n_edges for r in runs):.1f} | {fmean(r.n_false for r in runs):.1f} "
            f"| {sum(r.n_false > 0 for r in runs)} | {fmean(r.seconds for r in runs):.1f} "
            f"| {sum(r.warned for r in runs)} |"
        )
    return "\n".join(lines)
