"""What a model file keeps of how its model was learned."""

from __future__ import annotations

import math
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from edgegraft.cli.request import Request
from edgegraft.cli.rows import Rows
from edgegraft.learn import Certificate, Discovery, Plan

Json = dict[str, Any]
_PACKAGES = ("edgegraft", "numpy", "scipy", "numba", "pyarrow")


def edge_columns(found: Discovery) -> dict[str, Any]:
    """Return what is known of the model's edges, in their order."""
    n, tests, model = len(found.model.names), found.tests, found.model
    ids = tests.edges @ (n, 1)
    order = np.argsort(ids)
    at = order[np.searchsorted(ids, model.edges @ (n, 1), sorter=order)]
    columns = {
        name: getattr(tests, name)[at] for name in ("statistic", "dof", "p_value", "q_value")
    }
    return {"strength": model.edge_strengths()} | columns


def details_of(
    request: Request,
    plan: Plan,
    found: Discovery,
    rows: Rows,
) -> Json:
    """Return what a model file keeps of how its model was learned.

    Nothing in it depends on the machine or the clock: the same run gives the same file.
    """
    growth, table, weights = found.growth, rows.table, rows.weights
    source: Json = {
        "file": Path(request.data).name,
        "rows": table.n_rows,
        "missing": table.n_missing.tolist(),
    }
    if rows.sample_rows:
        source |= {"sample": rows.sample_rows}  # on which edges were tested
        if rows.shards is not None and growth.objective.n_rows < rows.shards.weight:
            source["fitted"] = "the sample"  # interrupted before all rows were looked at
    if weights is not None:
        source |= {"weights": request.weights, "weight": float(weights.sum())}
    return {
        "source": source,
        "settings": {
            "columns": request.columns,
            "drop": request.drop,
            "bins": request.bins,
            "missing": list(request.missing),
            "weights": request.weights,
            "bootstrap": request.bootstrap,
            **plan.as_dict(),
        },
        "penalty": float(found.penalty),
        "ridge": float(found.ridge),
        "fdr": plan.fdr,
        "reason": growth.reason,
        "converged": bool(found.converged),
        "search": {
            "edges": len(found.kept),
            "activations": growth.n_activations,
            "tests": growth.n_tests,
            "tables": growth.n_tables,
        },
        "certificate": _certificate(found.certificate),
        "versions": {name: version(name) for name in _PACKAGES}
        | {"python": platform.python_version()},
    }


def _certificate(certificate: Certificate) -> Json:
    """Return a certificate in JSON's types, which have no infinity, with its sentence."""
    fields = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in certificate._asdict().items()
    }
    return fields | {"text": str(certificate)}
