"""UAI evidence files, and answers in the format of the UAI competitions.

An evidence file lists the observed variables and their states. It has two forms: since 2011, a file
contains one observation; before, it contained any number of observations, preceded by their number:

    n  i_1 v_1 ... i_n v_n                      (new)
    samples  n  i_1 v_1 ... i_n v_n   n ...     (old)

Line ends have no meaning, so the forms are distinguished by the number of tokens: a file with
exactly ``1 + 2 t`` tokens, where ``t`` is the first, is new; any other file that starts with 1 is
old. A file with one sample cannot be both, since it has an odd number of tokens if new and an even
number if old. An old file with several samples is refused.

Answers are written with enough digits to be read back exactly:

    PR                        MAR                            MAP  (or MPE)
    log10_Z                   n s_0 p p ... s_1 p p ...      n x_0 x_1 ... x_{n-1}
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.atomic import replace_file
from edgegraft.errors import FileFormatError
from edgegraft.io.uai_text import MAX_STATES, NumberFile, read_numbers

_MAX_INDEX = 1 << 53  # integers are exact up to here in the array of numbers
_MAX_STATE = MAX_STATES - 1


def read_evidence(path: str | os.PathLike[str]) -> dict[int, int]:
    """Read an evidence file in either of its two forms, plain or gzip.

    Returns the state of each observed variable, both counted from 0. A file that is malformed,
    contains a variable twice or has several samples is refused with a FileFormatError.

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
    begin, n = 0, file.integer(0, "the number of observed variables", 0, _MAX_INDEX)
    if len(file) != 1 + 2 * n and len(file) > 1 and n == 1:
        begin, n = 1, file.integer(1, "the number of observed variables", 0, _MAX_INDEX)
    elif len(file) != 1 + 2 * n and n > 1 and _fills_with_samples(file, n):
        raise FileFormatError(
            f"'{file.path}' holds {n} evidence samples; split it into one file for each"
        )
    file.expect_end(begin + 1 + 2 * n)
    if begin + 1 + 2 * n > len(file):
        raise file.truncated(f"the {n} pairs of variable and state that it announces")
    pairs = file.integers(begin + 1, 2 * n, "a variable or state", 0, _MAX_INDEX).reshape(n, 2)
    variables, states = pairs.T
    if (states > _MAX_STATE).any():
        k = int(np.argmax(states > _MAX_STATE))
        raise file.error(begin + 2 + 2 * k, f"a state must be in 0..{_MAX_STATE}")
    order = np.argsort(variables, kind="stable")
    again = np.flatnonzero(np.diff(variables[order]) == 0)
    if len(again):
        k = int(order[again + 1].min())
        raise file.error(begin + 1 + 2 * k, f"variable {variables[k]} is observed twice")
    return dict(zip(variables.tolist(), states.tolist(), strict=True))


def write_evidence(path: str | os.PathLike[str], evidence: Mapping[int, int]) -> None:
    """Write the states of observed variables in the new form, for :func:`read_evidence`.

    The file is replaced atomically, and compressed if its name ends in ``.gz``.
    """
    tokens = [len(evidence)]
    for variable, state in sorted(evidence.items()):
        if variable < 0 or not 0 <= state <= _MAX_STATE:
            raise ValueError(f"evidence {variable}: {state}: variables and states count from 0")
        tokens += [int(variable), int(state)]
    replace_file(path, " ".join(map(str, tokens)) + "\n")


def format_pr(log_z: float) -> str:
    r"""Return the text of a PR result for the natural log of Z, which may be minus infinity.

    Examples
    --------
    >>> format_pr(math.log(1000))
    'PR\n2.9999999999999996\n'
    """
    if math.isnan(log_z) or log_z == math.inf:
        raise ValueError(f"log_z is {log_z}, not the log of a partition function")
    return f"PR\n{float(log_z) / math.log(10)!r}\n"


def format_mar(marginals: Sequence[ArrayLike]) -> str:
    r"""Return the text of a MAR result for the distribution of each variable, in their order.

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
    r"""Return the text of a MAP result for the state of each variable.

    Competitions use different names for the task: `word` is the first line.

    Examples
    --------
    >>> format_map([0, 1, 0])
    'MAP\n3 0 1 0\n'
    """
    states = np.asarray(assignment).astype(np.int64).ravel().tolist()
    return f"{word}\n" + " ".join(map(str, (len(states), *states))) + "\n"


def _fills_with_samples(file: NumberFile, samples: int) -> bool:
    place = 1
    for _ in range(min(samples, len(file))):
        if place >= len(file) or not 0 <= file.values[place] <= len(file):
            return False
        place += 1 + 2 * int(file.values[place])
    return place == len(file)
