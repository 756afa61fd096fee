"""Fits of varied tables, none of which may warn of the library's own arithmetic or interfaces."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from edgegraft import GraftedMRF
from edgegraft.errors import Message

Table = np.ndarray
_INSIDE = (RuntimeWarning, DeprecationWarning, FutureWarning)


def codes(rng: np.random.Generator, n_rows: int, n: int = 8) -> Table:
    return rng.integers(0, rng.integers(2, 5), (n_rows, n)).astype(float)


def copies(rng: np.random.Generator) -> Table:
    X = codes(rng, int(rng.choice([40, 150, 600])))
    X[:, 1], X[:, 3], X[:, 4] = X[:, 0], X[:, 2], X.max() - X[:, 0]
    X[rng.random(len(X)) < rng.choice([0, 0.02]), 3] = 0
    return X


def hub(rng: np.random.Generator) -> Table:
    centre = rng.integers(0, 2, (300, 1))
    leaves = np.where(rng.random((300, 10)) < 0.1, 1 - centre, centre)
    return np.hstack([centre, leaves]).astype(float)


def constant(rng: np.random.Generator) -> Table:
    return np.hstack([codes(rng, 200, 4), np.zeros((200, 2))])


def missing(rng: np.random.Generator) -> Table:
    X = copies(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def numbers(rng: np.random.Generator) -> Table:
    X = copies(rng)
    return np.hstack([X, rng.normal(size=(len(X), 2)) + X[:, :1]])


TABLES: list[Callable[[np.random.Generator], Table]] = [
    copies, hub, constant, lambda rng: codes(rng, 6), missing, numbers,
]  # fmt: skip


def fit_quietly(n: int) -> list[str]:
    """Fit `n` tables, every other with weights; a warning from inside is an error."""
    outcomes = []
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X = TABLES[seed % len(TABLES)](rng)
        weights = rng.integers(1, 4, len(X)) if seed // len(TABLES) % 2 else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for category in _INSIDE:
                warnings.simplefilter("error", category)
            try:
                GraftedMRF(random_state=0).fit(X, sample_weight=weights)
                outcomes.append("survived")
            except Message:
                outcomes.append("refused")
            except Exception:  # noqa: BLE001 - this is what is counted
                outcomes.append("lost")
    return outcomes
