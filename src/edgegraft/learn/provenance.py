"""What a model file keeps of how its model was learned.

Nothing here depends on the machine or the clock: the same run gives the same file.
"""

from __future__ import annotations

import math
import platform
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from edgegraft import __version__
from edgegraft.grafting.events import StopReason
from edgegraft.learn.discovery import Discovery
from edgegraft.learn.prediction import Prediction

Json = dict[str, Any]
_UNSETTLED = 0.05  # p-value of an edge that was cut and is kept in the file
_PACKAGES = ("numpy", "scipy", "numba", "pyarrow")


def details_of(found: Discovery, source: Json, settings: Json | None = None) -> Json:
    """Return the details of a model file in JSON's types.

    `source` describes the rows that were learned from ("file", "rows", "missing" cells per column),
    `settings` how they were read, and whatever else is not in the plan.
    """
    plan, search = found.plan, found.search
    reason = StopReason.INTERRUPTED if found.interrupted else search.reason
    return {
        "source": source,
        "settings": {**(settings or {}), **plan.as_dict()},
        "penalty": float(search.penalty.penalty),
        "ridge": float(found.ridge),
        "fdr": plan.fdr,
        "reason": str(reason),
        "converged": bool(found.converged),
        "search": {
            "edges": len(found.kept),
            "activations": search.n_activations,
            "tests": search.n_tests,
            "tables": search.n_tables,
        },
        "certificate": _finite(found.certificate._asdict()) | {"text": str(found.certificate)},
        "cut": _cut(found),
        "versions": _versions(),
    } | _further(found)


def _cut(found: Discovery) -> Json:
    """Return the edges that the tests have cut and more rows might keep, as columns."""
    tests, names = found.tests, found.model.names
    at = np.flatnonzero(~found.kept & (tests.p_value <= _UNSETTLED))
    columns: Json = {
        side: [names[i] for i in tests.edges[at, k].tolist()]
        for k, side in enumerate(("first", "second"))
    }
    columns |= {"statistic": tests.statistic[at].tolist(), "dof": tests.dof[at].tolist()}
    if tests.groups is not None:
        for name in ("p_linear", "p_rest"):
            values = getattr(tests.groups, name)[at].tolist()
            columns[name] = [None if math.isnan(value) else value for value in values]
    return columns


def _further(found: Discovery) -> Json:
    """Return what only some models have."""
    made, agreement = found.prediction, found.agreement
    further: Json = {} if made is None else {"prediction": _prediction(made)}
    if agreement is not None:
        text = str(agreement) if made is None else agreement.describe("the model for prediction")
        further["shares"] = _finite(agreement._asdict()) | {"text": text}
    return further


def _prediction(made: Prediction) -> Json:
    best = max(made.trials, key=lambda trial: trial.score, default=None)
    again: Json = {}
    if made.refit is not None:
        again = _finite(made.refit.gain._asdict()) | {"used": math.isfinite(made.refit.penalty)}
    return {
        "penalty": made.penalty,
        "ridge": made.ridge,
        "edges": made.model.n_edges,
        "trials": len(made.trials),
        "held_out": None if best is None else best.score,
        "by_likelihood": again,
    }


@cache
def _versions() -> dict[str, str]:
    others = {name: version(name) for name in _PACKAGES}
    return {"edgegraft": __version__, **others, "python": platform.python_version()}


def _finite(fields: Json) -> Json:
    """Return fields as JSON, which has no infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }
