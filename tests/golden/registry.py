"""The registry of golden cases, and the results of estimators and models for comparison."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import edgegraft
from edgegraft.core.pairs import find_pairs
from tests.golden.compare import TOLERANCE

# Names below the top level, which may move; all golden tests import them from here.
choose_penalty = edgegraft.learn.choose_penalty
generators = edgegraft.datasets
learn = edgegraft.learn

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
FILES = Path(__file__).parent / "files"
RESULTS = Path(__file__).parent / "results"

Result = dict[str, Any]


class Case(NamedTuple):
    """A golden case.

    Attributes
    ----------
    compute : callable
        Takes an empty folder and returns the result.
    needs : tuple of str
        Files of the shared data and modules; the case is skipped without them.
    marks : tuple of str
        Names of pytest markers.
    tolerance : float
        Tolerance of floats; larger if a result depends on single-precision results of the BLAS.
    """

    compute: Callable[[Path], Result]
    needs: tuple[str, ...]
    marks: tuple[str, ...]
    tolerance: float


CASES: dict[str, Case] = {}


def case(
    *needs: str, marks: tuple[str, ...] = (), tolerance: float = TOLERANCE
) -> Callable[[Any], Any]:
    """Register a function of a folder as the golden case with its name."""

    def register(compute: Callable[[Path], Result]) -> Callable[[Path], Result]:
        CASES[compute.__name__] = Case(compute, needs, marks, tolerance)
        return compute

    return register


def compute(name: str, folder: Path) -> Result:
    """Return the result of a case, ignoring warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name].compute(folder)


def checksum(codes: Any) -> int:
    """Return a checksum of an array of codes that does not depend on its integer type."""
    return zlib.crc32(np.ascontiguousarray(codes, np.int64).tobytes())


def fit(X: Any, *, sample_weight: Any = None, **options: Any) -> Result:
    """Fit a `GraftedMRF` and return its fitted attributes."""
    estimator = edgegraft.GraftedMRF(**{"random_state": 0, **options})
    return network(estimator.fit(X, sample_weight=sample_weight))


def network(fitted: Any) -> Result:
    """Return the fitted attributes of an estimator.

    Edges are sorted by position, because the order of equal strengths is arbitrary.
    """
    order = np.lexsort(fitted.edges_.T[::-1])
    table = fitted.edge_table_
    tested = np.lexsort((table["second"].astype(str), table["first"].astype(str)))
    # The results are of a release that called norms of tables strengths.
    names = ("first", "second", "strength", "statistic", "dof", "p_value", "q_value", "kept")
    columns = {name: "search_norm" if name == "strength" else name for name in names}
    certificate = fitted.certificate_
    return {
        "edges": fitted.edges_[order],
        "strengths": norms(fitted.model_, fitted.edges_[order]),
        "table": {name: table[column][tested] for name, column in columns.items()},
        "n_tables": fitted.n_tables_,
        "n_iter": fitted.n_iter_,
        "converged": fitted.converged_,
        "reason": str(fitted.reason_),
        "penalty": fitted.penalty_,
        "ridge": fitted.ridge_,
        "certificate": {
            name: getattr(certificate, name)
            for name in ("n_pairs", "n_checked", "n_violating", "largest", "share_bound")
        },
        "model": parameters(fitted.model_),
    }


def sorted_edges(model: Any) -> Result:
    """Return a model's edges sorted by position, with their strengths."""
    order = np.lexsort(model.edges.T[::-1])
    edges = model.edges[order]
    return {"edges": edges, "strengths": norms(model, edges)}


def norms(model: Any, edges: Any) -> Any:
    """Return the norms of the tables of a model's edges, which the results call strengths."""
    bare = edgegraft.PairwiseMRF(model.schema, model.edges, model.theta)
    found = bare.edge_strengths()
    return found[find_pairs(edges, model.edges, len(model.names))]


def parameters(model: Any) -> Result:
    """Return a few numbers that depend on every log-potential of a model, in zero-sum gauge.

    Weighted sums, instead of the parameters themselves, keep the stored files small.
    """
    theta = np.asarray(model.zero_sum().theta)
    waves = np.cos(np.outer([0.0, 0.37, 1.7], np.arange(len(theta))))
    return {"n": len(theta), "norm": float(np.linalg.norm(theta)), "sums": waves @ theta}
