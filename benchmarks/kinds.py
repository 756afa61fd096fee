"""Columns of levels, numbers and mixed kinds: edges found, false edges, time, beside others.

Gaussian networks cut into levels, conditional Gaussian networks of mixed columns, U-shapes,
networks of levels, and surveys (:mod:`benchmarks.kinds_data`, :mod:`benchmarks.kinds_rivals`,
:mod:`benchmarks.kinds_surveys`). Our level, and that of Benjamini and Hochberg for partial rank
correlations, is .005. Times are processor seconds of one thread.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.comparing import spread
from benchmarks.kinds_data import curved, gaussian, leveled, mixed, null, rare
from benchmarks.kinds_rivals import LEVEL, rivals
from edgegraft.config import Plan
from edgegraft.ingest import pack
from edgegraft.learn import discover

LEVELS = [(25, n_rows, s, 5) for s in (2, 3, 4, 5, 6, 7) for n_rows in (200, 400, 5000)]
CASES = [
    *(case if case[1:3] != (400, 4) else (*case[:3], 20) for case in LEVELS),
    *((100, 500, 2, 2), (100, 500, 5, 2), (100, 2000, 3, 2), (100, 2000, 6, 2)),
    *((100, 2000, None, 3), (100, 5000, 4, 1)),
    *((500, 1000, 4, 1), (500, 2000, 5, 1), (500, 5000, None, 1)),
]
MIXED = [(500, 6), (2000, 4)]
CURVED = [(400, 5, 4), (400, None, 4)]
SLOW = {"skein-glm, its FDR": 50, "skein": 150, "GraphicalLassoCV": 150}  # most columns
QUICK = ("edgegraft", "partial Spearman")  # have all tables of a case, others the first few
FEW = {"skein-glm, its FDR": 1, "skein": 2}  # tables of a case, by method
RESAMPLED = (400, 500)  # rows of the cases of a method that resamples
RECALL, GRID = 0.9, (140, 200, 280, 400, 560, 800, 1130, 1600, 2260)
CALIBRATED = [
    ("24 independent columns of levels, numbers, counts and two states, 400 rows", null),
    ("100 independent columns of rate .1 beside two of levels, 1,000 rows", rare),
    ("25 columns, a network of 4 levels, 400 rows", partial(leveled, 25, 400, 4)),
    ("25 columns, a network of 6 levels, 400 rows", partial(leveled, 25, 400, 6)),
    ("25 columns, a network of 4 levels, 2,000 rows", partial(leveled, 25, 2000, 4)),
    ("25 columns, Gaussians cut into 4 levels, 400 rows", partial(gaussian, 25, 400, 4)),
    ("25 columns, Gaussians cut into 5 levels, 500 rows", partial(gaussian, 25, 500, 5)),
    ("25 columns, Gaussian numbers, 400 rows", partial(gaussian, 25, 400, None)),
    ("24 columns, 8 U-shapes, 5 levels, 400 rows", partial(curved, 400, 5)),
    ("24 columns, 8 U-shapes, numbers, 400 rows", partial(curved, 400, None)),
]
RATES = {0.05: 160, LEVEL: 80}  # tables of a family, for an error of about .003
GROUPS = [(s, n, c) for s, n in ((4, 400), (5, 800), (6, 2000)) for c in (0.0, 0.25)]
NAMES = ["edgegraft, kinds found", "edgegraft, nominal", *rivals()]


class Line(NamedTuple):
    """A figure, put together from parts that can be worked out apart."""

    work: str
    method: str
    parts: Sequence[Callable[[], Any]]
    show: Callable[[list[Any]], str] = "".join
    compared: bool = False


def ours(rows, kinds="auto", nominal=(), rate=LEVEL):
    """Return the edges of the default fit."""
    frame = pd.DataFrame(rows).set_axis([f"x{i}" for i in range(rows.shape[1])], axis=1)
    for i in nominal:
        frame[f"x{i}"] = np.array(list("abcdefgh"))[frame[f"x{i}"].astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(pack(frame, kinds=kinds), Plan(fdr=rate))
    return set(map(tuple, found.model.edges.tolist()))


def methods(n=0):
    """Return the methods of a comparison of so many columns, by name."""
    known = {
        name: method
        for name, method in rivals().items()
        if not any(name.startswith(slow) and n > most for slow, most in SLOW.items())
    }
    return {
        NAMES[0]: lambda rows, nominal: ours(rows, "auto", nominal),
        NAMES[1]: lambda rows, nominal: ours(rows, "nominal", nominal),
        **known,
    }


def measure(name, draw, seed):
    """Return edges found, false ones, edges that there are, and seconds."""
    truth, rows, *nominal = draw(seed)
    start = process_time()
    found = methods()[name](rows, *nominal or ((),))
    spent = process_time() - start
    return len(found & truth), len(found - truth), len(truth), spent


def _score(parts):
    hits, wrong, n_edges, spent = np.mean(parts, axis=0)
    f1 = 2 * hits / (hits + wrong + n_edges)
    return f"{hits:.1f} of {n_edges:.0f}, {wrong:.1f} false; {f1:.3f}; {spent:.2g} s"


def _compared(work, draw, n_seeds, n, n_rows):
    parts = [partial(measure, seed=seed, draw=draw) for seed in range(n_seeds)]
    return [
        Line(work, name, [partial(part, name) for part in parts[: few(name, n)]], _score, True)
        for name in methods(n)
        if name not in FEW or n_rows in RESAMPLED
    ]


def few(name, n=0):
    """Return how many tables of a case of so many columns a method gets; None for all."""
    if name.startswith(QUICK):
        return None
    most = next((most for slow, most in FEW.items() if name.startswith(slow)), 3)
    return most if n <= 50 else 1


def recall(kinds, n_rows, seed):
    """Return edges found, false ones, and edges that there are, of columns of six levels."""
    truth, rows = gaussian(25, n_rows, 6, seed)
    found = ours(rows, kinds)
    return n_rows, len(found & truth), len(found - truth), len(truth)


def _rows_for_recall(parts):
    """Return the least rows of the grid with which nine of ten true edges are found."""
    parts = np.array(parts)
    for n_rows in GRID:
        _, hits, wrong, n_edges = parts[parts[:, 0] == n_rows].sum(axis=0)
        if hits >= RECALL * n_edges:
            return f"{n_rows:,} rows; {wrong / (wrong + hits):.3f} of the edges found are false"
    return f"more than {GRID[-1]:,}"


def calibration(draw, rate, seed):
    """Return false edges and edges found at a rate."""
    truth, rows, *kinds = draw(seed)
    table = pack(rows, kinds=kinds[0] if kinds else "auto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(table, Plan(fdr=rate)).model.edges
    return len(set(map(tuple, found.tolist())) - truth), len(found)


def _calibrated(parts):
    wrong, found = np.transpose(parts)
    shares = wrong / np.maximum(found, 1)
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
    return (
        f"false discovery rate {shares.mean():.4f} ± {error:.4f} ({wrong.sum()} false of "
        f"{found.sum()} found, {len(shares)} tables)"
    )


def groups(n_levels, n_rows, checkers, seed):
    """Return of every edge whether further scores, and the rest of its table, seem needed."""
    _, rows = leveled(15, n_rows, n_levels, seed, checkers)
    columns = discover(pack(rows, kinds="ordinal")).model.edge_columns
    return np.stack((columns["p_rest"], columns["p_table"])) <= 0.05


def _groups(parts):
    rest, table = np.concatenate(parts, axis=1).mean(axis=1)
    n_edges = sum(part.shape[1] for part in parts)
    return f"p_rest <= .05: {rest:.3f}, p_table <= .05: {table:.3f} of {n_edges} edges"


def many_categories(counts, n_binary):
    """Return edges and time of a fit with columns of many categories."""
    rng, n_rows = np.random.default_rng(0), 20_000
    table = {f"t{s}": [f"v{k}" for k in rng.integers(0, s, n_rows)] for s in counts}
    table |= {f"c{k}": rng.choice(["no", "yes"], n_rows) for k in range(n_binary)}
    ours(rng.integers(0, 2, (300, 3)))  # compiles
    start = process_time()
    found = discover(pack(table))
    return f"{len(found.model.edges)} edges; {process_time() - start:.2f} s"


def _levels(n_levels):
    return "numbers" if n_levels is None else f"{n_levels} levels"


def lines(scale=1.0):
    """Return the lines of the table; `scale` reduces seeds."""

    def seeds(n):
        return max(1, int(n * scale))

    out = []
    for n, n_rows, n_levels, n_seeds in CASES:
        work = f"{n} columns, {_levels(n_levels)}, {n_rows:,} rows"
        out += _compared(work, partial(gaussian, n, n_rows, n_levels), seeds(n_seeds), n, n_rows)
    for n_rows, n_seeds in MIXED:
        work = f"24 columns, mixed, {n_rows:,} rows"
        out += _compared(work, partial(mixed, n_rows), seeds(n_seeds), 24, n_rows)
    for n_rows, n_levels, n_seeds in CURVED:
        work = f"24 columns, 8 U-shapes, {_levels(n_levels)}, {n_rows:,} rows"
        out += _compared(work, partial(curved, n_rows, n_levels), seeds(n_seeds), 24, n_rows)
    for kinds in ("auto", "nominal"):
        grid = [partial(recall, kinds, n, seed) for n in GRID for seed in range(seeds(4))]
        work = "rows for nine of ten edges, 25 columns, 6 levels"
        out.append(Line(work, f"edgegraft, kinds={kinds!r}", grid, _rows_for_recall))
    for work, draw in CALIBRATED:
        for rate, n_seeds in RATES.items():
            tables = [partial(calibration, draw, rate, seed) for seed in range(seeds(n_seeds))]
            out.append(Line(work, f"edgegraft, fdr={rate}", tables, _calibrated))
    for s, n_rows, checkers in GROUPS:
        more = f" and a checkerboard of {checkers}" if checkers else ""
        work = f"15 columns, {s} levels, {n_rows:,} rows, linear edges{more}"
        tables = [partial(groups, s, n_rows, checkers, seed) for seed in range(seeds(8))]
        out.append(Line(work, "edgegraft, default", tables, _groups))
    for counts, n_binary in (((60, 50), 30), ((6972,), 2)):
        named = " and ".join(f"{s:,}" for s in counts)
        work = f"columns of {named} categories beside {n_binary} of two, 20,000 rows"
        out.append(Line(work, NAMES[0], [partial(many_categories, counts, n_binary)]))
    from benchmarks.kinds_surveys import survey_lines

    return out + survey_lines(seeds(3))


def work_out(scale, k):
    """Work out one part of the benchmark, in a process of its own."""
    warnings.simplefilter("ignore")
    return [part for line in lines(scale) for part in line.parts][k]()


def run(scale: float = 1.0) -> list[tuple[Line, str]]:
    """Return the lines and their figures; parts are run in as many processes as cores."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes that begin now
    table = lines(scale)
    return shown(table, spread(partial(work_out, scale), range(sum(len(x.parts) for x in table))))


def shown(table: list[Line], parts: list[Any]) -> list[tuple[Line, str]]:
    """Return the lines with their figures; parts that are None were not worked out."""
    out, first = [], 0
    for line in table:
        known = [part for part in parts[first : first + len(line.parts)] if part is not None]
        first += len(line.parts)
        if known:
            out.append((line, line.show(known)))
    return out


def as_markdown(found: list[tuple[Line, str]]) -> str:
    """Return two tables: comparisons with a column per method, and single figures."""
    named = [name for name in NAMES if any(line.method == name for line, _ in found)]
    works = list(dict.fromkeys(line.work for line, _ in found if line.compared))
    cells = {(line.work, line.method): figure for line, figure in found}
    wide = [f"| edges found and false; F1; seconds | {' | '.join(named)} |"]
    wide.append("| --- |" + " --- |" * len(named))
    for work in works:
        wide.append(f"| {work} | {' | '.join(cells.get((work, name), '') for name in named)} |")
    rest = ["| work | method | figure |", "| --- | --- | --- |"]
    rest += [f"| {x.work} | {x.method} | {figure} |" for x, figure in found if not x.compared]
    return "\n".join([*wide, "", *rest])
