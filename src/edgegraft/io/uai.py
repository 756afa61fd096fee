"""UAI model files, so that the competitions' problems and other programs' models can be read.

A file names the states of ``n`` variables, the scopes of ``m`` factors, then the factors' tables:

    MARKOV
    n
    s_0 ... s_{n-1}
    m
    k v_1 ... v_k               (m scopes; variables count from 0)
    size f(0,..,0) f(0,..,1) ...  (m tables, the last variable of the scope runs fastest)

and means ``p(x) = (1/Z) prod_k f_k(x)``. With at most two variables in each factor this is

    log p(x) = c + sum_i u_i(x_i) + sum_{i<j} w_ij(x_i, x_j) - log Z

Factors over the same variables are multiplied, that is, summed here; a table written for
``(j, i)`` is transposed; factors over no variable make the constant ``c``; zero becomes minus
infinity. A ``BAYES`` file has the same shape, and a conditional probability table is a factor
like any other, so it is read as well.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.pairs import pairs_of_ids
from edgegraft.io.uai_text import MAX_STATES, NumberFile, read_numbers

__all__ = ["PairwiseFile", "read_uai"]

# States of variables that no factor mentions cost memory that the file does not pay for.
_MAX_UNMENTIONED = 1 << 24
_BEYOND_DOUBLE = re.compile(rb"[eE][+-]?\d{3}")
_MAX_EXPONENT_DIGITS = 18


@dataclass(frozen=True, eq=False)
class PairwiseFile:
    """The content of a pairwise model file.

    Parameters
    ----------
    layout : Layout
        The variables' states and the edges, in the order in which the file first names them.
    theta : array of float, shape (layout.n_parameters,)
        Natural logs of the potentials; minus infinity where an entry is zero.
    log_constant : float
        Natural log of the product of the factors over no variable. It is part of the file's
        partition function, though not of its distribution.

    Examples
    --------
    >>> model = PairwiseFile(Layout([2, 2], [(0, 1)]), np.zeros(8))
    >>> model.layout.n_edges, model.log_constant
    (1, 0.0)
    """

    layout: Layout
    theta: NDArray[np.float64]
    log_constant: float = 0.0


class _Factors(NamedTuple):
    """Scopes and tables, one row for each factor; absent variables are -1."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]


def read_uai(path: str | os.PathLike[str]) -> PairwiseFile:
    """Read a pairwise model in the UAI format.

    Parameters
    ----------
    path : path-like
        The file, plain or gzip (told by its content).

    Returns
    -------
    PairwiseFile
        Layout, flat log-potentials and the log of the constant factors.

    Raises
    ------
    FileFormatError
        The file is malformed, or has a factor over three or more variables. The message names
        the line and the token.

    Notes
    -----
    Time is linear in the size of the file. Entries outside the range of a double (``1e-400``)
    are read for what they are, since only their logs are kept.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.uai")
    ...     _ = path.write_text("MARKOV 2  2 2  2  1 0  2 1 0   2  1 3   4  1 0  2 .5")
    ...     model = read_uai(path)
    >>> model.layout.edges
    array([[0, 1]])
    >>> np.exp(model.layout.node(model.theta, 0))
    array([1., 3.])
    >>> np.exp(model.layout.edge(model.theta, 0))  # was written for (1, 0)
    array([[1. , 2. ],
           [0. , 0.5]])
    """
    file = read_numbers(path, ("MARKOV", "BAYES"))
    n = file.integer(0, "the number of variables", 0, len(file))
    states = file.integers(1, n, "the number of states of variable {}", 1, MAX_STATES)
    factors = _read_factors(file, states)
    _refuse_unmentioned(file, states, factors)
    return _assemble(states, factors, _log_entries(file, factors))


def _read_factors(file: NumberFile, states: NDArray[np.int64]) -> _Factors:
    place = 1 + len(states)
    m = file.integer(place, "the number of factors", 0, len(file))
    first, second, end = _read_scopes(file, place + 1, m, len(states))
    known = np.append(states, 1)  # index -1, an absent variable, has one state
    size = known[first] * known[second]
    start = end + 1 + np.concatenate(([0], np.cumsum(size + 1)))
    _check_sizes(file, first, second, start, size)
    return _Factors(first, second, start[:-1], size)


def _read_scopes(
    file: NumberFile, place: int, m: int, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    first, second = np.full(m, -1, np.int64), np.full(m, -1, np.int64)
    columns = (first, second)
    # No accepted scope is longer than three tokens; a list is faster to walk than an array.
    numbers = file.values[place : place + 3 * m].tolist()
    at = 0
    for k in range(m):
        arity = int(numbers[at]) if at < len(numbers) and numbers[at] in (0, 1, 2) else -1
        scope = numbers[at + 1 : at + 1 + arity]
        if len(scope) != arity:  # too short, too long, or no count at all
            raise _bad_scope(file, place + at, k, n)
        for column, variable in zip(columns, scope, strict=False):
            if not (0 <= variable < n and variable == int(variable)):
                raise _bad_scope(file, place + at, k, n)
            column[k] = variable
        at += 1 + arity
    _refuse_repeated(file, place, first, second)
    return first, second, place + at


def _bad_scope(file: NumberFile, place: int, factor: int, n: int) -> Exception:
    """Say what is wrong with the scope at `place`, which is known to be refused."""
    name = f"factor {factor}"
    arity = file.integer(place, f"the number of variables of {name}", 0, n)
    variables = file.integers(place + 1, arity, f"variable {{}} of the scope of {name}", 0, n - 1)
    listed = ", ".join(map(str, variables[:10])) + (", ..." if arity > 10 else "")
    return file.error(
        place,
        f"{name} joins the {arity} variables {listed}; a pairwise model has factors over at "
        "most two",
    )


def _refuse_repeated(
    file: NumberFile, place: int, first: NDArray[np.int64], second: NDArray[np.int64]
) -> None:
    repeated = (first == second) & (second >= 0)
    if repeated.any():
        k = int(np.argmax(repeated))
        tokens = 1 + (first >= 0) + (second >= 0)
        last = place + int(tokens[: k + 1].sum()) - 1
        raise file.error(last, f"the scope of factor {k} names variable {second[k]} twice")


def _check_sizes(
    file: NumberFile,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
) -> None:
    """Refuse tables whose stated size is wrong, too few entries, and too many."""
    present = int(np.searchsorted(start[:-1] - 1, len(file)))
    wrong = file.values[start[:present] - 1] != size[:present]
    if wrong.any():
        k = int(np.argmax(wrong))
        hint = f", or the table of factor {k - 1} has too few or too many entries" if k else ""
        raise file.error(
            int(start[k]) - 1,
            f"the table of factor {k} over {_scope(first[k], second[k])} must be announced by its "
            f"size {size[k]}{hint}",
        )
    end = int(start[-1]) - 1
    if end > len(file):
        k = max(int(np.searchsorted(start, len(file), side="right")) - 1, 0)
        raise file.truncated(
            f"the {size[k]} entries of factor {k} over {_scope(first[k], second[k])} are complete"
        )
    file.expect_end(end)


def _scope(first: int, second: int) -> str:
    present = [str(variable) for variable in (first, second) if variable >= 0]
    return f"({', '.join(present)})"


def _refuse_unmentioned(file: NumberFile, states: NDArray[np.int64], factors: _Factors) -> None:
    mentioned = np.zeros(len(states) + 1, bool)
    mentioned[factors.first] = mentioned[factors.second] = True
    unpaid = int(states[~mentioned[:-1]].sum())
    if unpaid > _MAX_UNMENTIONED:
        i = int(np.argmin(mentioned[:-1]))
        raise file.error(
            1 + i,
            f"variable {i} and others that no factor mentions have {unpaid} states together, more "
            f"than the {_MAX_UNMENTIONED} that are allowed for",
        )


def _log_entries(file: NumberFile, factors: _Factors) -> NDArray[np.float64]:
    """Return the logs of the tables' entries, in the order of the file."""
    position = _spread(factors.start, factors.size)
    entries = file.values[position]
    if (entries < 0).any():
        bad = int(position[np.argmax(entries < 0)])
        raise file.error(bad, "an entry of a factor must not be negative")
    with np.errstate(divide="ignore"):
        logs = np.log(entries)
    extreme = np.flatnonzero((entries < np.finfo(np.float64).tiny) | np.isinf(entries))
    if len(extreme) and _BEYOND_DOUBLE.search(file.text, file.start):
        tokens = file.tokens()
        logs[extreme] = [_log_of_decimal(tokens[position[k]]) for k in extreme]
    if np.isposinf(logs).any():
        bad = int(position[np.argmax(np.isposinf(logs))])
        raise file.error(bad, "an entry of a factor is too large")
    return logs


def _log_of_decimal(token: bytes) -> float:
    """Return the natural log of a number that a double cannot hold, or plus infinity."""
    mantissa, _, exponent = token.lower().partition(b"e")
    value = float(mantissa)
    if value == 0:
        return -math.inf
    if len(exponent.lstrip(b"+-0")) > _MAX_EXPONENT_DIGITS or math.isinf(value):
        return -math.inf if exponent.startswith(b"-") else math.inf
    return math.log(value) + int(exponent or 0) * math.log(10)


def _assemble(
    states: NDArray[np.int64], factors: _Factors, logs: NDArray[np.float64]
) -> PairwiseFile:
    """Add every table into its place of the flat vector."""
    first, second = factors.first, factors.second
    pair = second >= 0
    low, high = np.minimum(first, second)[pair], np.maximum(first, second)[pair]
    keys, seen, edge = np.unique(low * len(states) + high, return_index=True, return_inverse=True)
    order = np.argsort(seen)
    edges = pairs_of_ids(keys[order], len(states))
    layout = Layout(states, edges)

    target = np.full(len(first), layout.n_parameters)  # one more cell for the constants
    target[first >= 0] = layout.node_offset[first[first >= 0]]
    target[pair] = layout.edge_offset[np.argsort(order)[edge]]
    within = _within_table(states, factors)
    cell = np.repeat(target, factors.size) + within
    sums = np.bincount(cell, weights=logs, minlength=layout.n_parameters + 1)
    theta = sums[:-1].astype(np.float64)
    theta.flags.writeable = False
    return PairwiseFile(layout, theta, float(sums[-1]))


def _within_table(states: NDArray[np.int64], factors: _Factors) -> NDArray[np.int64]:
    """Return each entry's place in its table once the table is written for ``i < j``."""
    within = _spread(np.zeros_like(factors.size), factors.size)
    swapped = np.repeat((factors.second >= 0) & (factors.first > factors.second), factors.size)
    if swapped.any():
        rows = np.repeat(states[factors.first], factors.size)[swapped]
        columns = np.repeat(states[factors.second], factors.size)[swapped]
        across, down = np.divmod(within[swapped], columns)
        within[swapped] = down * rows + across
    return within


def _spread(start: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``start[0], start[0] + 1, ...`` of each run, one run after the other."""
    before = np.cumsum(size) - size
    runs: NDArray[np.int64] = np.repeat(start - before, size)
    return runs + np.arange(len(runs), dtype=np.int64)
