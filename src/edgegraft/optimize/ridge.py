"""Choose the ridge of a given graph by rows that were not fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.data import PackedTable, pack
from edgegraft.errors import DataError
from edgegraft.model import PairwiseMRF
from edgegraft.optimize.fit import fit_parameters

ROWS = (640.0, 160.0, 40.0, 10.0, 2.0, 0.5)
"""What ridges are tried by default, in rows that weigh as much; strong ones are fitted fastest."""

_MOST = 0.01  # of a ridge, for each of those rows
_FOLDS = 5  # one of them is held out


class RidgeChoice(NamedTuple):
    """A ridge, and what it was chosen from.

    Attributes
    ----------
    ridge : float
        Of `fit_parameters`, for all rows.
    rows : array of float
        What was tried, as rows that weigh as much, strongest first.
    scores : array of float
        Mean negative log-pseudolikelihood of the held-out rows for each, in nats.
    """

    ridge: float
    rows: NDArray[np.float64]
    scores: NDArray[np.float64]


def choose_ridge(
    source: Any,
    edges: ArrayLike | None = None,
    *,
    rows: Sequence[float] = ROWS,
    tol: float = 1e-3,
    n_jobs: int | None = 1,
    random_state: int = 0,
) -> RidgeChoice:
    """Find the ridge whose fit to four fifths of the rows predicts the last fifth best.

    With all pairs and a ridge instead of a search there is no network, but where every column
    depends a little on most others, and rows abound, such a model predicts best.

    Parameters
    ----------
    source : PackedTable or table
        Rows, or anything that :func:`edgegraft.data.pack` takes.
    edges : array of int, shape (m, 2), optional
        Pairs of column numbers; all pairs by default.
    rows : sequence of float
        Ridges to try, in rows: a ridge of ``r`` rows is ``r / N``, at most ``r / 100``. From the
        strongest on, until one predicts worse than the one before: weak ones take longest.
    tol : float, default 1e-3
        Of the fits.
    n_jobs : int, default 1
        Threads; -1 for all cores.
    random_state : int, default 0
        Which rows are held out.

    Examples
    --------
    >>> from edgegraft.datasets import make_scale_free
    >>> from edgegraft.optimize import choose_ridge, fit_parameters
    >>> data = make_scale_free(8, 3, 500, random_state=0)
    >>> chosen = choose_ridge(data.X)
    >>> model, info = fit_parameters(data.X, ridge=chosen.ridge)
    >>> model.n_edges
    28
    """
    table = source if isinstance(source, PackedTable) else pack(source)
    tried = np.array(sorted(rows, reverse=True), np.float64)
    if not len(tried) or not (np.isfinite(tried).all() and tried[-1] >= 0):
        raise ValueError(f"rows must be ridges of at least 0, found {list(rows)}")
    if table.n_rows < _FOLDS:
        raise DataError(
            f"the table has {table.n_rows} rows, and a ridge cannot be chosen from fewer than "
            f"{_FOLDS}: give one"
        )
    codes = table.codes()
    held = np.random.default_rng(random_state).permutation(table.n_rows) % _FOLDS == 0
    fitted = PackedTable.from_codes(codes[~held], table.schema)
    scores: list[float] = []
    model: PairwiseMRF | None = None
    for weight in tried:
        model, _ = fit_parameters(
            fitted,
            edges,
            ridge=ridge_of(weight, fitted.n_rows),
            tol=tol,
            start=model,
            n_jobs=n_jobs,
        )
        scores.append(-model.pseudo_log_likelihood(codes[held]).mean())
        if scores[-1] > min(scores):
            break
    best = int(np.argmin(scores))
    return RidgeChoice(ridge_of(tried[best], table.n_rows), tried[: len(scores)], np.array(scores))


def ridge_of(rows: float, n_rows: float) -> float:
    """Return the ridge that weighs as `rows` of `n_rows` do; tables of few rows get a small one."""
    return float(rows) * min(_MOST, 1.0 / n_rows)
