"""Rows over time: lagged columns of panels and diaries, and weights around a moment.

Both only prepare rows; the network is learned by `GraftedMRF` as always. What that means:

- A column and its lag are different columns. Edges between a lag and a present column are temporal,
  edges between present columns contemporaneous, given the lags. Edges between lags say nothing new.
- Rows of a subject are not independent beyond the lags: give subjects as ``clusters=`` to `fit` and
  `compare`, which use the variance between them.
- Differences between subjects that never change look like edges between lag and present: centre
  numbers within subjects first, or read temporal edges as both.
- Rows are assumed to be equally far apart in time; a gap is a missing lag only if it is in `time`.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.types import Floats
from edgegraft.errors import DataError, SettingError
from edgegraft.ingest.cells import infer_labels
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import read_labels

_FAR = 1e-6  # weight of a row that is five bandwidths away


class LaggedRows(NamedTuple):
    """Rows with their lags.

    Attributes
    ----------
    columns : dict of str to list
        The columns, then each with its lag as ``NAME_lag1``; None for a lag that there is not.
    clusters : array of object, or None
        The subject of each row.
    rules : list of str
        Forbid edges between lags, for ``GraftedMRF(rules=...)``.
    times : list, or None
        The time of each row, for :func:`kernel_weights`; dates as numbers of days.
    """

    columns: dict[str, list[Any]]
    clusters: NDArray[np.object_] | None
    rules: list[str]
    times: list[Any] | None = None

    def __repr__(self) -> str:
        n_rows = len(next(iter(self.columns.values())))
        subjects = "" if self.clusters is None else f" of {len(set(self.clusters)):,} subjects"
        return (
            f"LaggedRows({n_rows:,} rows{subjects} x {len(self.columns)} columns, lags among them)"
        )


def lagged(
    X: Any, lags: int = 1, *, subject: str | None = None, time: str | None = None, **reading: Any
) -> LaggedRows:
    """Return rows with the values of earlier rows in columns of their own.

    Parameters
    ----------
    X : table
    lags : int, default 1
        How many rows back.
    subject : str, optional
        Column that names whose row it is; lags do not reach from one subject to another.
    time : str, optional
        Column to sort the rows of a subject by. Whole numbers and days that skip a step have no lag
        there.
    **reading
        Options of :func:`edgegraft.pack`, such as ``missing_values=``.

    Examples
    --------
    >>> diary = {"who": ["a", "a", "b"], "mood": [1, 2, 3]}
    >>> found = lagged(diary, subject="who")
    >>> found.columns
    {'mood': [2], 'mood_lag1': [1]}
    >>> found.clusters.tolist(), found.rules
    (['a'], ['forbid *_lag[0-9]* -- *_lag[0-9]*'])
    """
    if isinstance(lags, bool) or not isinstance(lags, int) or lags < 1:
        raise SettingError("lags", f"must be an integer of at least 1, found {lags!r}")
    options = ReadOptions.of(lagged, reading)
    with open_source(X, options) as source:
        names, from_text = list(source.names), source.from_text
    for name in (subject, time):
        if name is not None and name not in names:
            raise DataError(f"the table has no column '{name}'")
    cells = {name: read_labels(X, name, options) for name in names}
    if from_text:
        cells = {name: _typed(column) for name, column in cells.items()}
    n = len(cells[names[0]])
    who = cells[subject] if subject is not None else [None] * n
    when = cells[time] if time is not None else list(range(n))
    missing = [k for k in range(n) if when[k] is None or (subject is not None and who[k] is None)]
    if missing:
        raise DataError(f"row {missing[0]} has no subject or no time: leave such rows out")
    when = _moments(when)
    order = sorted(range(n), key=lambda k: (str(who[k]), when[k]))
    if time is not None and len(set(zip(who, when, strict=True))) < n:
        raise DataError(f"two rows of a subject have the same '{time}'")
    whole = all(isinstance(moment, int) for moment in when) and time is not None
    step = when if whole else np.argsort(order).tolist()  # without gaps: places in the order
    place = {(who[k], step[k]): k for k in range(n)}
    back = {k: [place.get((who[k], step[k] - lag)) for lag in range(1, lags + 1)] for k in order}
    kept = [k for k in order if any(earlier is not None for earlier in back[k])]
    columns: dict[str, list[Any]] = {}
    for name in names:
        if name in (subject, time):
            continue
        columns[name] = [cells[name][k] for k in kept]
        for lag in range(1, lags + 1):
            earlier = [back[k][lag - 1] for k in kept]
            columns[f"{name}_lag{lag}"] = [None if e is None else cells[name][e] for e in earlier]
    clusters = None
    if subject is not None:
        clusters = np.empty(len(kept), object)
        clusters[:] = [who[k] for k in kept]
    times = None if time is None else [when[k] for k in kept]
    return LaggedRows(columns, clusters, ["forbid *_lag[0-9]* -- *_lag[0-9]*"], times)


def _typed(texts: list[str | None]) -> list[Any]:
    """Return the cells of a text file's column as the labels that they would have in a fit."""
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    labels: dict[str | None, Any] = dict(zip(distinct, infer_labels(distinct)[1], strict=True))
    return [labels.get(text) for text in texts]


def _moments(when: list[Any]) -> list[Any]:
    """Return moments that can be sorted: numbers and dates of text files are text.

    Dates are numbers of days, unless they have a time of day.

    Examples
    --------
    >>> _moments(["10", "9"]), _moments(["2026-01-02"])
    ([10, 9], [739618])
    """
    if all(isinstance(moment, str) for moment in when):
        for read in (int, float, date.fromisoformat, datetime.fromisoformat):
            try:
                return _moments([read(moment) for moment in when])
            except ValueError:
                continue
    midnight = datetime.min.time()
    if not all(isinstance(moment, date) for moment in when):
        return when
    if any(isinstance(moment, datetime) and moment.time() != midnight for moment in when):
        return when
    return [moment.toordinal() for moment in when]


def kernel_weights(time: ArrayLike, at: float, bandwidth: float) -> Floats:
    """Return row weights around a moment, for networks that change slowly.

    They are Gaussian in the distance from `at`, with the standard deviation `bandwidth`; as
    `sample_weight` they count as the effective number of rows near the moment. Networks at several
    moments are not independent, and a bandwidth decides how fast a change can be seen.

    Examples
    --------
    >>> kernel_weights([0.0, 1.0, 2.0], at=1.0, bandwidth=1.0).round(3)
    array([0.607, 1.   , 0.607])
    """
    given = np.asarray(time)
    if given.ndim != 1 or given.dtype.kind not in "biuf" or not np.isfinite(given).all():
        raise DataError("time must be a vector of finite numbers, such as days since a start")
    if not bandwidth > 0:
        raise SettingError("bandwidth", f"must be above 0, found {bandwidth}")
    weights = np.exp(-0.5 * np.square((given.astype(np.float64) - at) / bandwidth))
    if not weights.max(initial=0.0) > _FAR:
        raise SettingError(
            "at", f"must be near the time of a row, found {at} with a bandwidth of {bandwidth}"
        )
    return np.asarray(weights)
