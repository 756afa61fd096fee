"""How far the shares of a network's model are from the data's, after a default fit.

Largest differences of a category of a column and of a pair of categories of an edge: as `fit`
states them, and by exact inference if that takes less than 30 s, otherwise by other chains, which
start uniformly and run long (512 chains, 1,500 sweeps each before 4,000 that are recorded, and
80,000 of up to 30 columns). Seconds are those of the fit, of CPU time. Of the surveys the complete
rows are taken: missing cells are drawn within a fit, and the shares are then those of the completed
rows.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.prediction import FOLDER, read
from edgegraft.counts import PairCounts
from edgegraft.inference import ExactEngine, GibbsEngine, affordable
from edgegraft.ingest import pack
from edgegraft.learn import discover
from edgegraft.objective.likelihood import Likelihood
from edgegraft.table import PackedTable

BINARY = ("nltcs", "plants", "baudio", "jester")
SURVEYS = ("house_votes_84", "jonas", "bfi")
CHAINS = GibbsEngine(n_chains=512, n_sweeps=4000, burn_in=1500, thinning=20, random_state=1)
LONGER, FEW = 20, 30  # times as many sweeps of models of so many columns, whose aim is .001


class Line(NamedTuple):
    """The figures of one table."""

    name: str
    n_columns: int
    n_edges: int
    stated: tuple[float, float, float]  # columns, edges, error
    found: tuple[float, float]
    engine: str
    seconds: float  # of the fit


def run(scale: float = 1.0) -> list[Line]:
    """Return a line per table; `scale` is the share of the rows."""
    if not FOLDER.is_dir():
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = []
        for name in (*SURVEYS, *BINARY, "recipes"):
            table = table_of(name)
            rows = np.arange(max(200, round(scale * table.n_rows)))[: table.n_rows]
            lines.append(measure(name, table.take(rows)))
        return lines


def table_of(name: str) -> PackedTable:
    """Return the training rows of a table."""
    if name in SURVEYS:
        return pack(pd.read_csv(FOLDER / f"{name}.csv.gz", na_values="?").dropna())
    train, _ = read("yummly" if name == "recipes" else name)
    return pack(train[:, :120] if name == "recipes" else train)


def measure(name: str, table: PackedTable) -> Line:
    began = process_time()
    learned = discover(table)
    seconds = process_time() - began
    model, agreement = learned.model, learned.agreement
    data, layout = Likelihood(PairCounts(table), ExactEngine()), model.layout
    truth = np.concatenate((data.margins(), data.pair_frequencies(layout)))
    engine: GibbsEngine | ExactEngine = ExactEngine()
    if affordable(layout) is None:
        more = LONGER if layout.n_variables <= FEW else 1
        engine = replace(CHAINS, n_sweeps=more * CHAINS.n_sweeps)
    found = engine.run(model.theta, engine.init(layout))[0].values
    off, n = np.abs(found - truth), int(layout.node_offset[-1])
    stated = (np.nan,) * 3
    if agreement is not None:
        stated = agreement.columns, agreement.edges, agreement.error
    differences = float(off[:n].max()), float(off[n:].max())
    by = engine.capabilities.name
    return Line(name, layout.n_variables, layout.n_edges, stated, differences, by, seconds)


def as_markdown(lines: list[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = [
        "| table | columns, edges | stated: columns | edges | measured: columns | edges | fit |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in lines:
        single, pair, error = line.stated
        noise = f" +- {error:.4f}" if error else ""
        by = "" if line.engine == "gibbs" else f" ({line.engine})"
        rows.append(
            f"| {line.name} | {line.n_columns}, {line.n_edges:,} | {single:.4f}{noise} "
            f"| {pair:.4f} | {line.found[0]:.4f}{by} | {line.found[1]:.4f} | {line.seconds:.0f} s |"
        )
    return "\n".join(rows)
