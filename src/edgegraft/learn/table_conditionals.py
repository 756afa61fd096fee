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

from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.counts.pair_counts import weigh_states
from edgegraft.device import Device
from edgegraft.device.conditionals import ConditionalsOnDevice, Rules
from edgegraft.errors import ModelError
from edgegraft.kernels.conditionals.effective_scores import (
    add_information,
    find_residuals,
    lay_out,
    logit_pairs,
    unpack_information,
)
from edgegraft.learn.conditional import (
    MAX_BYTES,
    MAX_MOVE,
    MIN_INFORMATION,
    PULL,
    Conditional,
    Conditionals,
    Side,
    clean,
    contrast_basis,
)
from edgegraft.learn.rare_states import MARGIN_STEPS, MARGIN_TOL, Rarity, intercept_shift
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

_NEWTON_STEPS = 3
_SMALL = 400  # parameters up to which a conditional is inverted whole
_RULES = Rules(_NEWTON_STEPS, PULL, MAX_MOVE, MARGIN_STEPS, MARGIN_TOL, MIN_INFORMATION)


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
        self.kept = []
        counts = weigh_states(counted, self.weights, states)
        self.shown = np.split(counts, np.cumsum(states)[:-1])  # rows of each state
        for i, shown in enumerate(self.shown):
            occurs = shown > 0
            self.reference[i] = first = shown.argmax()
            occurs[first] = False
            self.kept.append(np.flatnonzero(occurs))
        self.sizes = self.n_kept = np.array([len(kept) for kept in self.kept], np.int64)
        self.rarity = Rarity.of(self.shown, float(self.weights.sum()))
        if device is not None and survey is None:
            block = TableRows(table, device=device)
            self.elsewhere = ConditionalsOnDevice(block, self.weights, self.variances, _RULES)

    def within(self, other: int) -> Integers:
        """Return which tested state each design column of a neighbour belongs to."""
        return np.arange(self.sizes[other])

    def terms(
        self, node: Conditional, other: int, cell: tuple[int, int], used: Integers
    ) -> tuple[Floats, Floats]:
        """Return what each own state adds to the score of a cell, beside the other parameters."""
        q, at = node.shape[1], node.columns_of(other)
        cells = np.arange(at.start * q, at.stop * q)
        state, own = cell
        unit = np.outer(self.within(other) == state, np.arange(q) == own).astype(float)
        projection = np.zeros((int(node.start[-1]) + 1, q))
        found = clean(node.across(cells), cells, unit.reshape(1, -1))[0]
        projection[:-1] = found.reshape(-1, q)
        slope = np.repeat(projection[:1], len(used), axis=0)
        for k, j in enumerate(node.design.sources.tolist()):
            if j != other:
                slope += projection[node.design.column[k]][self.codes[j, used]]
        return slope, projection[at]

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
        return self.expect_states(node, first, n)

    def expect_states(
        self, node: Conditional, first: int = 0, n: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return the same of the states that the coefficients are of."""
        design = node.of_states or node.design
        n = len(node.weights) if n is None else n
        out, p = np.zeros((2, n, node.coefficients.shape[1]))
        find_residuals(self.codes, node.weights, design, node.coefficients, first, out, p)
        return out, p

    def lay_out(self, node: Conditional, projection: Floats) -> tuple[Floats, None]:
        """Return a projection in tiles."""
        size = projection.shape[1]
        return lay_out(np.ascontiguousarray(projection.reshape(-1, node.shape[1], size))), None

    def weights_of(self, node: Conditional, other: int) -> Floats:
        """Return the coefficients of a neighbour."""
        return node.coefficients[node.columns_of(other)]

    def table_of(self, node: Conditional, other: int) -> Floats:
        """Return the table of a neighbour's states by the own ones, the references last."""
        return np.pad(self.weights_of(node, other), ((0, 1), (0, 1)))

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
        start = np.cumsum(np.concatenate(([1], self.n_kept[sources])))
        coefficients = self._coefficients(i, layout, theta, edges, sources)
        weights = self.weights
        if self.completed:
            weights = weights * self.known[i]
        elif self.incomplete:
            weights = weights * self.known[np.append(sources, i)].all(axis=0)
        places = [self.own_place(j) for j in sources.tolist()]
        design, q = self.design(i, self.own_place(i), sources, places), coefficients.shape[1]
        return Conditional(design, weights, coefficients[0], coefficients, start, (q, q))

    def outline(self, node: Conditional) -> Conditional:
        """Return a conditional without its information, and whether there are rows for it."""
        if not self.has_rows(node):
            return node
        settle = self.incomplete and self.elsewhere is None
        return replace(self._settle(node) if settle else node, usable=True)

    def inform(self, node: Conditional, base: Conditional | None) -> Conditional:
        """Return a conditional with its information, if there are rows and memory for it."""
        if not node.usable:
            node = self.outline(node)
        if not node.usable or self.elsewhere is not None:
            return node
        inverse = None
        if base is not None and base.inverse is not None and not self.known.size:
            inverse = self._extended_inverse(node, base.inverse)
        if inverse is None:
            inverse = self._inverse(node)
        return replace(node, inverse=inverse)

    def without(self, node: Conditional, other: int) -> Conditional:
        """Return the conditional with the table of one neighbour at zero, and intercepts refitted.

        The other tables are unchanged. Of a large conditional only those columns of the inverse are
        found that belong to the neighbour, and if its table is zero already, they are known.
        """
        found = self.with_margins(self.at_zero(node, other))
        if node.n_parameters <= _SMALL:
            return replace(found, inverse=self._inverse(found))
        at_zero = not node.coefficients[self.coefficients_of(node, other)].any()
        if at_zero and node.inverse is not None:
            return found  # intercepts have hardly moved
        at, q = node.columns_of(other), node.shape[1]
        columns = np.zeros((node.n_parameters, (at.stop - at.start) * q))
        np.fill_diagonal(columns[at.start * q :], 1.0)
        factor, failed = lapack.dpotrf(self._whole_information(found).T, lower=1, overwrite_a=1)
        if failed:
            raise not_finite(node.target)
        return replace(
            found, inverse=lapack.dpotrs(factor, columns, lower=1)[0], first=at.start * q
        )

    def at_zero(self, node: Conditional, other: int) -> Conditional:
        """Return the conditional with the table of one neighbour at zero, and nothing refitted."""
        states, at = self.kept[other], self.coefficients_of(node, other)
        shown = np.bincount(self.codes[other], node.weights, minlength=states.max(initial=0) + 1)
        coefficients = node.coefficients.copy()
        coefficients[0] += shown[states] @ coefficients[at] / node.weights.sum()
        coefficients[at] = 0.0
        return replace(node, coefficients=coefficients)

    def coefficients_of(self, node: Conditional, other: int) -> slice:
        """Return the coefficients of a neighbour's states."""
        return node.columns_of(other)

    def with_margins(self, node: Conditional) -> Conditional:
        """Return a conditional whose intercept gives the states the shares that they have."""
        logits = node.coefficients.copy()
        logits[0] += intercept_shift(node.weights, *self.expect_states(node))
        return replace(node, coefficients=logits)

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
        node, moved = given, np.zeros((int(given.start[-1]), given.shape[1]))
        for _ in range(_NEWTON_STEPS):
            score = self.scores(node) - PULL * moved
            step = np.clip(self._inverse(node, PULL) @ score.ravel(), -MAX_MOVE, MAX_MOVE)
            moved = moved + step.reshape(score.shape)
            node = replace(given, coefficients=given.coefficients + self.spread(given, moved))
        return node

    def spread(self, node: Conditional, moved: Floats) -> Floats:
        """Return how coefficients move with the parameters of a conditional."""
        return moved

    def whole_table(self, i: int, j: int, values: Floats) -> Floats:
        """Return values of the tested contrasts of a pair as a table of all states."""
        table = np.zeros((self.states[i], self.states[j]))
        table[np.ix_(self.kept[i], self.kept[j])] = values
        return table

    def scores(self, node: Conditional) -> Floats:
        """Return the sums over rows of the scores of all parameters, one row per design column."""
        residuals = node.weights[:, None] * self.residuals(node, 0, len(node.weights))
        out = np.zeros((int(node.start[-1]), node.shape[1]))
        for a, shown in enumerate(residuals.T):
            out[0, a] = shown.sum()
            for k, j in enumerate(node.design.sources):
                columns = node.design.column[k]
                sums = np.bincount(self.codes[j], shown, len(columns))[columns >= 0]
                np.add.at(out[:, a], columns[columns >= 0], sums)
        return out

    def _inverse(self, of: Conditional, ridge: float = 0.0) -> Floats:
        whole = self._whole_information(of, ridge)
        if not _invert(whole):
            raise not_finite(of.target)
        return whole

    def _whole_information(self, of: Conditional, ridge: float = 0.0) -> Floats:
        """Return the information as a matrix that is positive definite, if it is finite."""
        whole = unpack_information(self._information(of, 0)[0])
        least = MIN_INFORMATION * max(1.0, whole.diagonal().max())
        whole[np.diag_indices_from(whole)] += max(ridge, least)
        return whole

    def _information(self, of: Conditional, first_source: int) -> tuple[Floats, Floats]:
        """Return the packed information of sources from one on, and the expected indicators."""
        n_columns, q = int(of.start[-1]), of.shape[1]
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
        if not corner.size:  # a constant neighbour
            return known
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

    It is that of :func:`~edgegraft.learn.conditional.contrast_basis` for both ends.
    """
    return np.asarray(np.kron(contrast_basis(tall), contrast_basis(wide)), np.float64)


def not_finite(target: int) -> ModelError:
    """Return the error of a conditional that is certain of everything."""
    return ModelError(
        f"the conditional of variable {target} has no finite information: its parameters are too "
        "large"
    )


def _invert(matrix: Floats) -> bool:
    """Replace a symmetric matrix by its inverse, if it is positive definite."""
    # A symmetric matrix in Fortran order is its own transpose: nothing is copied.
    factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
    if not failed:
        inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
        lower = np.tril(inverse)
        matrix[:] = lower + np.tril(lower, -1).T
    return not failed and bool(np.isfinite(matrix).all())
