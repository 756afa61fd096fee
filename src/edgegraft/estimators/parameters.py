"""What the parameters of an estimator may be, and the plan that they amount to."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from edgegraft.core.threads import resolve_jobs
from edgegraft.inference.auto import ENGINES
from edgegraft.learn import Plan, Settings
from edgegraft.learn.settings import STRATEGIES
from edgegraft.objective.sharded import Shards
from edgegraft.table import PackedTable, Schema

_COUNT = Interval(Integral, 1, None, closed="left")
_SIZE = Interval(Integral, 0, None, closed="left")
_LEVEL = Interval(Real, 0, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="both")

CONSTRAINTS: dict[str, list[Any]] = {
    "strategy": [StrOptions(set(STRATEGIES))],
    "objective": [StrOptions({"pseudolikelihood", "likelihood"})],
    "inference": [StrOptions(set(ENGINES))],
    "penalty": [StrOptions({"auto"}), _LEVEL],
    "ridge": [StrOptions({"auto"}), _LEVEL],
    "group_weight": [StrOptions({"noise", "sqrt", "states"})],
    "penalize_nodes": ["boolean"],
    "fdr": [Interval(Real, 0, 1, closed="right"), None],
    "refit": ["boolean"],
    "relaxed": ["boolean"],
    "selectivity": [_SHARE],
    "reservoir_size": [_COUNT, StrOptions({"unlimited"}), None],
    "max_tests": [_COUNT, StrOptions({"auto"}), None],
    "hub_threshold": [StrOptions({"auto", "mean"}), _SHARE, None],
    "max_edges": [_SIZE, None],
    "max_time": [_LEVEL, None],
    "max_tables": [_SIZE, None],
    "priority": [StrOptions({"auto", "uniform"})],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "schema": [Schema, None],
    "n_jobs": [Integral, None],
    "random_state": ["random_state", np.random.Generator],
}
"""What each parameter may be, in the terms of scikit-learn's parameter validation."""

READING_CONSTRAINTS: dict[str, list[Any]] = {
    "max_memory": [_COUNT, str, None],
    "cache_dir": [str, PathLike, None],
    "cache_size": [_COUNT, str, None],
}
"""The same for how a table is read."""

_OF_PLAN = (
    "objective",
    "inference",
    "penalty",
    "ridge",
    "group_weight",
    "penalize_nodes",
    "fdr",
    "refit",
)
_OF_SETTINGS = (
    "strategy",
    "relaxed",
    "selectivity",
    "reservoir_size",
    "max_tests",
    "hub_threshold",
    "max_edges",
    "max_time",
    "max_tables",
    "priority",
    "tol",
)


def make_plan(parameters: dict[str, Any]) -> Plan:
    """Return the plan of an estimator's parameters; what does not go together is refused."""
    values = {name: _plain(value) for name, value in parameters.items()}
    if values["max_tests"] == "auto":
        values["max_tests"] = None
    settings = Settings(
        **{name: values[name] for name in _OF_SETTINGS},
        random_state=make_seed(parameters["random_state"]),
    )
    return Plan(
        **{name: values[name] for name in _OF_PLAN},
        settings=settings,
        n_jobs=resolve_jobs(values["n_jobs"]),
    )


def suit_batches(plan: Plan, rows: PackedTable | Shards) -> Plan:
    """Return a plan whose batches suit what a round trip to the rows costs, measured now."""
    advise = getattr(getattr(rows, "counts", None), "advise_max_tests", None)
    if advise is None:
        return plan
    tests = advise()
    return replace(plan, settings=replace(plan.settings, max_tests=tests))


def _plain(value: Any) -> Any:
    """Return a NumPy number as Python's: the plan is written to files."""
    return value.item() if isinstance(value, np.generic) else value


def make_seed(random_state: Any) -> int:
    """Return a seed: of a generator its next draw, of None one that no other call gets."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**31 - 1))
