"""Readers of UAI model files, from the competitions and from other programs.

A file lists the numbers of states of ``n`` variables, the scopes of ``m`` factors, and their
tables:

    MARKOV
    n
    s_0 ... s_{n-1}
    m
    k v_1 ... v_k               (m scopes; variables count from 0)
    size f(0,..,0) f(0,..,1) ...  (m tables, the last variable of the scope runs fastest)

It represents ``p(x) = (1/Z) prod_k f_k(x)``. With at most two variables per factor, this is

    log p(x) = c + sum_i u_i(x_i) + sum_{i<j} w_ij(x_i, x_j) - log Z

Factors over the same variables are multiplied, so their logarithms are added; a table for ``(j,
i)`` is transposed; factors without variables form the constant ``c``; zero becomes minus infinity.
A ``BAYES`` file has the same form, and a conditional probability table is a factor like any other,
so it is read as well.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pairs_of_ids, stretches
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ModelError
from edgegraft.formats.uai_numbers import NumberFile, read_numbers
from edgegraft.model import PairwiseMRF
from edgegraft.table.schema import MAX_STATES, Schema


@dataclass(frozen=True)
class _Limit:
    """What a file may ask for."""

    #: States of variables without factors, whose memory the file does not pay for.
    unmentioned: int = 1 << 24
    exponent_digits: int = 18  # digits of an exponent that fits in 64 bits


_BEYOND_DOUBLE = re.compile(rb"[eE][+-]?\d{3}")


@dataclass(frozen=True, eq=False)
class PairwiseFile:
    """The content of a pairwise model file.

    Attributes
    ----------
    layout : Layout
        The variables' states and the edges, in the order of their first appearance in the file.
    theta : array of float, shape (layout.n_parameters,)
        Natural logs of the potentials; minus infinity for an entry of zero.
    log_constant : float
        Natural log of the product of the factors without variables. It is part of the partition
        function of the file, but not of its distribution.
    """

    layout: Layout
    theta: Floats
    log_constant: float = 0.0


class _Factors(NamedTuple):
    """Scopes and tables, one row per factor; absent variables are -1."""

    first: Integers
    second: Integers
    start: Integers
    size: Integers


def read_uai(path: str | os.PathLike[str]) -> PairwiseFile:
    """Read a pairwise model in the UAI format, plain or gzip (recognised by its content).

    Entries outside the range of a double (``1e-400``) are read exactly, since only their logs are
    kept. A malformed file, or one with a factor over three or more variables, is a FileFormatError
    that names the line and the token.

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


def model_from_uai(path: str | os.PathLike[str]) -> PairwiseMRF:
    """Return the model of a UAI file.

    A UAI file contains no names: variables are called ``x0``, ``x1`` and so on, and their
    categories are 0, 1, ... Constant factors are added to the first variable's log-potentials, so
    that the model's log Z equals the file's.
    """
    file = read_uai(path)
    if file.layout.n_variables == 0:
        raise ModelError(f"'{path}' has no variables: there is nothing to model")
    theta = file.theta.copy()
    file.layout.node(theta, 0)[:] += file.log_constant
    return PairwiseMRF(Schema.from_states(file.layout.states), file.layout.edges, theta)


def _read_factors(file: NumberFile, states: Integers) -> _Factors:
    place = 1 + len(states)
    m = file.integer(place, "the number of factors", 0, len(file))
    first, second, end = _read_scopes(file, place + 1, m, len(states))
    known = np.append(states, 1)  # index -1, an absent variable, has one state
    size = known[first] * known[second]
    start = end + 1 + np.concatenate(([0], np.cumsum(size + 1)))
    factors = _Factors(first, second, start[:-1], size)
    _check_sizes(file, factors, int(start[-1]) - 1)
    return factors


def _read_scopes(file: NumberFile, place: int, m: int, n: int) -> tuple[Integers, Integers, int]:
    """Return the first and second variable of each factor, and the end of the scopes."""
    # Accepted scopes have at most three tokens; iterating over a list is faster than over an array.
    numbers = file.values[place : place + 3 * m].tolist()
    scopes, at = [], 0
    for k in range(m):
        arity = int(numbers[at]) if at < len(numbers) and numbers[at] in (0, 1, 2) else -1
        scope = numbers[at + 1 : at + 1 + arity]
        if len(scope) != arity:  # too short, too long, or not a count at all
            raise _bad_scope(file, place + at, k, n)
        for variable in scope:
            if not (0 <= variable < n and variable == int(variable)):
                raise _bad_scope(file, place + at, k, n)
        if arity == 2 and scope[0] == scope[1]:
            problem = f"the scope of factor {k} names variable {int(scope[1])} twice"
            raise file.error(place + at + 2, problem)
        scopes += scope + [-1] * (2 - arity)
        at += 1 + arity
    first, second = np.array(scopes, np.int64).reshape(m, 2).T
    return first, second, place + at


def _bad_scope(file: NumberFile, place: int, factor: int, n: int) -> Exception:
    name = f"factor {factor}"
    arity = file.integer(place, f"the number of variables of {name}", 0, n)
    variables = file.integers(place + 1, arity, f"variable {{}} of the scope of {name}", 0, n - 1)
    listed = ", ".join(map(str, variables[:10])) + (", ..." if arity > 10 else "")
    return file.error(
        place,
        f"{name} joins the {arity} variables {listed}; a pairwise model has factors over at "
        "most two",
    )


def _check_sizes(file: NumberFile, factors: _Factors, end: int) -> None:
    """Refuse tables with a wrong size, too few entries or too many."""
    start, size = factors.start, factors.size

    def table(k: int) -> str:
        scope = [str(v) for v in (factors.first[k], factors.second[k]) if v >= 0]
        return f"factor {k} over ({', '.join(scope)})"

    present = int(np.searchsorted(start - 1, len(file)))
    wrong = file.values[start[:present] - 1] != size[:present]
    if wrong.any():
        k = int(np.argmax(wrong))
        hint = f", or the table of factor {k - 1} has too few or too many entries" if k else ""
        problem = f"the table of {table(k)} must be announced by its size {size[k]}{hint}"
        raise file.error(int(start[k]) - 1, problem)
    if end > len(file):
        k = max(int(np.searchsorted(np.append(start, end + 1), len(file), side="right")) - 1, 0)
        raise file.truncated(f"the {size[k]} entries of {table(k)} are complete")
    file.expect_end(end)


def _refuse_unmentioned(file: NumberFile, states: Integers, factors: _Factors) -> None:
    mentioned = np.zeros(len(states) + 1, bool)
    mentioned[factors.first] = mentioned[factors.second] = True
    unpaid = int(states[~mentioned[:-1]].sum())
    if unpaid > _Limit.unmentioned:
        i = int(np.argmin(mentioned[:-1]))
        raise file.error(
            1 + i,
            f"variable {i} and others that no factor mentions have {unpaid} states together, more "
            f"than the {_Limit.unmentioned} that are allowed for",
        )


def _log_entries(file: NumberFile, factors: _Factors) -> Floats:
    """Return the logs of the tables' entries, in the order of the file."""
    position = stretches(factors.start, factors.size)
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
    """Return the natural log of a number outside the range of a double, or plus infinity."""
    mantissa, _, exponent = token.lower().partition(b"e")
    value = float(mantissa)
    if value == 0:
        return -math.inf
    if len(exponent.lstrip(b"+-0")) > _Limit.exponent_digits or math.isinf(value):
        return -math.inf if exponent.startswith(b"-") else math.inf
    return math.log(value) + int(exponent or 0) * math.log(10)


def _assemble(states: Integers, factors: _Factors, logs: Floats) -> PairwiseFile:
    """Add every table at its position in the flat vector."""
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


def _within_table(states: Integers, factors: _Factors) -> Integers:
    """Return the position of each entry in its table, with the table oriented as ``i < j``."""
    within = stretches(np.zeros_like(factors.size), factors.size)
    swapped = np.repeat((factors.second >= 0) & (factors.first > factors.second), factors.size)
    if swapped.any():
        rows = np.repeat(states[factors.first], factors.size)[swapped]
        columns = np.repeat(states[factors.second], factors.size)[swapped]
        across, down = np.divmod(within[swapped], columns)
        within[swapped] = down * rows + across
    return within
