"""The result of a tool: a ranking of pairs, its own cut, a model, conditional probabilities.

Neither this module nor the tools import edgegraft, so that its memory is not counted as theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer]
Floats = NDArray[np.float64]


class Potentials(NamedTuple):
    """Log-potentials of a joint model: one vector per variable, one table per edge (i < j)."""

    nodes: list[Floats]
    tables: dict[tuple[int, int], Floats]


class Outcome(NamedTuple):
    """The result of one fit.

    Attributes
    ----------
    strengths : array, shape (n, n)
        Symmetric; zero for pairs that are not ranked.
    edges : array of int, shape (m, 2), or None
        The tool's own cut, if it has one.
    model : Potentials or None
        One joint pairwise model.
    conditionals : callable or None
        Returns ``log p(x_i | rest)`` of every cell of an array of codes, if the tool predicts each
        variable by a separate regression and the regressions do not form a joint model.
    variant : str
        Distinguishes several outcomes of one fit.
    """

    strengths: Floats
    edges: NDArray[np.int64] | None = None
    model: Potentials | None = None
    conditionals: Callable[[Codes], Floats] | None = None
    variant: str = ""


class Fit(Protocol):
    """The common signature of all tools."""

    def __call__(self, codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
        """Fit rows of states, counted from 0; `states` has the number of states per column."""


def pairs_of(adjacent: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the pairs (i, j), i < j, that a symmetric matrix marks."""
    return np.argwhere(np.triu(adjacent, 1))


def contingency(codes: Codes, states: Codes) -> tuple[Floats, NDArray[np.int64]]:
    """Return the counts of all pairs of states, by one product, and the start of each column."""
    start = np.concatenate(([0], np.cumsum(states))).astype(np.int64)
    dense = np.zeros((len(codes), start[-1]), np.float32)
    np.put_along_axis(dense, codes.astype(np.int64) + start[:-1], 1.0, axis=1)
    return (dense.T @ dense).astype(np.float64), start


def zero_sum(matrix: Floats, start: NDArray[np.int64]) -> Floats:
    """Return the matrix with row and column means subtracted from each block."""
    widths = np.diff(start)
    for _ in range(2):
        means = np.add.reduceat(matrix, start[:-1], axis=0) / widths[:, None]
        matrix = (matrix - np.repeat(means, widths, axis=0)).T
    return matrix


def block_norms(matrix: Floats, start: NDArray[np.int64]) -> Floats:
    """Return the Frobenius norm of every block, zero on the diagonal."""
    squares = np.add.reduceat(matrix**2, start[:-1], axis=0)
    norms = np.sqrt(np.add.reduceat(squares, start[:-1], axis=1))
    np.fill_diagonal(norms, 0.0)
    return norms


def tree_potentials(
    parents: list[int | None], tables: list[Floats], codes: Codes, states: Codes
) -> Outcome:
    """Return the outcome of a directed tree, its edges ranked by their mutual information.

    Some tools assign a probability of zero to unseen states. It is raised to that of half a row;
    otherwise a single held-out row could make the score infinite.

    Parameters
    ----------
    parents : list
        The parent of each variable, None at a root.
    tables : list of array
        ``p(child | parent)``, one row per state of the parent; ``p(child)`` at a root.
    """
    nodes = [np.zeros(s) for s in states.tolist()]
    joint: dict[tuple[int, int], Floats] = {}
    strengths = np.zeros((len(states), len(states)))
    for child, (parent, table) in enumerate(zip(parents, tables, strict=True)):
        logs = np.log(np.maximum(table, 0.5 / len(codes)))
        if parent is None:
            nodes[child] += logs.ravel()
            continue
        ordered = logs if parent < child else logs.T
        joint[min(parent, child), max(parent, child)] = ordered
        shared = mutual_information_of(codes[:, parent], codes[:, child], states[[parent, child]])
        strengths[parent, child] = strengths[child, parent] = shared
    edges = np.array(sorted(joint), np.int64).reshape(-1, 2)
    return Outcome(strengths, edges, Potentials(nodes, joint))


def mutual_information_of(first: Codes, second: Codes, shape: Codes) -> float:
    """Return the mutual information of two columns, in nats."""
    cell = first.astype(np.int64) * int(shape[1]) + second
    p = np.bincount(cell, minlength=int(shape.prod())).reshape(shape) / len(cell)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = p * np.log(p / (p.sum(1, keepdims=True) * p.sum(0)))
    return float(np.nansum(terms))
