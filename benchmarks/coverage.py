"""How often intervals of effects have the true one in them.

Rows are drawn from models, or are parts of a population: Gaussian columns of numbers in a tree,
with partial correlations of .2 to .45, in levels that are the population's. The true effect is that
of the true table at the true margins; of Gaussians, which cut into levels are no pairwise model, it
is that of the true edges fitted to the population. Networks are learned by `discover` with its
defaults; edges that it does not find have no interval. Seeds are 1 to 200.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from benchmarks.comparing import Line, as_markdown, draw, precision, spread
from edgegraft.config import Plan
from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats
from edgegraft.datasets import make_chain
from edgegraft.grafting.problem import losses
from edgegraft.ingest import pack
from edgegraft.learn import discover
from edgegraft.learn.effects import edge_effects
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize import Stopping, minimize
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import TableRows

__all__ = ["as_markdown", "run"]

REPLICATES, MANY = 200, 100_000
SMALL = 0.15  # effects below it are found by luck, and those found are too large
NUMBERS, PARTS = 10, 1000  # columns of numbers, and rows of a part of their population


def run(scale: float = 1.0) -> list[Line]:
    """Return the lines; `scale` reduces replicates."""
    warnings.simplefilter("ignore")
    count = max(2, round(REPLICATES * scale))
    return [*strong(count), covered_numbers(count), *moderate(count)]


def strong(count: int) -> list[Line]:
    """Measure coverage where neighbours nearly settle a column."""
    star = [(0, k) for k in range(1, 9)]
    cases = (
        ("star of 9, coupling 1.2", star, 1.2),
        ("star of 9, coupling .8", star, 0.8),
        ("triangle, coupling 1", [(0, 1), (0, 2), (1, 2)], 1.0),
        ("hub of 8 and a chain of 7 more, coupling .8", star + chain(8, 16), 0.8),
        ("chain of 8, coupling 1.5", chain(0, 8), 1.5),
    )
    return [covered(name, ising(edges, j), 1000, count) for name, edges, j in cases]


def moderate(count: int) -> list[Line]:
    """Measure coverage of moderate dependences between columns of every kind."""
    weak = make_chain(10, n_rows=10, couplings="ising", coupling_range=(0.2, 0.5), random_state=1)
    states = make_chain(10, n_states=3, n_rows=10, random_state=1)
    rng = np.random.default_rng(0)
    levels = discover(pack(draw(precision(10, rng), 20_000, rng), kinds="ordinal")).model
    cases = (
        ("chain of 10, couplings .2 to .5", weak.model),
        ("chain of 10, three unordered states", states.model),
        ("10 columns of five levels", levels),
    )
    return [covered(name, model, 800, count) for name, model in cases]


def chain(first: int, end: int) -> list[tuple[int, int]]:
    """Return the edges of a chain."""
    return [(k, k + 1) for k in range(first, end - 1)]


def ising(edges: list[tuple[int, int]], coupling: float) -> PairwiseMRF:
    """Return a model of two-state columns without fields."""
    layout = Layout(np.full(int(np.max(edges)) + 1, 2), edges)
    table = coupling * np.array([1.0, -1.0, -1.0, 1.0])
    theta = np.concatenate((np.zeros(2 * layout.n_variables), np.tile(table, len(edges))))
    return PairwiseMRF(Schema.from_states(layout.states), edges, theta)


def covered(name: str, model: PairwiseMRF, n_rows: int, count: int) -> Line:
    """Measure the coverage of intervals from rows of a model."""
    many = PackedTable.from_codes(model.sample_codes(MANY, random_state=0), model.schema)
    true = edge_effects(model, TableRows(many)).effect
    tables = partial(_drawn, model, n_rows)
    found = spread(partial(_hits, tables, model.edges, true), range(1, count + 1))
    return line(f"{name}, {n_rows:,} rows", found)


def covered_numbers(count: int) -> Line:
    """Measure the coverage of intervals from parts of a population of Gaussian numbers."""
    rng = np.random.default_rng(0)
    k = np.eye(NUMBERS)
    edges = np.array(sorted({tuple(sorted((v, int(rng.integers(v))))) for v in range(1, NUMBERS)}))
    for i, j in edges:
        k[i, j] = k[j, i] = rng.uniform(0.2, 0.45) * rng.choice([-1, 1])
    k += max(0.0, 0.1 - float(np.linalg.eigvalsh(k)[0])) * np.eye(NUMBERS)
    values = rng.multivariate_normal(np.zeros(NUMBERS), np.linalg.inv(k), count * PARTS)
    whole = pack(values, kinds="numeric")
    loss, _ = losses(TableRows(whole), Plan())
    layout = Layout(whole.schema.n_states, edges, whole.schema.widths)
    start, few = np.zeros(layout.n_parameters), Penalty(0.0, 0.1 / loss.n_rows)
    theta = minimize(loss, few, layout, start, Stopping(1e-4, 300), quiet=True).theta
    model = PairwiseMRF(whole.schema, edges, loss.expand(theta, layout))
    true = edge_effects(model, TableRows(whole)).effect
    tables = partial(_part, whole)
    found = spread(partial(_hits, tables, model.edges, true), range(count))
    return line(f"{NUMBERS} Gaussian columns of numbers, {PARTS:,} rows", found)


def _drawn(model: PairwiseMRF, n_rows: int, seed: int) -> PackedTable:
    return PackedTable.from_codes(model.sample_codes(n_rows, random_state=seed), model.schema)


def _part(whole: PackedTable, k: int) -> PackedTable:
    return PackedTable.from_codes(whole.codes()[k * PARTS : (k + 1) * PARTS], whole.schema)


def _hits(tables: partial[PackedTable], edges: Edges, true: Floats, seed: int) -> list[float]:
    """Return whether the interval of each true edge has its effect, NaN if it has no interval."""
    warnings.simplefilter("ignore")
    fitted = discover(tables(seed)).model
    columns = fitted.edge_columns
    place = {edge: k for k, edge in enumerate(map(tuple, fitted.edges.tolist()))}
    hits = []
    for edge, effect in zip(map(tuple, edges.tolist()), true.tolist(), strict=True):
        if abs(effect) > SMALL:
            k = place.get(edge, -1)
            low, high = columns["effect_low"][k], columns["effect_high"][k]
            hits.append(float(low <= effect <= high) if k >= 0 and low <= high else np.nan)
    return hits


def line(name: str, found: list[list[float]]) -> Line:
    """Return the line of a case; the standard error is that over tables."""
    hits = np.array(found)
    error = np.nanmean(hits, axis=1).std(ddof=1) / np.sqrt(len(hits))
    known = np.isfinite(hits)
    figure = f"{np.nanmean(hits):.3f} ± {error:.3f} of {known.sum():,}"
    if not known.all():
        figure += f"; {1 - known.mean():.3f} of the edges not found"
    return Line(f"{name}: coverage of .95 intervals", figure, ".92 to .97")
