"""The parameters of an estimator: what they may be, and the plan that they amount to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from edgegraft.config import ModelOptions, Plan, Setting, settings_of
from edgegraft.core.threads import resolve_jobs
from edgegraft.table.schema import KINDS, Schema

if TYPE_CHECKING:
    from edgegraft.table import PackedTable
    from edgegraft.table.blocks import Rows

_SIZE = [Interval(Integral, 1, None, closed="left"), str, None]
_OWN: dict[str, list[Any]] = {
    "schema": [Schema, None],
    "random_state": ["random_state", np.random.Generator],
    "max_memory": _SIZE,
    "cache_dir": [str, PathLike, None],
    "cache_size": _SIZE,
    "drop": ["array-like", None],
    "bins": [Interval(Integral, 1, None, closed="left"), Mapping, None],
    "kinds": [StrOptions({"auto", *KINDS}), Mapping],
    "order": ["array-like", None],
    "rules": ["array-like", None],
    "missing_values": ["array-like", set, frozenset],
    "max_categories": [Interval(Integral, 2, None, closed="left")],
    "max_numeric_states": [Interval(Integral, 1, None, closed="left")],
    "unseen": [StrOptions({"error", "missing"})],
}
"""Parameters of the estimators that are not settings of a plan."""


def constraints_of(estimator: type) -> dict[str, list[Any]]:
    """Return what each parameter may be, in the terms of scikit-learn's parameter validation."""
    settings = settings_of(Plan)
    names = [declared.name for declared in fields(estimator)]
    return {
        name: _OWN[name] if name in _OWN else _constraint(settings[name])
        for name in names
        if name in _OWN or name in settings
    }


def _constraint(setting: Setting) -> list[Any]:
    allowed: list[Any] = [StrOptions(set(setting.words))] if setting.words else []
    for kind in setting.kinds:
        allowed.append("boolean" if kind is bool else _interval(setting, kind))
    return allowed + [None] * setting.optional


def _interval(setting: Setting, kind: type) -> Any:
    number = Integral if kind is int else Real
    low = setting.minimum if setting.above is None else setting.above
    if low is None and setting.maximum is None:
        return number
    left, right = setting.above is None, setting.maximum is not None
    closed = {(True, True): "both", (True, False): "left", (False, True): "right"}
    return Interval(number, low, setting.maximum, closed=closed.get((left, right), "neither"))


def plan_of(estimator: ModelOptions, **others: Any) -> Plan:
    """Return the plan of an estimator's parameters; `others` take precedence."""
    seed = make_seed(getattr(estimator, "random_state", None))
    n_jobs = estimator.n_jobs
    jobs = resolve_jobs(None if n_jobs is None else int(n_jobs))
    return Plan.from_options(estimator, random_state=seed, n_jobs=jobs, **others)


def suit_batches(plan: Plan, rows: PackedTable | Rows) -> Plan:
    """Return a plan whose batches suit what a round trip to the rows costs, measured now."""
    advise = getattr(rows, "advise_max_tests", None)
    if plan.max_tests != "auto" or advise is None:
        return plan
    return replace(plan, max_tests=advise())


def make_seed(random_state: Any) -> int:
    """Return a seed: of a generator its next draw, of None one that no other call gets."""
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**31 - 1))
