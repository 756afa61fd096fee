"""The regressions of all variables, each on the others, and their joint model.

Regression ``i`` has a vector of intercepts and, for every other variable ``j``, a block with one
row per state of ``i`` and one column per state of ``j``. In zero-sum gauge both directions of a
pair estimate the same table; their mean gives one joint model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.special import log_expit, logsumexp

from benchmarks.rivals.outcome import (
    Codes,
    Floats,
    Outcome,
    Potentials,
    block_norms,
    pairs_of,
    zero_sum,
)

GAMMA = 0.5
ROWS_AT_ONCE = 1000


class Regressions:
    """Intercepts and blocks of all regressions.

    Parameters
    ----------
    states : array of int
    softmax : bool
        Whether scores come from one multinomial regression per variable. Otherwise each state has
        its own logistic regression, and probabilities are normalised.
    """

    def __init__(self, states: Codes, softmax: bool) -> None:
        self.states = states
        self.softmax = (states == 2) | softmax  # equivalent for two states
        self.start = np.concatenate(([0], np.cumsum(states))).astype(np.int64)
        self.bias = np.zeros(self.start[-1])
        self.weights = np.zeros((self.start[-1], self.start[-1]))

    def put(self, i: int, bias: Floats, weights: Floats) -> None:
        """Store the regression of variable `i` on the columns of all others."""
        low, high = self.start[i], self.start[i + 1]
        self.bias[low:high] = bias
        self.weights[low:high, :low] = weights[:, :low]
        self.weights[low:high, high:] = weights[:, low:]

    def outcome(
        self, joint: bool, rule: Callable[..., Floats] | None = None, variant: str = ""
    ) -> Outcome:
        """Return ranking and cut by a rule for the two directions, or a ranking by their mean."""
        directed = block_norms(zero_sum(self.weights, self.start), self.start)
        if rule is None:
            strengths, edges = 0.5 * (directed + directed.T), None
        else:
            strengths = rule(directed, directed.T)
            edges = pairs_of(strengths > 0.0)
        model = self.joint(strengths > 0.0) if joint else None
        return Outcome(strengths, edges, model, self.log_conditionals, variant)

    def joint(self, adjacent: np.ndarray) -> Potentials:
        """Return the model of the mean of both directions, for the kept pairs."""
        tables, nodes = {}, []
        flat = zero_sum(self.weights, self.start)
        # The means subtracted from the blocks belong to the node vectors.
        rest = self.bias + mean_of_blocks(self.weights, self.start)
        for i, (low, high) in enumerate(pairwise(self.start.tolist())):
            nodes.append(rest[low:high] - rest[low:high].mean())
            for j in np.flatnonzero(adjacent[i, i + 1 :]) + i + 1:
                there = slice(self.start[j], self.start[j + 1])
                tables[i, int(j)] = 0.5 * (flat[low:high, there] + flat[there, low:high].T)
        return Potentials(nodes, tables)

    def log_conditionals(self, codes: Codes) -> Floats:
        """Return ``log p(x_i | rest)`` of every cell, by the regression of its column."""
        return np.concatenate(
            [
                self._conditionals(codes[first : first + ROWS_AT_ONCE])
                for first in range(0, len(codes), ROWS_AT_ONCE)
            ]
        )

    def _conditionals(self, codes: Codes) -> Floats:
        scores = one_hot(codes, self.states)[0] @ self.weights.T + self.bias
        out = np.empty(codes.shape)
        for i, (low, high) in enumerate(pairwise(self.start.tolist())):
            logs = scores[:, low:high] if self.softmax[i] else log_expit(scores[:, low:high])
            logs = logs - logsumexp(logs, axis=1, keepdims=True)
            out[:, i] = np.take_along_axis(logs, codes[:, i : i + 1].astype(np.int64), 1)[:, 0]
        return out


def one_hot(codes: Codes, states: Codes) -> tuple[sparse.csc_matrix, np.ndarray]:
    """Return the one-hot columns of all variables, and the start of each variable."""
    start = np.concatenate(([0], np.cumsum(states))).astype(np.int64)
    columns = (codes.astype(np.int64) + start[:-1]).ravel()
    rows = np.repeat(np.arange(len(codes)), codes.shape[1])
    shape = (len(codes), int(start[-1]))
    return sparse.csc_matrix((np.ones(len(columns)), (rows, columns)), shape=shape), start


def targets(column: Codes, n_states: int) -> Iterator[np.ndarray]:
    """Yield the target of each regression: one for two states, otherwise one per state."""
    for state in range(n_states) if n_states > 2 else (1,):
        yield column == state


def mean_of_blocks(weights: Floats, start: np.ndarray) -> Floats:
    """Return, for each row, the sum over blocks of the mean of the block's columns."""
    sums = np.add.reduceat(weights, start[:-1], axis=1)
    return (sums / np.diff(start)).sum(axis=1)


def log_scores(scores: Floats, y: np.ndarray) -> Floats:
    """Return the log-probability of the target of a logistic regression."""
    return log_expit(np.where(y, scores, -scores))


def extended_bic(scores: Floats, y: np.ndarray, n_weights: int, n_columns: int) -> float:
    """Return the extended BIC of one regression (Chen and Chen 2008)."""
    cost = np.log(len(y)) + 2.0 * GAMMA * np.log(n_columns)
    return -2.0 * float(log_scores(scores, y).sum()) + n_weights * cost
