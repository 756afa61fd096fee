"""What rows that were not fitted say of the penalty or ridge of a given graph.

A category that the fitted rows lack is a state that does not occur, not an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.penalty_path import falling, score_rows
from edgegraft.core.types import Floats
from edgegraft.errors import DataError, SettingError
from edgegraft.grafting.problem import ridge_of
from edgegraft.ingest.rows import read_table
from edgegraft.model import PairwiseMRF
from edgegraft.optimize import fit_parameters
from edgegraft.table import PackedTable

RIDGES = (640.0, 160.0, 40.0, 10.0, 2.0, 0.5)
"""Ridges tried by default, in rows that weigh as much."""

PENALTIES = (0.8, 0.4, 0.2, 0.1, 0.05)
"""Penalties tried by default, in ``1 / sqrt(N)``, the noise of a gradient."""

_FOLDS = 5  # one of them is held out


class PenaltyChoice(NamedTuple):
    """What to fit a graph with, and what it was chosen from.

    Attributes
    ----------
    penalty, ridge : float
        Of `fit_parameters`, for all rows; one of them is zero.
    tried : array of float, shape (k, 2)
        Penalty and ridge of each fit, for all rows.
    scores : array of float, shape (k,)
        Mean negative log-pseudolikelihood of the held-out rows for each, in nats.
    """

    penalty: float
    ridge: float
    tried: Floats
    scores: Floats


def choose_penalty(
    source: Any,
    edges: ArrayLike | None = None,
    *,
    ridges: Sequence[float] = RIDGES,
    penalties: Sequence[float] = PENALTIES,
    tol: float = 1e-3,
    n_jobs: int | None = 1,
    random_state: int = 0,
) -> PenaltyChoice:
    """Find the ridge or penalty whose fit to four fifths of the rows predicts the last fifth best.

    With all pairs instead of a search there is no network, but if every column depends a little
    on most others, such a model predicts best: with a ridge if rows abound, with a penalty that
    sets weak tables to zero if they are few.

    Parameters
    ----------
    source : PackedTable or table
        Rows, or anything that :func:`edgegraft.ingest.pack` takes.
    edges : array of int, shape (m, 2), optional
        Pairs of column numbers; all pairs by default.
    ridges : sequence of float
        In rows: a ridge of ``r`` rows is ``r / N``, at most ``r / 100``. From the strongest on,
        until one predicts worse than one before: weak ones take longest.
    penalties : sequence of float
        In ``1 / sqrt(N)``; likewise. May be empty, as may `ridges`.
    tol : float, default 1e-3
        Of the fits.
    n_jobs : int, default 1
        Threads; -1 for all cores.
    random_state : int, default 0
        Which rows are held out.

    Examples
    --------
    >>> from edgegraft.datasets import make_scale_free
    >>> data = make_scale_free(8, 3, 500, random_state=0)
    >>> chosen = choose_penalty(data.X)
    >>> model, info = fit_parameters(
    ...     data.X, penalty=chosen.penalty, ridge=chosen.ridge, tol=1e-3
    ... )
    >>> info.converged
    True
    """
    table = read_table(source)
    levels = {"ridges": falling("ridges", ridges), "penalties": falling("penalties", penalties)}
    if not any(map(len, levels.values())):
        raise SettingError(
            "ridges", "and penalties are both empty: there is nothing to choose from"
        )
    if table.n_rows < _FOLDS:
        raise DataError(
            f"the table has {table.n_rows} rows, and a penalty cannot be chosen from fewer than "
            f"{_FOLDS}: give one"
        )
    codes = table.codes()
    held = np.random.default_rng(random_state).permutation(table.n_rows) % _FOLDS == 0
    fitted = PackedTable.from_codes(codes[~held], table.schema)
    tried: list[tuple[float, float]] = []
    scores: list[float] = []
    for name, path in levels.items():
        model: PairwiseMRF | None = None
        best = np.inf
        for level in path:
            penalty, ridge = _weights(name, level, fitted.n_rows)
            model, _ = fit_parameters(
                fitted, edges, penalty=penalty, ridge=ridge, tol=tol, start=model, n_jobs=n_jobs
            )
            tried.append(_weights(name, level, table.n_rows))
            scores.append(-score_rows(model, codes[held]))
            if scores[-1] > best:
                break
            best = scores[-1]
    return PenaltyChoice(*tried[int(np.argmin(scores))], np.array(tried), np.array(scores))


def _weights(name: str, level: float, n_rows: int) -> tuple[float, float]:
    """Return penalty and ridge for this many rows."""
    if name == "ridges":
        return 0.0, ridge_of(level, n_rows)
    return float(level) / n_rows**0.5, 0.0
