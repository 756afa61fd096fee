"""Data that need no download: the library's own survey, and digits that scikit-learn has."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from edgegraft.datasets.source import Dataset
from edgegraft.table import Schema

#: The file of :func:`load_survey`.
SURVEY_FILE = Path(__file__).with_name("survey.csv")
_SIDE = 8
_SHADES = 17


def load_digits(n_bins: int | None = None, *, label: bool = False) -> Dataset:
    """Return the 1,797 handwritten digits of scikit-learn as a table of pixels.

    Parameters
    ----------
    n_bins : int, optional
        Number of intervals of equal width for the 17 shades 0 to 16; by default the shades are
        kept.
    label : bool, default False
        Whether to add the digit itself as the last variable, ``digit``.

    Returns
    -------
    Dataset
        Variables ``r0c0`` to ``r7c7``, named after row and column; ``extras`` has ``digit``.

    Examples
    --------
    >>> digits = load_digits()
    >>> digits
    Dataset(1797 rows x 64 variables)
    >>> digits.names[:2], int(digits.X.max())
    (('r0c0', 'r0c1'), 16)
    >>> load_digits(n_bins=4, label=True).schema.n_states[-2:].tolist()
    [4, 10]
    """
    if n_bins is not None and not 1 <= n_bins <= _SHADES:
        raise ValueError(f"n_bins must be 1 to {_SHADES}, found {n_bins}")
    # Imported here, because scikit-learn's datasets take a second to load.
    from sklearn.datasets import load_digits as load_bundled

    bunch = load_bundled()
    X = bunch.data.astype(np.int16)
    n_states = [n_bins or _SHADES] * X.shape[1]
    if n_bins is not None:
        X = X * n_bins // _SHADES
    names = [f"r{k // _SIDE}c{k % _SIDE}" for k in range(X.shape[1])]
    digit = bunch.target.astype(np.int16)
    if label:
        X = np.column_stack((X, digit))
        names.append("digit")
        n_states.append(10)
    schema = Schema.from_states(n_states, names)
    return Dataset(X, schema.names, schema, extras={"digit": digit})


def load_survey() -> dict[str, list[str | int | float | None]]:
    """Return a survey of 2,000 people about work, sleep, health and company, as columns.

    No person answered it: the answers are drawn from a model with 28 direct dependencies, which
    ``tools/make_survey.py`` in the source states. Older people are over-represented, and the column
    ``weight`` corrects that. About one cell in sixty is missing, None here. Answers from 1 to 5 go
    from the least to the most; ``region`` depends on nothing.

    Returns
    -------
    dict of str to list
        The 21 questions and ``weight``; :class:`~edgegraft.GraftedMRF` takes it as it is, and
        ``pandas.DataFrame(load_survey())`` makes a frame of it. ``edgegraft demo`` writes the same
        table as ``survey.csv``.

    Examples
    --------
    >>> survey = load_survey()
    >>> len(survey), survey["job"][:2], survey["sleep"][:4]
    (22, ['retired', 'full time'], [4, 3, 4, 5])
    """
    with SURVEY_FILE.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return {name: [_value(cell) for cell in cells] for name, cells in columns.items()}


def _value(text: str) -> str | int | float | None:
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text or None
