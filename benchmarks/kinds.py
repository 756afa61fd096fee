"""Columns of levels, numbers and mixed kinds: edges found, held-out rows, time, beside others.

Gaussian networks cut into levels, conditional Gaussian networks of mixed columns, U-shapes, and
surveys (:mod:`benchmarks.kinds_data`, :mod:`benchmarks.kinds_rivals`). Our level, and that of
Benjamini and Hochberg for partial rank correlations, is .005. Times are processor seconds of one
thread.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

from benchmarks.comparing import spread
from benchmarks.kinds_data import curved, gaussian, leveled, mixed
from benchmarks.kinds_rivals import LEVEL, rivals
from edgegraft.config import Plan
from edgegraft.ingest import pack
from edgegraft.learn import discover

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CASES = [
    *((25, 200, 2, 10), (25, 400, 3, 10), (25, 400, 4, 20), (25, 400, 6, 10), (25, 250, 7, 10)),
    *((25, 200, 5, 10), (25, 5000, 6, 2), (100, 500, 5, 3), (100, 2000, 6, 3)),
    *((100, 2000, None, 3), (100, 5000, 4, 1)),
]
MIXED = [(500, 6), (2000, 4)]
CURVED = [(400, 5, 6), (400, None, 6)]
GROUPS = [(s, n, c) for s, n in ((4, 400), (5, 800), (6, 2000)) for c in (0.0, 0.25)]
WIDE = [(500, 2000, 5), (500, 5000, None)]
SLOW = {"skein": 50, "latentcor": 150, "Graphical": 150, "nodewise": 150}  # most columns, by method
RECALL, GRID = 0.9, (100, 140, 200, 280, 400, 560, 800, 1130, 1600, 2260, 3200)
CALIBRATED, CALIBRATION_LEVEL = 20, 0.05


def ours(rows, kinds="auto", nominal=()):
    """Return the edges of the default fit."""
    frame = pd.DataFrame(rows).set_axis([f"x{i}" for i in range(rows.shape[1])], axis=1)
    for i in nominal:
        frame[f"x{i}"] = np.array(list("abcdefgh"))[frame[f"x{i}"].astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(pack(frame, kinds=kinds), Plan(fdr=LEVEL))
    return set(map(tuple, found.model.edges.tolist()))


def methods(n):
    """Return the methods of a comparison by name."""
    known = {
        name: method
        for name, method in rivals().items()
        if not any(name.startswith(slow) and n > most for slow, most in SLOW.items())
    }
    return {
        "edgegraft, kinds found": lambda rows, nominal: ours(rows, "auto", nominal),
        "edgegraft, nominal": lambda rows, nominal: ours(rows, "nominal", nominal),
        **known,
    }


def compare(work, draw, n_seeds, n):
    """Return a row per method: edges found and false, F1 and time, means over seeds."""
    out = []
    problems = [draw(seed) for seed in range(n_seeds)]
    for name, method in methods(n).items():
        hits, wrong, all_edges, spent = 0, 0, 0, 0.0
        for truth, rows, nominal in problems:
            start = process_time()
            found = method(rows, nominal)
            spent += process_time() - start
            hits, wrong = hits + len(found & truth), wrong + len(found - truth)
            all_edges += len(truth)
        f1 = 2 * hits / (hits + wrong + all_edges)
        figure = f"{hits / n_seeds:.1f} of {all_edges / n_seeds:.0f} found, {wrong / n_seeds:.1f}"
        out.append((work, name, f"{figure} false; F1 {f1:.3f}; {spent / n_seeds:.2f} s"))
    return out


def rows_for_recall(kinds, n_levels=6, n_seeds=3):
    """Return the least rows of a grid from which on nine of ten true edges are found."""
    for n_rows in GRID:
        hits = total = 0
        for seed in range(n_seeds):
            truth, rows = gaussian(25, n_rows, n_levels, seed)
            hits, total = hits + len(ours(rows, kinds) & truth), total + len(truth)
        if hits >= RECALL * total:
            return n_rows
    return None


def held_out(name, kinds, ridge="auto"):
    """Return the pseudo-log-likelihood per held-out row of a survey."""
    frame = pd.read_csv(DATA / f"{name}.csv.gz", na_values="?").dropna()
    frame = frame.astype(int) if name != "jonas" else frame
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.75 * len(frame))
    table = pack(frame, kinds=kinds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(
            table.take(order[:cut]), Plan(ridge=ridge if ridge == "auto" else 20 / cut)
        )
    return found.model.pseudo_log_likelihood(codes=table.take(order[cut:]).codes()).mean()


def jester():
    """Return the network of the most rated jokes, ratings as numbers."""
    with np.load(DATA / "jester_ratings.npz") as file:
        ratings = file[file.files[0]].astype(np.float64)
    ratings[ratings > 90] = np.nan
    known = np.isfinite(ratings)
    columns = np.sort(np.argsort(-known.sum(axis=0), kind="stable")[:40])
    rows = ratings[known[:, columns].all(axis=1)][:5000][:, columns]
    start = process_time()
    return rows.shape, len(ours(rows)), process_time() - start


def calibration(work, draw, n_seeds):
    """Return false edges among those found at a rate of .05, over seeds."""
    wrong = found = runs = 0
    for seed in range(n_seeds):
        truth, rows, kinds = draw(seed)
        got = discover(pack(rows, kinds=kinds), Plan(fdr=CALIBRATION_LEVEL)).model.edges
        false = len(set(map(tuple, got.tolist())) - truth)
        wrong, found, runs = wrong + false, found + len(got), runs + (false > 0)
    share = f"{wrong} false of {found} found" + (f" ({wrong / found:.3f})" if found else "")
    return work, f"edgegraft, fdr={CALIBRATION_LEVEL}", f"{share}; in {runs} of {n_seeds} runs"


def _null(seed):
    rng = np.random.default_rng(seed)
    rows = {f"o{k}": rng.choice(5, 400, p=[0.4, 0.3, 0.15, 0.1, 0.05]) for k in range(8)}
    rows |= {f"n{k}": rng.lognormal(size=400) for k in range(8)}
    rows |= {f"c{k}": rng.poisson(2.0, 400) for k in range(4)}
    rows |= {f"b{k}": rng.choice(["no", "yes"], 400) for k in range(4)}
    return set(), rows, {f"o{k}": "ordinal" for k in range(8)}


def groups(n_levels, n_rows, checkers, n_seeds):
    """Return how often the further scores, and the rest of tables, seem to be needed."""
    p = []
    for seed in range(n_seeds):
        _, rows = leveled(15, n_rows, n_levels, seed, checkers)
        columns = discover(pack(rows, kinds="ordinal")).model.edge_columns
        p.append(np.stack((columns["p_rest"], columns["p_table"])))
    rest, table = (np.concatenate(p, axis=1) <= 0.05).mean(axis=1)
    more = f" and a checkerboard of {checkers}" if checkers else ""
    work = f"15 columns, {n_levels} levels, {n_rows:,} rows, {n_seeds} tables, linear edges{more}"
    return work, "edgegraft, default", f"p_rest <= .05: {rest:.3f}, p_table <= .05: {table:.3f}"


def _levels(n_levels):
    return "numbers" if n_levels is None else f"{n_levels} levels"


def _wide(n, n_rows, n_levels):
    """Return the rows of a wide table, beside partial rank correlations only."""
    out = []
    truth, rows = gaussian(n, n_rows, n_levels, 0)
    for name in ("edgegraft, kinds found", "partial Spearman"):
        start = process_time()
        found = methods(n)[name](rows, ())
        spent = process_time() - start
        figure = f"{len(found & truth)} of {len(truth)} found, {len(found - truth)} false"
        work = f"{n} columns, {_levels(n_levels)}, {n_rows:,} rows"
        out.append((work, name, f"{figure}; {spent:.1f} s"))
    return out


def _many_categories():
    """Return the time of fits with columns of many categories."""
    rng, out, n_rows = np.random.default_rng(0), [], 20_000
    two = {f"c{k}": rng.choice(["no", "yes"], n_rows) for k in range(30)}
    ours(rng.integers(0, 2, (300, 3)))  # compiles
    for counts in ((60, 50), (6972,)):
        texts = {f"t{s}": [f"v{k}" for k in rng.integers(0, s, n_rows)] for s in counts}
        more = two if len(counts) == 2 else {name: two[name] for name in ("c0", "c1")}
        start = process_time()
        found = discover(pack(texts | more))
        work = (
            f"columns of {' and '.join(f'{s:,}' for s in counts)} categories beside "
            f"{len(more)} of two, independent, {n_rows:,} rows"
        )
        figure = f"{len(found.model.edges)} edges; {process_time() - start:.1f} s"
        out.append((work, "edgegraft, kinds found", figure))
    return out


def _surveys():
    """Return nats per held-out row of surveys, and the network of ratings."""
    out = []
    for name in ("wenchuan", "bfi", "jonas"):
        work = f"{name}, nats per held-out row"
        for kinds in ("auto", "nominal"):
            out.append((work, f"edgegraft, kinds={kinds!r}", f"{held_out(name, kinds):.2f}"))
    for name in ("wenchuan", "bfi"):
        work, figure = f"{name}, nats per held-out row", f"{held_out(name, 'auto', 20):.2f}"
        out.append((work, "edgegraft, two scores, ridge=20 / n_rows", figure))
    (n_rows, n), n_edges, spent = jester()
    work = f"Jester, {n} jokes as numbers, {n_rows:,} rows"
    return [*out, (work, "edgegraft, kinds found", f"{n_edges} edges; {spent:.1f} s")]


def _tasks(scale):
    """Return the parts of the benchmark, each of which gives some lines."""

    def seeds(n):
        return max(1, int(n * scale))

    tasks = []
    for n, n_rows, n_levels, n_seeds in CASES:
        work = f"{n} columns, {_levels(n_levels)}, {n_rows:,} rows"

        def draw(seed, case=(n, n_rows, n_levels)):
            return (*gaussian(*case, seed), ())

        tasks.append(partial(compare, work, draw, seeds(n_seeds), n))
    for n_rows, n_seeds in MIXED:
        work = f"24 columns, mixed, {n_rows:,} rows"
        tasks.append(partial(compare, work, partial(mixed, n_rows), seeds(n_seeds), 24))
    for n_rows, n_levels, n_seeds in CURVED:
        work = f"24 columns, 8 U-shapes, {_levels(n_levels)}, {n_rows:,} rows"

        def draw_curved(seed, case=(n_rows, n_levels)):
            return (*curved(*case, seed), ())

        tasks.append(partial(compare, work, draw_curved, seeds(n_seeds), 24))
    work = "rows for nine of ten edges, 25 columns, 6 levels"
    for kinds in ("auto", "nominal"):

        def needed(kinds=kinds):
            found = rows_for_recall(kinds, n_seeds=seeds(3))
            return [
                (work, f"edgegraft, kinds={kinds!r}", "more" if found is None else f"{found:,}")
            ]

        tasks.append(needed)
    null = "24 independent columns of levels, numbers, counts and two states, 400 rows"
    tasks.append(lambda: [calibration(null, _null, seeds(CALIBRATED))])
    for name, drawn in (
        ("25 columns, 5 levels, 500 rows, 25 linear edges", partial(gaussian, 25, 500, 5)),
        ("24 columns, 5 levels, 400 rows, 8 U-shapes", partial(curved, 400, 5)),
        ("25 columns, a network of 4 levels, 400 rows, 25 edges", partial(leveled, 25, 400, 4)),
    ):

        def calibrate(name=name, drawn=drawn):
            return [calibration(name, lambda seed: (*drawn(seed), "ordinal"), seeds(CALIBRATED))]

        tasks.append(calibrate)
    for case in GROUPS:
        tasks.append(lambda case=case: [groups(*case, seeds(12))])
    tasks.append(_many_categories)
    if DATA.exists():
        tasks.append(_surveys)
    for n, n_rows, n_levels in WIDE:
        tasks.append(partial(_wide, int(n * scale), int(n_rows * scale), n_levels))
    return tasks


def _task(scale, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _tasks(scale)[k]()


def run(scale: float = 1.0) -> list[tuple[str, str, str]]:
    """Return work, method and figure; the parts are run in as many processes as cores."""
    parts = spread(partial(_task, scale), range(len(_tasks(scale))))
    return [line for part in parts for line in part]


def as_markdown(rows: list[tuple[str, str, str]]) -> str:
    """Return the table."""
    lines = ["| work | method | figure |", "| --- | --- | --- |"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
