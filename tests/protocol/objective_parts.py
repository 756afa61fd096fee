"""The objectives, penalties and tables of the protocol tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from edgegraft import PackedTable
from edgegraft.core import Layout, PairTables
from edgegraft.core.backend import find_backend
from edgegraft.core.pairs import table_offsets
from edgegraft.counts import PairCounts
from edgegraft.inference import BeliefPropagation, ExactEngine, TreeReweighted
from edgegraft.objective import (
    Likelihood,
    Penalty,
    Pseudolikelihood,
)
from edgegraft.objective.noise import NoiseWeights
from edgegraft.table import StoredRows, TableRows
from tests.conftest import DEVICE, CutTable, random_codes

__all__ = ["GRAPHS", "OBJECTIVES", "PENALTIES", "TABLES", "Layout", "PairTables", "table_offsets"]

STATES = [2, 3, 4, 2, 3]
N_ROWS = 1200  # three blocks

# Objectives


class Made(NamedTuple):
    """How an objective is created, and which properties it has.

    Attributes
    ----------
    make : callable
        Takes a table and row weights.
    close : float
        Tolerance of values and gradients: rounding, or messages that stop before full precision.
    convex : bool
        Whether the loss is convex; the Bethe approximation is not.
    steady : bool
        Whether adding an edge of zeros leaves the loss unchanged; in tree-reweighted inference the
        edge weights depend on the graph.
    """

    make: Callable[[Any, Any], Any]
    close: float = 1e-12
    convex: bool = True
    steady: bool = True


def likelihood(engine: Any) -> Callable[[Any, Any], Any]:
    return lambda table, weights: Likelihood(PairCounts(table, weights=weights), engine)


def pseudolikelihood(**options: Any) -> Callable[[Any, Any], Any]:
    return lambda table, weights: Pseudolikelihood(table, weights=weights, **options)


def in_blocks(**options: Any) -> Callable[[Any, Any], Any]:
    return lambda table, weights: Pseudolikelihood(StoredRows(CutTable(table), weights, **options))


def on_device(**options: Any) -> Callable[[Any, Any], Any]:
    def make(table: Any, weights: Any) -> Any:
        return Pseudolikelihood(TableRows(table, weights, device=find_backend(DEVICE)), **options)

    return make


OBJECTIVES = {
    "likelihood, exact": Made(likelihood(ExactEngine())),
    "likelihood, bp": Made(
        likelihood(BeliefPropagation(tol=1e-12, max_iter=5000)), close=1e-9, convex=False
    ),
    "likelihood, trw": Made(
        likelihood(TreeReweighted(tol=1e-11, max_iter=20000)), close=1e-7, steady=False
    ),
    "pseudolikelihood": Made(pseudolikelihood()),
    "pseudolikelihood, two threads": Made(pseudolikelihood(n_jobs=2)),
    "pseudolikelihood, no room": Made(pseudolikelihood(max_bytes=0)),
    "pseudolikelihood, single": Made(pseudolikelihood(precision="single"), close=2e-6),
    "blocks": Made(in_blocks()),
    "blocks, two threads": Made(in_blocks(n_jobs=2)),
    "blocks, no room": Made(in_blocks(max_bytes=0)),
}
if find_spec("torch"):  # the extra gpu
    OBJECTIVES |= {
        "device": Made(on_device()),
        "device, single": Made(on_device(precision="single"), close=2e-6),
    }

GRAPHS = {
    "no edges": [],
    "tree": [(0, 1), (1, 2), (1, 3), (3, 4)],
    "loop": [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)],
}


class Rows(NamedTuple):
    """Codes and row weights."""

    codes: Any
    weights: Any = None


def dependent_codes(missing: float) -> Any:
    codes = random_codes(STATES, N_ROWS, missing, seed=3)
    codes[:300, 3] = codes[:300, 0]
    codes[300:600, 2] = np.where(codes[300:600, 1] < 0, -1, codes[300:600, 1])
    codes[0], codes[1] = 0, np.array(STATES) - 1
    return codes


TABLES = {
    "complete": Rows(dependent_codes(0.0)),
    "missing": Rows(dependent_codes(0.15)),
    "weighted": Rows(dependent_codes(0.1), np.random.default_rng(5).uniform(0, 2, N_ROWS)),
}


@cache
def objective(name: str, table: str) -> Any:
    """Return an objective of `OBJECTIVES` over a table of `TABLES`."""
    rows = TABLES[table]
    return OBJECTIVES[name].make(PackedTable.from_codes(rows.codes), rows.weights)


def graph(name: str) -> Any:
    return Layout(STATES, np.array(GRAPHS[name], np.int64).reshape(-1, 2))


def point(layout: Any, seed: int = 1, scale: float = 0.5) -> Any:
    """Return random parameters as a read-only array."""
    theta = scale * np.random.default_rng(seed).normal(size=layout.n_parameters)
    theta.flags.writeable = False
    return theta


# Penalties

NOISE = NoiseWeights(np.array([1.2, 0.7, 2.0, 0.3, 0.9]), np.array([1.0, 1.5, 2.0, 1.0, 1.3]), 2.0)
PENALTIES = {
    "group": Penalty(0.3),
    "group and ridge": Penalty(0.3, 0.2),
    "ridge alone": Penalty(0.0, 0.2),
    "none": Penalty(),
    "by states": Penalty(0.05, 0.1, group_weight="states"),
    "by noise": Penalty(0.3, 0.1, noise=NOISE, group_weight="noise"),
    "nodes too": Penalty(0.3, 0.1, penalize_nodes=True),
}
