"""Answers from a network: stability, planned rows, rules.

Stability is that of `bootstrap` on bfi. Planned power is compared with tables drawn and learned
from: from assumed networks, from the models of fits, and from the Gaussians that the rows of these
fits were cut from. Tables of plans have the seeds that a seed of 1 gives, fits the seeds of `FITS`,
new rows `[seed of the fit, table]`.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.comparing import Line, Matrix, as_markdown, draw, precision, spread
from edgegraft import GraftedMRF
from edgegraft.core.pairs import pair_ids
from edgegraft.datasets import make_scale_free
from edgegraft.ingest import pack
from edgegraft.learn import Plan, discover
from edgegraft.learn.bootstrap import bootstrap
from edgegraft.study import plan
from edgegraft.table import PackedTable

__all__ = ["as_markdown", "run"]

SURVEY = Path(__file__).resolve().parents[2] / "shared" / "data" / "bfi.csv.gz"


def run(scale: float = 1.0) -> list[Line]:
    """Return the lines; `scale` reduces simulations."""
    warnings.simplefilter("ignore")
    return [*stability(), *planning(scale), *rules()]


def stability() -> list[Line]:
    """Compare frequencies with q-values."""
    if not SURVEY.exists():
        return []
    table = pack(SURVEY, missing_values=["?"])
    found = discover(table)
    started = process_time()
    result = bootstrap(found.model, table, 100, plan=found.plan, ranking=found.ranking)
    seconds = process_time() - started
    q, frequency = found.model.edge_columns["q_value"], result.frequency[: found.model.n_edges]
    clear = q < 1e-4
    figure = (
        f"{int((frequency[clear] < 0.5).sum())} of {int(clear.sum())} edges with q < 1e-4 have a "
        f"frequency below .5, the lowest {frequency[clear].min():.2f}; of the other "
        f"{int((~clear).sum())} the mean is {frequency[~clear].mean():.2f}; {seconds:.0f} s CPU"
    )
    return [Line("bfi, 100 replicates: frequency against q-value", figure, "none unstable")]


# Effect, columns, edges, rows. The constants of `plan` were fitted to other cases: effects .15, .2
# and .3 of 12, 15, 20 and 30 columns with as many edges as columns.
PLANNED = (
    (0.25, 18, 18, [200, 300]),
    (0.18, 25, 25, [400, 600]),
    (0.12, 16, 16, [900, 1300]),
    (0.35, 20, 20, [110]),
    (0.2, 14, 21, [350]),
)
FITS, FIT_ROWS = range(1, 11), [300, 600]  # all were seen while the theory of a fit was changed
NEW_FITS = range(1, 21)  # whose edges are looked for in new rows; the first ten were seen


def _assumed(count: int, k: int) -> tuple[list[float], list[float]]:
    """Return planned and simulated power of assumed edges."""
    warnings.simplefilter("ignore")
    effect, n, n_edges, rows = PLANNED[k]
    found = plan(
        effect=effect,
        n_columns=n,
        n_edges=n_edges,
        rows=rows,
        n_simulations=count,
        random_state=1,
    )
    return found.curve["power"].tolist(), found.curve["simulated"].tolist()


def _fit(seed: int, n_rows: int = 600) -> tuple[GraftedMRF, Matrix]:
    rng = np.random.default_rng(seed)
    k = precision(15, rng)
    levels = pack(draw(k, n_rows, rng), kinds="ordinal")
    return GraftedMRF(random_state=0, n_jobs=1).fit(levels), k


def _fitted(count: int, seed: int) -> tuple[list[float], list[float], list[int]]:
    """Return planned and simulated power of a fit's edges, for half and all rows, and how many."""
    warnings.simplefilter("ignore")
    found = plan(_fit(seed)[0], rows=FIT_ROWS, n_simulations=count, random_state=1)
    planned, simulated = (found.curve[name].tolist() for name in ("power", "simulated"))
    return planned, simulated, [found.n_edges] * len(FIT_ROWS)


def _found_again(count: int, seed: int) -> tuple[float, float, float, float]:
    """Return planned power with its interval, and the share of edges found in new rows."""
    warnings.simplefilter("ignore")
    fitted, k = _fit(seed)
    curve = plan(fitted, rows=FIT_ROWS[:1]).curve
    true = pair_ids(fitted.edges_, 15)
    shares = []
    for run in range(count):
        rows = draw(k, FIT_ROWS[0], np.random.default_rng([seed, run]))
        edges = discover(pack(rows, kinds="ordinal"), Plan(random_state=run)).model.edges
        shares.append(np.isin(true, pair_ids(edges, 15)).mean())
    low, high = curve["power_low"][0], curve["power_high"][0]
    return curve["power"][0], low, high, float(np.mean(shares))


def planning(scale: float) -> list[Line]:
    """Compare planned with simulated power."""
    count = max(2, round(40 * scale))
    found = spread(partial(_assumed, count), range(len(PLANNED)))
    lines = []
    for (effect, n, n_edges, rows), (planned, simulated) in zip(PLANNED, found, strict=True):
        error = [np.sqrt(s * (1 - s) / (count * n_edges)) for s in simulated]
        each = zip(rows, planned, simulated, error, strict=True)
        figure = "; ".join(f"{r} rows: {p:.2f} and {s:.2f} ± {e:.2f}" for r, p, s, e in each)
        work = f"effect {effect}, {n} columns, {n_edges} edges, {count} tables each: share of "
        lines.append(Line(work + "edges found, planned and simulated", figure, "within .05"))
    both = np.array(spread(partial(_fitted, count), FITS))
    apart = both[:, 0] - both[:, 1]
    for k, rows in enumerate(FIT_ROWS):
        own, share = apart[:, k], both[:, 1, k].mean()
        work = f"{len(FITS)} fits to 600 rows of 15 columns of five levels, {count} tables each of "
        error = np.sqrt(share * (1 - share) / (count * both[:, 2, k].mean()))
        figure = (
            f"{both[:, 0, k].mean():.2f} and {share:.2f}; planned less simulated {own.mean():+.3f} "
            f"± {own.std(ddof=1) / np.sqrt(len(own)):.3f}, of one fit from {own.min():+.3f} to "
            f"{own.max():+.3f} (± {error:.3f} by simulation), {int((np.abs(own) <= 0.05).sum())} "
            f"of {len(own)} within .05"
        )
        work += f"{rows} rows: share of edges found, planned and simulated"
        lines.append(Line(work, figure, "within .05"))
    few = max(2, round(20 * scale))
    power, low, high, again = np.array(spread(partial(_found_again, few), NEW_FITS)).T
    own = power - again
    work = (
        f"{len(NEW_FITS)} such fits, {few} tables each of 300 new rows: share of their edges found"
    )
    figure = (
        f"planned {power.mean():.2f} and found {again.mean():.2f}; planned less found "
        f"{own.mean():+.3f} ± {own.std(ddof=1) / np.sqrt(len(own)):.3f}, standard deviation "
        f"{own.std(ddof=1):.3f}; within the planned interval (± {np.mean(high - low) / 2:.2f}) in "
        f"{int(((low <= again) & (again <= high)).sum())} of {len(own)} fits"
    )
    lines.append(Line(work, figure, "in the interval in 95 %"))
    return lines


def rules() -> list[Line]:
    """Measure what excluding pairs saves."""
    data = make_scale_free(200, n_states=4, n_rows=3000, random_state=0)
    table = PackedTable.from_codes(data.X.astype(np.int32), data.schema)
    seconds, tables = [], []
    discover(table)
    for given in (None, ["gap 150"]):
        started = process_time()
        found = discover(table, Plan(rules=given))
        seconds.append(process_time() - started)
        tables.append(found.search.n_tables)
    figure = (
        f"{seconds[0]:.1f} s CPU and {tables[0]:,} pairs scored; with `gap 150`, which leaves 6 % "
        f"of the pairs, {seconds[1]:.1f} s and {tables[1]:,}"
    )
    return [Line("200 columns of 4 states, 3,000 rows", figure, "cheaper")]
