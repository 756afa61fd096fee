"""UAI result files: the competition's answers, to print ours and to compare with theirs.

    PR                        MAR                            MAP  (or MPE)
    log10_Z                   n s_0 p p ... s_1 p p ...      n x_0 x_1 ... x_{n-1}

The word stands on a line of its own and may be missing when read. A solver that improves its
answer appends it after ``-BEGIN-``; the last one counts. Numbers are printed with the digits
that it takes to read the same double back.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.io.uai_text import (
    MAX_STATES,
    NUMERIC_OR_INFINITE,
    NumberFile,
    read_numbers,
)

__all__ = ["format_map", "format_mar", "format_pr", "read_map", "read_mar", "read_pr"]

_RESTART = b"-BEGIN-"


def format_pr(log_z: float) -> str:
    r"""Return the text of a PR result for a natural log partition function.

    Parameters
    ----------
    log_z : float
        Natural log of Z; minus infinity if no assignment is possible.

    Returns
    -------
    str
        Two lines, the second with the decimal log; ends in a line end.

    Examples
    --------
    >>> format_pr(math.log(1000))
    'PR\n2.9999999999999996\n'
    """
    if math.isnan(log_z) or log_z == math.inf:
        raise ValueError(f"log_z is {log_z}, not the log of a partition function")
    return f"PR\n{float(log_z) / math.log(10)!r}\n"


def format_mar(marginals: Sequence[ArrayLike]) -> str:
    r"""Return the text of a MAR result.

    Parameters
    ----------
    marginals : sequence of arrays of float
        The distribution of each variable, in the order of the model.

    Returns
    -------
    str
        Two lines; ends in a line end.

    Examples
    --------
    >>> format_mar([[0.25, 0.75], [0.5, 0.25, 0.25]])
    'MAR\n2 2 0.25 0.75 3 0.5 0.25 0.25\n'
    """
    tokens = [str(len(marginals))]
    for marginal in marginals:
        values = np.asarray(marginal, np.float64).ravel().tolist()
        tokens += [str(len(values)), *map(repr, values)]
    return "MAR\n" + " ".join(tokens) + "\n"


def format_map(assignment: ArrayLike, *, word: Literal["MAP", "MPE"] = "MAP") -> str:
    r"""Return the text of a MAP result.

    Parameters
    ----------
    assignment : array of int, shape (n,)
        The state of each variable.
    word : {"MAP", "MPE"}
        The first line; competitions differ in what they call the task.

    Returns
    -------
    str
        Two lines; ends in a line end.

    Examples
    --------
    >>> format_map([0, 1, 0])
    'MAP\n3 0 1 0\n'
    """
    states = np.asarray(assignment).astype(np.int64).ravel().tolist()
    return f"{word}\n" + " ".join(map(str, (len(states), *states))) + "\n"


def read_pr(path: str | os.PathLike[str]) -> float:
    r"""Read a PR result and return the natural log of the partition function.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.uai.PR")
    ...     _ = path.write_text("PR\n2.0\n")
    ...     round(read_pr(path), 6)
    4.60517
    """
    file = read_numbers(path, ("PR", ""), restart=_RESTART, alphabet=NUMERIC_OR_INFINITE)
    if not len(file):
        raise file.truncated("the log10 of the partition function")
    file.expect_end(1)
    value = float(file.values[0])
    if value == math.inf:
        raise file.error(0, "the log10 of a partition function must not be infinite")
    return value * math.log(10)


def read_mar(path: str | os.PathLike[str]) -> list[NDArray[np.float64]]:
    r"""Read a MAR result and return the distribution of each variable.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.uai.MAR")
    ...     _ = path.write_text("MAR\n2 2 .25 .75 3 .5 .25 .25")
    ...     read_mar(path)
    [array([0.25, 0.75]), array([0.5 , 0.25, 0.25])]
    """
    file = read_numbers(path, ("MAR", ""), restart=_RESTART)
    n = file.integer(0, "the number of variables", 0, len(file))
    marginals, place = [], 1
    for i in range(n):
        states = file.integer(place, f"the number of states of variable {i}", 1, MAX_STATES)
        marginals.append(_probabilities(file, place + 1, states, i))
        place += 1 + states
    file.expect_end(place)
    return marginals


def read_map(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    r"""Read a MAP (or MPE) result and return the state of each variable.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.uai.MAP")
    ...     _ = path.write_text("MAP\n3 0 1 0\n")
    ...     read_map(path)
    array([0, 1, 0])
    """
    file = read_numbers(path, ("MAP", "MPE", ""), restart=_RESTART)
    n = file.integer(0, "the number of variables", 0, len(file))
    states = file.integers(1, n, "the state of variable {}", 0, MAX_STATES - 1)
    file.expect_end(1 + n)
    return states


def _probabilities(file: NumberFile, place: int, count: int, i: int) -> NDArray[np.float64]:
    found = file.values[place : place + count]
    if len(found) < count:
        raise file.truncated(f"the {count} probabilities of variable {i} are complete")
    bad = (found < 0) | (found > 1)
    if bad.any():
        raise file.error(
            place + int(np.argmax(bad)), f"a probability of variable {i} must be in 0..1"
        )
    return found.copy()
