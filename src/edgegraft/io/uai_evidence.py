"""UAI evidence files: which variables were observed, and in which states.

Two forms are about. Since 2011 a file holds one observation; before, it held any number of
them, and opened with how many there are:

    n  i_1 v_1 ... i_n v_n                      (new)
    samples  n  i_1 v_1 ... i_n v_n   n ...     (old)

The line ends mean nothing, so the forms are told apart by the number of tokens: a file of
exactly ``1 + 2 t`` tokens, ``t`` its first one, is new; any other that opens with 1 is old. No
file of one sample is both, since it has an odd number of tokens when new and an even one when
old. An old file of several samples is refused: it asks several questions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import FileFormatError
from edgegraft.io.atomic import replace_file
from edgegraft.io.uai_text import MAX_STATES, NumberFile, read_numbers

__all__ = ["read_evidence", "write_evidence"]

_MAX_INDEX = 1 << 53  # integers are exact up to here in the array of numbers
_MAX_STATE = MAX_STATES - 1


def read_evidence(path: str | os.PathLike[str]) -> dict[int, int]:
    """Read an evidence file in either of its two forms.

    Parameters
    ----------
    path : path-like
        The file, plain or gzip (told by its content).

    Returns
    -------
    dict of int to int
        The observed state of each observed variable, both counted from 0.

    Raises
    ------
    FileFormatError
        The file is malformed, names a variable twice or holds several samples.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.uai.evid")
    ...     _ = path.write_text("2 1 0 2 1")
    ...     read_evidence(path)
    {1: 0, 2: 1}
    """
    file = read_numbers(path, ("",))
    begin = _begin(file)
    n = file.integer(begin, "the number of observed variables", 0, _MAX_INDEX)
    file.expect_end(begin + 1 + 2 * n)
    if begin + 1 + 2 * n > len(file):
        raise file.truncated(f"the {n} pairs of variable and state that it announces")
    pairs = file.integers(begin + 1, 2 * n, "a variable or state", 0, _MAX_INDEX).reshape(n, 2)
    _check_pairs(file, begin + 1, pairs[:, 0], pairs[:, 1])
    return dict(zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True))


def write_evidence(path: str | os.PathLike[str], evidence: Mapping[int, int]) -> None:
    r"""Write observed states in the new form, in one step.

    Parameters
    ----------
    path : path-like
        The file; compressed if its name ends in ``.gz``.
    evidence : mapping of int to int
        The observed state of each observed variable, both counted from 0.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.uai.evid")
    ...     write_evidence(path, {2: 1, 1: 0})
    ...     path.read_text()
    '2 1 0 2 1\n'
    """
    tokens = [len(evidence)]
    for variable, state in sorted(evidence.items()):
        if variable < 0 or not 0 <= state <= _MAX_STATE:
            raise ValueError(f"evidence {variable}: {state}: variables and states count from 0")
        tokens += [int(variable), int(state)]
    replace_file(path, " ".join(map(str, tokens)) + "\n")


def _begin(file: NumberFile) -> int:
    """Return the position at which the one observation begins."""
    count = file.integer(0, "the number of observed variables", 0, _MAX_INDEX)
    if len(file) == 1 + 2 * count:
        return 0
    if count == 1 and len(file) > 1:
        return 1
    if count > 1 and _fills_with_samples(file, count):
        raise FileFormatError(
            f"'{file.path}' holds {count} evidence samples; split it into one file for each"
        )
    return 0


def _fills_with_samples(file: NumberFile, samples: int) -> bool:
    place = 1
    for _ in range(min(samples, len(file))):
        if place >= len(file) or not 0 <= file.values[place] <= len(file):
            return False
        place += 1 + 2 * int(file.values[place])
    return place == len(file)


def _check_pairs(
    file: NumberFile, place: int, variables: NDArray[np.int64], states: NDArray[np.int64]
) -> None:
    if (states > _MAX_STATE).any():
        k = int(np.argmax(states > _MAX_STATE))
        raise file.error(place + 2 * k + 1, f"a state must be in 0..{_MAX_STATE}")
    order = np.argsort(variables, kind="stable")
    again = np.flatnonzero(np.diff(variables[order]) == 0)
    if len(again):
        k = int(order[again + 1].min())
        raise file.error(place + 2 * k, f"variable {variables[k]} is observed twice")
