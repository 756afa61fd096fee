"""Distinct rows: what the conditionals of a table's columns need of its rows, each value once.

Rows enter a conditional through the states of its column and of its neighbours alone, so those are
counted: a configuration is a mixed-radix code, which has a cell of its own while codes are few and
a spread one beyond. Weights, sampling weights and drawn cells are weights of configurations;
clusters need to know which row has which configuration.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.conditional.coordinates import Coordinates, coordinates_of, state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import lazy
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.kernels.conditionals.distinct import number_codes
from edgegraft.table import PackedTable

_CODES_PER_ROW = 4  # codes that have a cell each, for each row: spreading them costs about as much
_MAX_CODE = 1 << 62


class Configurations(NamedTuple):
    """The distinct states of some columns, with the weights of the rows that have them."""

    codes: NDArray[np.int64]  # (configurations, columns) of the neighbours
    counts: Floats  # (configurations, states of the target)
    variances: Floats  # the same for squared weights, or `counts` if weights are numbers of rows
    rows: Integers | None  # the rows that were counted, if not all
    place: Integers | None  # (rows,) the configuration of each counted row, unless forgotten


class ConditionalRows:
    """The rows of a table, from which the conditional of any column is described.

    Parameters
    ----------
    table : PackedTable
    weights : array of float, shape (n_rows,), optional
    features : Features, optional
        Of ordered columns; all columns are nominal by default.
    sampling : bool
        Whether the weights are those of a sample, not numbers of equal rows.
    survey : SurveyDesign, optional
        Rows that were drawn together.
    drawn : array of bool, shape (n_rows, n), optional
        Cells that were missing and have been drawn from a model. Both ends of a tested edge must
        be known; other neighbours may be drawn.
    n_linear : int, default 1
        First scores of ordered columns that are tested before the others.
    """

    def __init__(
        self,
        table: PackedTable,
        weights: ArrayLike | None = None,
        features: Features | None = None,
        *,
        sampling: bool = False,
        survey: SurveyDesign | None = None,
        drawn: Mask | None = None,
        n_linear: int = 1,
    ) -> None:
        n, self.states = table.n_rows, table.schema.n_states
        self.n_rows = n
        self.weights = None if weights is None else check_weights(weights, n)
        self.sampling, self.survey = sampling and weights is not None, survey
        self.codes: NDArray[Any] = table.cells[:, :n]
        self.drawn = None if drawn is None else np.ascontiguousarray(drawn.T)
        self.incomplete = bool(table.n_missing.any())
        shown = np.ones(n) if self.weights is None else self.weights
        margins = state_weights(table, shown)
        if self.drawn is not None:
            margins = [
                np.bincount(own[~gone], shown[~gone], minlength=s).astype(np.float64)
                for own, gone, s in zip(self.codes, self.drawn, self.states, strict=True)
            ]
        self.weight = float(shown.sum())
        self.columns: list[Coordinates] = [
            coordinates_of(features, i, margin, n_linear) for i, margin in enumerate(margins)
        ]
        self.sizes = np.array([column.own.shape[1] for column in self.columns], np.int64)
        self.tested = np.array([column.tested.shape[1] for column in self.columns], np.int64)
        self.free = np.array([column.free.shape[1] for column in self.columns], np.int64)

    @lazy
    def turns(self) -> list[Floats]:
        """Inverses of the coordinates of each column against its most common state."""
        return [np.linalg.pinv(c.own - c.own[c.margin.argmax()]) for c in self.columns]

    @property
    def pairwise(self) -> bool:
        """Whether the rows that count depend on the pair: cells of the others are drawn."""
        return self.drawn is not None

    @property
    def independent(self) -> bool:
        """Whether weights are numbers of rows that were drawn independently."""
        return self.survey is None and not self.sampling

    def take(self, chosen: Integers) -> ConditionalRows:
        """Return some of the rows, in the same coordinates; they have no clusters."""
        part = copy(self)
        part.n_rows, part.codes, part.survey = len(chosen), self.codes[:, chosen], None
        part.weights = None if self.weights is None else self.weights[chosen]
        part.drawn = None if self.drawn is None else self.drawn[:, chosen]
        part.weight = float(len(chosen) if part.weights is None else part.weights.sum())
        return part

    def count(
        self, target: int, others: list[int], known: list[int] | None = None
    ) -> Configurations:
        """Return the configurations of some columns beside a target's states.

        Rows count in which all of them are known; of drawn cells, those of `known`.
        """
        chosen = self._usable([target, *others] if self.drawn is None else known or [target])
        rows = slice(None) if chosen is None else chosen
        n = self.n_rows if chosen is None else len(chosen)
        columns = [self.codes[j][rows] for j in others]
        place, first = _number(*self._encode(columns, self.states[others], n))
        size, s = len(first), int(self.states[target])
        shown = np.empty((size, len(others)), np.int64)
        for k, column in enumerate(columns):
            shown[:, k] = column[first]
        both = place * s + self.codes[target][rows]
        weights = None if self.weights is None else self.weights[rows]
        counts = np.bincount(both, weights, minlength=size * s).reshape(size, s).astype(float)
        variances = counts
        if self.sampling and weights is not None:
            variances = np.bincount(both, weights**2, minlength=size * s).reshape(size, s)
        return Configurations(shown, counts, variances, chosen, place)

    def _usable(self, columns: list[int]) -> Integers | None:
        """Return the rows in which columns are known, or None for all."""
        if self.drawn is not None:
            return np.flatnonzero(~self.drawn[columns].any(axis=0))
        if not self.incomplete:
            return None
        known = np.ones(self.n_rows, bool)
        for j in columns:
            known &= self.codes[j] < self.states[j]
        return np.flatnonzero(known)

    @staticmethod
    def _encode(columns: list[NDArray[Any]], states: Integers, n: int) -> tuple[Integers, int]:
        """Return one number per row for the states of some columns, and a bound of it."""
        code, size = np.zeros(n, np.int64), 1
        for column, s in zip(columns, states.tolist(), strict=True):
            if size > _MAX_CODE // s:
                code, first = _number(code, size)
                size = len(first)
            code *= s
            code += column
            size *= s
        return code, size


def _number(code: Integers, size: int) -> tuple[Integers, Integers]:
    """Return the number of each row's code, below a size, and a row that has each of them."""
    n = len(code)
    if size > _CODES_PER_ROW * n:
        size = 1 << (2 * n).bit_length()
    place, first = np.empty(n, np.int64), np.empty(n, np.int64)
    count = number_codes(code, np.full(size, -1, np.int32), place, first)
    return place, first[:count].copy()
