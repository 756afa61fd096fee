"""Predictability of each variable from the others, compared with a guess by its margin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.model import PairwiseMRF
from edgegraft.table.numbers import scores_of

_ROUNDING = 1e-9  # of shares: a variable that nothing explains has exactly 0


def predictability(
    model: PairwiseMRF, codes: NDArray[np.integer[Any]], weights: Floats | None = None
) -> dict[str, Floats]:
    """Return accuracy, nats, share of entropy and R^2 of every variable, over its known cells.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"x0": [0, 1], "x1": [0, 1]}, edges={("x0", "x1"): [[3.0, 0.0], [0.0, 3.0]]}
    ... )
    >>> found = predictability(model, np.array([[0, 0], [1, 1]] * 10))
    >>> found["accuracy"], found["baseline_accuracy"]
    (array([1., 1.]), array([0.5, 0.5]))
    """
    codes = np.ascontiguousarray(codes, np.int64)
    base = np.ones(len(codes)) if weights is None else weights
    columns = {
        name: np.full(len(model.names), np.nan)
        for name in ("accuracy", "baseline_accuracy", "nats", "entropy", "explained", "r2")
    }
    for i, variable in enumerate(model.schema):
        known = (codes[:, i] >= 0) & (base > 0)
        if not known.any():
            continue
        own, weight = codes[known, i], base[known] / base[known].sum()
        shares = np.bincount(own, weight, variable.n_states)
        p = model.predict_proba(target=variable.name, codes=codes[known])
        columns["accuracy"][i] = weight @ (p.argmax(axis=1) == own)
        columns["baseline_accuracy"][i] = shares.max()
        with np.errstate(divide="ignore"):
            columns["nats"][i] = -weight @ np.log(p[np.arange(len(own)), own])
        seen = shares[shares > 0]
        entropy = columns["entropy"][i] = float(seen @ -np.log(seen)) + 0.0
        columns["explained"][i] = 1.0 - columns["nats"][i] / entropy if entropy > 0 else np.nan
        if variable.scored or variable.n_states == 2:
            scores = scores_of(np.maximum(shares, 1e-300), 1, variable.kind)[:, 0]
            left = np.square(scores[own] - p @ scores)
            whole = float(shares @ scores**2 - (shares @ scores) ** 2)
            columns["r2"][i] = 1.0 - float(weight @ left) / whole if whole > 0 else np.nan
    for name in ("explained", "r2"):
        columns[name][np.abs(columns[name]) < _ROUNDING] = 0.0
    return columns
