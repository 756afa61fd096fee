"""Brute force over all states of a small model, in plain NumPy: the reference of its tests."""

from __future__ import annotations

from itertools import product

import numpy as np


class Brute:
    """All states of a model with their probabilities."""

    def __init__(self, model, given=None):
        schema = model.schema
        codes = np.array(list(product(*(range(s) for s in schema.n_states))), np.int64)
        for name, label in (given or {}).items():
            code = schema[name].categories.index(label)
            codes = codes[codes[:, schema.index(name)] == code]
        self.codes = codes
        self.scores = np.array([self._score(model, row) for row in codes])
        top = self.scores.max()
        self.log_z = top + np.log(np.exp(self.scores - top).sum())
        self.p = np.exp(self.scores - self.log_z)
        self.states = schema.n_states

    @staticmethod
    def _score(model, row):
        layout, theta = model.layout, model.theta
        total = sum(layout.node(theta, i)[a] for i, a in enumerate(row))
        for k, (i, j) in enumerate(layout.edges):
            total += layout.edge(theta, k)[row[i], row[j]]
        return total

    def marginal(self, i):
        return np.bincount(self.codes[:, i], self.p, self.states[i])

    def pair(self, i, j):
        cells = self.codes[:, i] * self.states[j] + self.codes[:, j]
        return np.bincount(cells, self.p, self.states[i] * self.states[j]).reshape(
            self.states[i], self.states[j]
        )
