"""The survey that comes with the library: made up, with a known network."""

from __future__ import annotations

import csv
from pathlib import Path

#: The file of :func:`load_survey`.
SURVEY_FILE = Path(__file__).with_name("survey.csv")


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
