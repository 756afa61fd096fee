"""UAI files: models, evidence, and answers in the format of the competitions.

Reading a model back gives the same energies. A file contains potentials, the library stores their
logs, and ``exp`` leaves the range of a double beyond about 709. A factor is written unchanged if
all its finite logs are within +-700; otherwise it is divided by its largest entry, and the removed
constants, together with the caller's, form one factor without variables:

    f(x) = exp(w(x) - max w)        c = log_constant + sum of the max w taken out

An entry that is still outside the range is written with its true decimal exponent, such as
``1e-400``. `read_uai` reads it exactly; other programs read zero.

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

from edgegraft.core import Layout
from edgegraft.core.atomic import replace_file
from edgegraft.core.checks import check_theta
from edgegraft.core.types import Floats
from edgegraft.errors import FileFormatError, ModelError
from edgegraft.formats.uai_numbers import MAX_INDEX, NumberFile, read_numbers
from edgegraft.model import PairwiseMRF
from edgegraft.table.schema import MAX_STATES

_SAFE_LOG = 700.0
_LARGEST_LOG = 1e15  # a larger log has no digits left for the mantissa


def write_uai(
    path: str | os.PathLike[str],
    layout: Layout,
    theta: ArrayLike,
    *,
    log_constant: float = 0.0,
) -> None:
    r"""Write a pairwise model as a UAI ``MARKOV`` file.

    The file is written atomically. It has one factor per variable, one per edge, and one without
    variables if there is a constant. Numbers have enough digits to be read back exactly. Some
    programs cannot read a factor without variables: none is written for a model without a constant
    and with potentials between ``exp(-700)`` and ``exp(700)``.

    Parameters
    ----------
    path : path-like
        The file; compressed if its name ends in ``.gz``.
    layout : Layout
        The variables' states and the edges.
    theta : array of float, shape (layout.n_parameters,)
        Natural logs of the potentials; minus infinity writes zero.
    log_constant : float
        Natural log of a constant factor.

    Raises
    ------
    ModelError
        `theta` has the wrong length, or an entry that is not the log of a finite potential.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.uai")
    ...     write_uai(path, Layout([2, 2], [(0, 1)]), np.log([1, 2, 1, 1, 1, 2, 4, 0.5]))
    ...     path.read_text().split("\n\n")
    ['MARKOV\n2\n2 2\n3\n1 0\n1 1\n2 0 1', '2\n1.0 2.0', '2\n1.0 1.0', '4\n1.0 2.0\n4.0 0.5\n']
    """
    logs = _checked(layout, theta, log_constant)
    scopes = [(i,) for i in range(layout.n_variables)] + [tuple(e) for e in layout.edges.tolist()]
    tables = [layout.node(logs, i) for i in range(layout.n_variables)]
    tables += [layout.edge(logs, k) for k in range(layout.n_edges)]
    shifts = [_constant_of(table) for table in tables]
    constant = log_constant + math.fsum(shifts)
    if constant:
        scopes, tables, shifts = [*scopes, ()], [*tables, np.array([constant])], [*shifts, 0.0]
    lines = [
        "MARKOV",
        str(layout.n_variables),
        " ".join(map(str, layout.states.tolist())),
        str(len(scopes)),
        *(" ".join(map(str, (len(scope), *scope))) for scope in scopes),
    ]
    for table, shift in zip(tables, shifts, strict=True):
        rows = np.atleast_2d(table - shift)
        with np.errstate(under="ignore", over="ignore"):
            values = np.exp(rows)
        lines += ["", str(table.size)]
        lines += [
            " ".join(map(_decimal, *pair))
            for pair in zip(rows.tolist(), values.tolist(), strict=True)
        ]
    replace_file(path, "\n".join(lines) + "\n")


def model_to_uai(
    path: str | os.PathLike[str], model: PairwiseMRF, edge_columns: object = None
) -> None:
    """Write a model as a UAI file, which holds neither names nor categories nor `edge_columns`."""
    write_uai(path, model.layout, model.theta)


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
    begin, n = 0, file.integer(0, "the number of observed variables", 0, MAX_INDEX)
    if len(file) != 1 + 2 * n and len(file) > 1 and n == 1:
        begin, n = 1, file.integer(1, "the number of observed variables", 0, MAX_INDEX)
    elif len(file) != 1 + 2 * n and n > 1 and _fills_with_samples(file, n):
        raise FileFormatError(
            f"'{file.path}' holds {n} evidence samples; split it into one file for each"
        )
    file.expect_end(begin + 1 + 2 * n)
    if begin + 1 + 2 * n > len(file):
        raise file.truncated(f"the {n} pairs of variable and state that it announces")
    pairs = file.integers(begin + 1, 2 * n, "a variable or state", 0, MAX_INDEX).reshape(n, 2)
    variables, states = pairs.T
    if (states >= MAX_STATES).any():
        k = int(np.argmax(states >= MAX_STATES))
        raise file.error(begin + 2 + 2 * k, f"a state must be in 0..{MAX_STATES - 1}")
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
        if variable < 0 or not 0 <= state < MAX_STATES:
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


def _checked(layout: Layout, theta: ArrayLike, log_constant: float) -> Floats:
    logs = check_theta(theta, layout)
    bad = (np.abs(logs) > _LARGEST_LOG) & ~np.isneginf(logs)
    if bad.any():
        k = int(np.argmax(bad))
        raise ModelError(
            f"theta[{k}] is {logs[k]}: a log-potential must be minus infinity or lie within "
            f"+-{_LARGEST_LOG:g}"
        )
    if not (abs(log_constant) <= _LARGEST_LOG or log_constant == -math.inf):
        raise ModelError(f"log_constant is {log_constant}, not the log of a finite constant")
    return logs


def _constant_of(logs: Floats) -> float:
    """Return the largest entry of a factor outside the safe range, by which it is divided."""
    largest, smallest = float(logs.max()), float(np.where(np.isneginf(logs), 0.0, logs).min())
    unsafe = largest > _SAFE_LOG or smallest < -_SAFE_LOG
    return largest if unsafe and largest != -math.inf else 0.0


def _decimal(log: float, value: float) -> str:
    if abs(log) <= _SAFE_LOG or log == -math.inf:
        return repr(value)
    exponent = math.floor(log / math.log(10))
    # math.log(10) is off by 2e-16: removing all decades in one product makes an error that the
    # reader, which multiplies by the same constant, reverses.
    return f"{math.exp(log - exponent * math.log(10))!r}e{exponent}"


def _fills_with_samples(file: NumberFile, samples: int) -> bool:
    place = 1
    for _ in range(min(samples, len(file))):
        if place >= len(file) or not 0 <= file.values[place] <= len(file):
            return False
        place += 1 + 2 * int(file.values[place])
    return place == len(file)
