"""Conditionals of tables: softmax regressions on the states of the neighbours.

Logits and design columns are contrasts to the most common states, so that nothing is redundant.
Only rows in which the variable and all its neighbours are known are used: if a neighbour were
omitted, the others would seem to depend on each other. The pseudolikelihood does omit it, so if
cells are missing, the given parameters are first refitted to the rows used. If missing cells were
drawn (:mod:`~edgegraft.learn.completion`), all rows that know the variable are used. States that
do not occur have no parameters.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.device import Device
from edgegraft.device.conditionals import ConditionalsOnDevice, Rules
from edgegraft.errors import ModelError
from edgegraft.kernels.conditionals.effective_scores import (
    Design,
    add_information,
    find_residuals,
    invert_positive,
    lay_out,
    logit_pairs,
    unpack_information,
)
from edgegraft.learn.conditional import (
    MAX_BYTES,
    MAX_MOVE,
    MIN_INFORMATION,
    PULL,
    ROWS_PER_COLUMN,
    Conditional,
    Conditionals,
    Side,
    strength_of,
)
from edgegraft.learn.survey_design import SurveyDesign
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

_FEW_MEETINGS = 20.0  # expected rows below which the normal approximation is doubted
_MAX_SKEWNESS = 0.07  # of the number of meetings of two-state columns: that of 200 expected rows
_HARDLY_ANY = 2.5  # expected rows below which no direction at zero has enough of them
_NEWTON_STEPS = 3
_MARGIN_STEPS, _MARGIN_TOL = 20, 1e-6  # of intercepts refitted by scaling
_SMALL = 400  # parameters up to which our own inverse is faster
_RULES = Rules(_NEWTON_STEPS, PULL, MAX_MOVE, _MARGIN_STEPS, _MARGIN_TOL, MIN_INFORMATION)


class TableConditionals(Conditionals):
    """The rows of a table, with the contrasts that follow from its margins.

    Parameters
    ----------
    table, weights, sampling, survey, max_bytes
        As in :class:`~edgegraft.learn.conditional.Conditionals`.
    device : Device, optional
        Where sums over the rows are computed; on the processor by default.
    drawn : array of bool, shape (n_rows, n), optional
        Cells that were missing and have been drawn from a model.
    """

    alone = True

    def __init__(
        self,
        table: PackedTable,
        weights: ArrayLike | None = None,
        *,
        sampling: bool = False,
        survey: SurveyDesign | None = None,
        max_bytes: int = MAX_BYTES,
        device: Device | None = None,
        drawn: Mask | None = None,
    ) -> None:
        super().__init__(table, weights, sampling=sampling, survey=survey, max_bytes=max_bytes)
        codes, states = self.codes, self.states
        self.completed, counted = drawn is not None, codes
        if drawn is not None:
            self.known = np.ascontiguousarray(~drawn.T)
            counted = np.where(self.known, codes, states[:, None]).astype(codes.dtype)
            counted.flags.writeable = False
        self.reference = np.zeros(len(states), np.int64)  # most common state
        self.kept: list[Integers] = []  # observed states, except the reference
        # Rows with the rarest of the observed states, and with the second most common.
        self._rarest, self._second = np.zeros((2, len(states)))
        counts = weigh_states(counted, self.weights, states)
        for i, shown in enumerate(np.split(counts, np.cumsum(states)[:-1])):
            occurs = shown > 0
            self._rarest[i] = shown[occurs].min(initial=np.inf)
            self.reference[i] = first = shown.argmax()
            occurs[first] = False
            self._second[i] = shown[occurs].max(initial=0.0)
            self.kept.append(np.flatnonzero(occurs))
        self.sizes = np.array([len(kept) for kept in self.kept], np.int64)
        # Of the state of two-state columns; the number of meetings has the product of both.
        share = np.clip(self._second / max(float(self.weights.sum()), 1.0), 0.0, 0.5)
        spread = np.sqrt(np.maximum(share * (1.0 - share), np.finfo(float).tiny))
        self._skewness = (1.0 - 2.0 * share) / (spread * np.sqrt(max(self.weights.sum(), 1.0)))
        if device is not None and survey is None:
            block = TableRows(table, device=device)
            self.elsewhere = ConditionalsOnDevice(block, self.weights, self.variances, _RULES)

    def are_sparse(self, i: int | Integers, j: int | Integers) -> Mask:
        """Return whether rare states of two variables would meet in few rows by chance.

        The number of meetings of two-state columns, which need not be few, is skewed.
        """
        total = self.weights.sum()
        few = self._rarest[i] * self._rarest[j] < _FEW_MEETINGS * total
        skewness = self._skewness[i] * self._skewness[j] * np.sqrt(total)
        return np.asarray(few | (self.are_single(i, j) & (skewness > _MAX_SKEWNESS)))

    def are_few(self, i: int | Integers, j: int | Integers) -> Mask:
        """Return whether no states of two variables but the most common would meet in many rows."""
        meetings = self._second[i] * self._second[j]
        return np.asarray(meetings < _HARDLY_ANY * self.weights.sum())

    def place_of(self, i: int) -> Integers:
        """Return the place of each row's state among those kept, -1 for the reference."""
        return np.asarray(self._own(i)[self.codes[i]])

    def basis(self, i: int, j: int) -> Floats:
        """Return the matrix to coordinates that are orthonormal over the cells of a table."""
        return table_basis(int(self.sizes[i]), int(self.sizes[j]))

    def residuals(self, node: Conditional, first: int, n: int) -> Floats:
        """Return observed minus expected indicators of `n` rows."""
        return self.expect(node, first, n)[0]

    def expect(
        self, node: Conditional, first: int = 0, n: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return the same, and the expected ones; of all rows by default."""
        out, p = np.zeros((2, len(node.weights) if n is None else n, node.shape[1]))
        find_residuals(self.codes, node.weights, node.design, node.coefficients, first, out, p)
        return out, p

    def lay_out(self, node: Conditional, projection: Floats) -> tuple[Floats, None]:
        """Return a projection in tiles."""
        size = projection.shape[1]
        return lay_out(np.ascontiguousarray(projection.reshape(-1, node.shape[1], size))), None

    def weights_of(self, node: Conditional, other: int) -> Floats:
        """Return the coefficients of a neighbour."""
        return node.coefficients[node.columns_of(other)]

    def strength(self, node: Conditional, other: int) -> float:
        """Return the largest entry of an edge's table over observed states, in zero-sum gauge."""
        return float(strength_of(np.pad(self.weights_of(node, other), ((0, 1), (0, 1)))))

    def evidence(self, sides: list[Side]) -> tuple[Floats, Floats, float, list[float]]:
        """Return weights and factors of the rows that know both ends, and the sides' shares.

        A side's information is that of all rows that know its variable.
        """
        if not self.completed:
            return super().evidence(sides)
        both = self.known[sides[0].node.target] & self.known[sides[0].other]
        weights = self.weights * both
        total = float(weights.sum())
        shares = [total / float(side.node.weights.sum()) for side in sides]
        return weights, self.variances * both, total, shares

    def read(self, i: int, layout: Layout, theta: Floats, edges: Integers) -> Conditional:
        """Return a conditional at the parameters of a model, without its information."""
        sources = layout.edges[edges].sum(axis=1) - i
        start = np.cumsum(np.concatenate(([1], self.sizes[sources])))
        coefficients = self._coefficients(i, layout, theta, edges, sources)
        weights = self.weights
        if self.completed:
            weights = weights * self.known[i]
        elif self.incomplete:
            weights = weights * self.known[np.append(sources, i)].all(axis=0)
        design, q = self._design(i, sources, start), coefficients.shape[1]
        return Conditional(design, weights, coefficients[0], coefficients, start, (q, q))

    def inform(self, node: Conditional, base: Conditional | None) -> Conditional:
        """Return a conditional with its information, if there are rows and memory for it."""
        n_columns, q = node.coefficients.shape
        enough = node.weights.sum() >= ROWS_PER_COLUMN * n_columns
        if q == 0 or not enough or 8 * (n_columns * q) ** 2 > self.max_bytes:
            return node
        if self.elsewhere is not None:
            return replace(node, usable=True)
        if self.incomplete:
            node = self._settle(node)
        inverse = None
        if base is not None and base.inverse is not None and not self.known.size:
            inverse = self._extended_inverse(node, base.inverse)
        if inverse is None:
            inverse = self._inverse(node)
        return replace(node, inverse=inverse, usable=True)

    def without(self, node: Conditional, other: int) -> Conditional:
        """Return the conditional with the table of one neighbour at zero, and intercepts refitted.

        The other tables are unchanged.
        """
        found = self._with_margins(self.at_zero(node, other))
        return replace(found, inverse=self._inverse(found))

    def at_zero(self, node: Conditional, other: int) -> Conditional:
        """Return the conditional with the table of one neighbour at zero, and nothing refitted."""
        states, at = self.kept[other], node.columns_of(other)
        shown = np.bincount(self.codes[other], node.weights, minlength=states.max(initial=0) + 1)
        coefficients = node.coefficients.copy()
        coefficients[0] += shown[states] @ coefficients[at] / node.weights.sum()
        coefficients[at] = 0.0
        return replace(node, coefficients=coefficients)

    def _with_margins(self, node: Conditional) -> Conditional:
        """Return a conditional whose intercept gives the states the shares that they have."""
        logits = node.coefficients.copy()
        shown, p = self.expect(node)
        observed, total = node.weights @ (p + shown), node.weights.sum()
        reference, moved = np.maximum(1.0 - p.sum(axis=1, keepdims=True), 0.0), np.zeros(p.shape[1])
        for _ in range(_MARGIN_STEPS):
            scaled = p * np.exp(moved)
            expected = node.weights @ (scaled / (reference + scaled.sum(axis=1, keepdims=True)))
            if np.abs(observed - expected).max(initial=0.0) <= _MARGIN_TOL * total:
                break
            moved += _log_ratio(observed, expected)
            moved -= _log_ratio(total - observed.sum(), total - expected.sum())
        logits[0] += moved
        return replace(node, coefficients=logits)

    def _own(self, i: int) -> Integers:
        own = np.full(self.states[i] + 1, -1, np.int64)
        own[self.kept[i]] = np.arange(self.sizes[i])
        return own

    def _design(self, i: int, sources: Integers, start: Integers) -> Design:
        column = np.full((len(sources), int(self.states[sources].max(initial=1)) + 1), -1, np.int64)
        for k, j in enumerate(sources):
            column[k, self.kept[j]] = start[k] + np.arange(self.sizes[j])
        return Design(i, self._own(i), sources, column)

    def _coefficients(
        self, i: int, layout: Layout, theta: Floats, edges: Integers, sources: Integers
    ) -> Floats:
        """Return the parameters as contrasts: an intercept, then the states of each neighbour."""
        own, first = self.kept[i], self.reference[i]
        node = layout.node(theta, i)
        intercept = node[own] - node[first]
        parts = []
        for k, j in zip(edges, sources, strict=True):
            table = layout.edge(theta, int(k))
            logits = (table if i < j else table.T)[own] - (table if i < j else table.T)[first]
            at_reference = logits[:, self.reference[j]]
            intercept = intercept + at_reference
            parts.append((logits[:, self.kept[j]] - at_reference[:, None]).T)
        return np.ascontiguousarray(np.concatenate((intercept[None], *parts)))

    def _settle(self, given: Conditional) -> Conditional:
        """Return the conditional after Newton steps on its rows, held near the given one.

        Without the ridge, states that never occur together would make parameters diverge.
        """
        node = given
        for _ in range(_NEWTON_STEPS):
            score = self.scores(node) - PULL * (node.coefficients - given.coefficients)
            step = np.clip(self._inverse(node, PULL) @ score.ravel(), -MAX_MOVE, MAX_MOVE)
            node = replace(node, coefficients=node.coefficients + step.reshape(score.shape))
        return node

    def scores(self, node: Conditional) -> Floats:
        """Return the sums over rows of the scores of all parameters, one row per design column."""
        residuals = node.weights[:, None] * self.residuals(node, 0, len(node.weights))
        out = np.zeros(node.coefficients.shape)
        for a, shown in enumerate(residuals.T):
            out[0, a] = shown.sum()
            for k, j in enumerate(node.design.sources):
                columns = node.design.column[k]
                sums = np.bincount(self.codes[j], shown, len(columns))[columns >= 0]
                out[columns[columns >= 0], a] = sums
        return out

    def _inverse(self, of: Conditional, ridge: float = 0.0) -> Floats:
        whole = unpack_information(self._information(of, 0)[0])
        least = MIN_INFORMATION * max(1.0, whole.diagonal().max())
        whole[np.diag_indices_from(whole)] += max(ridge, least)
        if not _invert(whole):
            raise not_finite(of.target)
        return whole

    def _information(self, of: Conditional, first_source: int) -> tuple[Floats, Floats]:
        """Return the packed information of sources from one on, and the expected indicators."""
        n_columns, q = of.coefficients.shape
        p = self.expect(of)[1]
        packed = np.zeros((n_columns, n_columns, q * (q + 1) // 2))
        add_information(self.codes, of.weights, of.design, p, packed, first_source)
        return packed, p

    def _extended_inverse(self, of: Conditional, known: Floats) -> Floats | None:
        """Return the inverse from that without the last neighbour; None if rounding spoils it.

        What the neighbour adds has a few columns: a hub is inverted once for all that may join it.
        """
        q = of.shape[1]
        old = len(known) // q
        packed, p = self._information(of, len(of.design.sources))
        corner = unpack_information(np.ascontiguousarray(packed[old:, old:]))
        largest = float((of.weights @ (p * (1.0 - p))).max())  # of the intercept, as in `known`
        corner[np.diag_indices_from(corner)] += MIN_INFORMATION * max(1.0, largest)
        across = packed[:old, old:][:, :, logit_pairs(q)]
        across = across.transpose(0, 2, 1, 3).reshape(len(known), len(corner))
        explained = known @ across
        left = corner - across.T @ explained
        if not _invert(left):
            return None
        beside = explained @ left
        return np.block([[known + beside @ explained.T, -beside], [-beside.T, left]])


@lru_cache(maxsize=64)
def table_basis(tall: int, wide: int) -> Floats:
    """Return the matrix from scores of a table's contrasts to orthonormal coordinates of all cells.

    The score of the reference is minus the sum of the others: the Gram matrix is ``I + 1 1'``.
    """
    turns = (np.linalg.cholesky(np.eye(q) + 1.0).T for q in (tall, wide))
    return np.asarray(np.kron(*turns), np.float64)


def _log_ratio(observed: Floats, expected: Floats) -> Floats:
    """Return the logarithm of a ratio of rows, of which there is half a one at least."""
    return np.asarray(np.log(np.maximum(observed, 0.5) / np.maximum(expected, 1e-12)))


def not_finite(target: int) -> ModelError:
    """Return the error of a conditional that is certain of everything."""
    return ModelError(
        f"the conditional of variable {target} has no finite information: its parameters are too "
        "large"
    )


def _invert(matrix: Floats) -> bool:
    """Replace a symmetric matrix by its inverse, if it is positive definite."""
    if len(matrix) <= _SMALL:
        out = np.empty_like(matrix)
        positive = bool(invert_positive(matrix, out))
        matrix[:] = out
        return positive
    # A symmetric matrix in Fortran order is its own transpose: nothing is copied.
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    if not failed:
        inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
        lower = np.tril(inverse)
        matrix[:] = lower + np.tril(lower, -1).T
    return not failed
