"""One variable's conditional as a softmax regression: its design, information and its inverse.

Logits and design columns are contrasts to the most common states, so that nothing is redundant.
Only rows in which the variable and all its neighbours are known are used: if a neighbour were
omitted, the others would seem to depend on each other. The pseudolikelihood does omit it, so if
cells are missing, the given parameters are first refitted to the rows used. If missing cells were
drawn (:mod:`~edgegraft.learn.completion`), all rows that know the variable are used. States that
do not occur have no parameters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
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
    add_scores,
    find_residuals,
    invert_positive,
    logit_pairs,
    unpack_information,
)
from edgegraft.learn.survey_design import SurveyDesign
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

ROWS_PER_COLUMN = 5  # with fewer, a regression fits noise and the normal approximation fails
_FEW_MEETINGS = 20.0  # expected rows below which the normal approximation is doubted
_NEWTON_STEPS = 3
_MARGIN_STEPS, _MARGIN_TOL = 20, 1e-6  # of intercepts refitted by scaling
_PULL = 1.0  # weight of the given parameters during the refit, in rows
_MAX_MOVE = 2.0  # largest change of a parameter in a step
_SMALL = 400  # parameters up to which our own inverse is faster
MIN_INFORMATION = 1e-9  # share of the largest; keeps the inverse finite, far below one row
_RULES = Rules(_NEWTON_STEPS, _PULL, _MAX_MOVE, _MARGIN_STEPS, _MARGIN_TOL, MIN_INFORMATION)


class Rows(NamedTuple):
    """The rows of a table, with the contrasts that follow from its margins."""

    codes: NDArray[Any]  # (n, N); the number of states for a missing cell
    weights: Floats  # (N,)
    known: NDArray[np.bool_]  # (n, N), or (n, 0) if no cell is missing
    kept: list[Integers]  # observed states of each variable, except its reference
    reference: Integers  # (n,) most common state
    rarest: Floats  # (n,) rows with the rarest of the observed states
    variances: Floats  # (N,) factors of the squares of rows' scores in the variance of their sum
    elsewhere: ConditionalsOnDevice | None = None  # computes the sums over rows, if not here
    design: SurveyDesign | None = None  # rows that were drawn together
    completed: bool = False  # whether cells that are not known have been drawn

    @property
    def incomplete(self) -> bool:
        """Whether conditionals have to do without the rows in which a neighbour is missing."""
        return bool(self.known.size) and not self.completed

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance over the rows."""
        return float("inf") if self.design is None else self.design.freedom

    def is_sparse(self, i: int, j: int) -> bool:
        """Return whether the rarest states of two variables would meet in few rows by chance."""
        return bool(self.are_sparse(i, j))

    def are_sparse(self, i: int | Integers, j: int | Integers) -> Mask:
        """Return the same for many pairs."""
        meetings = self.rarest[i] * self.rarest[j]
        return np.asarray(meetings < _FEW_MEETINGS * self.weights.sum())


class Conditional(NamedTuple):
    """The conditional of one variable at given parameters.

    Attributes
    ----------
    design : Design
    weights : array of float, shape (N,)
        Row weights; zero for unused rows.
    coefficients : array of float, shape (columns, q)
    start : array of int, shape (degree,)
        First design column of each neighbour, in the order of the design's sources.
    inverse : array of float, shape (columns * q, columns * q), or None
        Inverse of the information; None if it is not usable, and on a device.
    usable : bool
        Whether there are enough rows and memory for it.
    """

    design: Design
    weights: Floats
    coefficients: Floats
    start: Integers
    inverse: Floats | None
    usable: bool = False

    @property
    def correction(self) -> float:
        """Return the factor that corrects variances for the number of fitted parameters."""
        total = float(self.weights.sum())
        return total / max(total - len(self.coefficients), total / ROWS_PER_COLUMN)

    def is_of(self, sources: Integers, coefficients: Floats) -> bool:
        """Return whether it has these neighbours and parameters."""
        return np.array_equal(self.design.sources, sources) and np.array_equal(
            self.coefficients, coefficients
        )

    def columns_of(self, other: int) -> slice:
        """Return the design columns of a neighbour."""
        k = int(np.flatnonzero(self.design.sources == other)[0])
        last = np.append(self.start, len(self.coefficients))[k + 1]
        return slice(int(self.start[k]), int(last))

    def residuals(self, rows: Rows) -> Floats:
        """Return observed minus expected indicators, one row per row of the table."""
        out = np.zeros((rows.codes.shape[1], self.coefficients.shape[1]))
        find_residuals(
            rows.codes, self.weights, self.design, self.coefficients, out, np.empty_like(out)
        )
        return out


def read_rows(
    table: PackedTable,
    weights: Floats,
    sampling: bool = False,
    device: Device | None = None,
    design: SurveyDesign | None = None,
    drawn: Mask | None = None,
    n_jobs: int = 1,
) -> Rows:
    """Return the rows of a table with the reference and the observed states of each variable.

    `sampling` weights are those of a sample, not numbers of equal rows; `drawn` are the cells, rows
    by columns, that were missing.
    """
    states = table.schema.n_states
    codes = np.ascontiguousarray(table.cells[:, : table.n_rows])
    codes.flags.writeable = False  # one compiled version, for copies and views
    known = codes < states[:, None] if table.n_missing.any() else np.empty((len(codes), 0), bool)
    if drawn is not None:
        known = np.ascontiguousarray(~drawn.T)
    kept, reference = [], np.zeros(table.n_variables, np.int64)
    rarest = np.zeros(table.n_variables)
    start = np.concatenate(([0], np.cumsum(states)))
    counted = codes
    if drawn is not None:
        counted = np.where(known, codes, states[:, None]).astype(codes.dtype)
        counted.flags.writeable = False
    counts = weigh_states(counted, weights, states, n_jobs)
    for i, shown in enumerate(np.split(counts, start[1:-1])):
        occurs = shown > 0
        rarest[i] = shown[occurs].min(initial=np.inf)
        reference[i] = first = shown.argmax()
        occurs[first] = False
        kept.append(np.flatnonzero(occurs))
    variances = weights**2 if sampling else weights
    elsewhere = None
    if device is not None and design is None:
        block = TableRows(table, device=device)
        elsewhere = ConditionalsOnDevice(block, weights, variances, _RULES)
    margins = kept, reference, rarest
    completed = drawn is not None
    return Rows(codes, weights, known, *margins, variances, elsewhere, design, completed)


def describe(
    i: int,
    rows: Rows,
    layout: Layout,
    theta: Floats,
    edges: Integers,
    max_bytes: int,
    base: Conditional | None = None,
    known: Conditional | None = None,
) -> Conditional:
    """Return the conditional of variable `i`, whose edges are the `edges`-th of the layout.

    `base` is that without the last edge, if it is known and the parameters of that edge are zero.
    `known` is returned if it is the conditional asked for.
    """
    sources = layout.edges[edges].sum(axis=1) - i
    sizes = np.array([len(rows.kept[j]) for j in sources], np.int64)
    start = 1 + np.cumsum(sizes) - sizes
    coefficients = _coefficients(i, rows, layout, theta, edges, sources)
    if known is not None and known.is_of(sources, coefficients):
        return known
    design = _design(i, rows, layout, sources, start)
    weights = rows.weights
    if rows.completed:
        weights = weights * rows.known[i]
    elif rows.incomplete:
        weights = weights * rows.known[np.append(sources, i)].all(axis=0)
    n_columns, q = coefficients.shape
    enough = weights.sum() >= ROWS_PER_COLUMN * n_columns
    found = Conditional(design, weights, coefficients, start, None)
    if q == 0 or not enough or 8 * (n_columns * q) ** 2 > max_bytes:
        return found
    if rows.elsewhere is not None:
        return found._replace(usable=True)
    if rows.incomplete:
        found = _settle(rows, found)
    inverse = None
    if base is not None and base.inverse is not None and not rows.known.size:
        inverse = _extended_inverse(rows, found, base.inverse)
    if inverse is None:
        inverse = _inverse_information(rows, found)
    return found._replace(inverse=inverse, usable=True)


def without(node: Conditional, rows: Rows, other: int) -> Conditional:
    """Return the conditional with the table of one neighbour at zero, and the intercept refitted.

    The other tables are unchanged.
    """
    found = _with_margins(at_zero(node, rows, other), rows)
    return found._replace(inverse=_inverse_information(rows, found))


def at_zero(node: Conditional, rows: Rows, other: int) -> Conditional:
    """Return the conditional with the table of one neighbour at zero, and nothing refitted."""
    states = rows.kept[other]
    at = node.columns_of(other)
    shown = np.bincount(rows.codes[other], node.weights, minlength=states.max(initial=0) + 1)
    coefficients = node.coefficients.copy()
    coefficients[0] += shown[states] @ coefficients[at] / node.weights.sum()
    coefficients[at] = 0.0
    return node._replace(coefficients=coefficients)


def _with_margins(node: Conditional, rows: Rows) -> Conditional:
    """Return a conditional whose intercept gives the states the shares that they have."""
    logits = node.coefficients.copy()
    shown, p = np.zeros((2, rows.codes.shape[1], logits.shape[1]))
    find_residuals(rows.codes, node.weights, node.design, logits, shown, p)
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
    return node._replace(coefficients=logits)


def _log_ratio(observed: Floats, expected: Floats) -> Floats:
    """Return the logarithm of a ratio of rows, of which there is half a one at least."""
    return np.asarray(np.log(np.maximum(observed, 0.5) / np.maximum(expected, 1e-12)))


def _design(i: int, rows: Rows, layout: Layout, sources: Integers, start: Integers) -> Design:
    own = np.full(layout.states[i] + 1, -1, np.int64)
    own[rows.kept[i]] = np.arange(len(rows.kept[i]))
    column = np.full((len(sources), int(layout.states[sources].max(initial=1)) + 1), -1, np.int64)
    for k, j in enumerate(sources):
        column[k, rows.kept[j]] = start[k] + np.arange(len(rows.kept[j]))
    return Design(i, own, sources, column)


def _coefficients(
    i: int, rows: Rows, layout: Layout, theta: Floats, edges: Integers, sources: Integers
) -> Floats:
    """Return the parameters as contrasts: an intercept, then the states of each neighbour."""
    own, first = rows.kept[i], rows.reference[i]
    node = layout.node(theta, i)
    intercept = node[own] - node[first]
    parts = []
    for k, j in zip(edges, sources, strict=True):
        table = layout.edge(theta, int(k))
        logits = (table if i < j else table.T)[own] - (table if i < j else table.T)[first]
        at_reference = logits[:, rows.reference[j]]
        intercept = intercept + at_reference
        parts.append((logits[:, rows.kept[j]] - at_reference[:, None]).T)
    return np.ascontiguousarray(np.concatenate((intercept[None], *parts)))


def _settle(rows: Rows, given: Conditional) -> Conditional:
    """Return the conditional after Newton steps on its rows, held near the given one by a ridge.

    Without the ridge, states that never occur together would make parameters diverge.
    """
    node = given
    for _ in range(_NEWTON_STEPS):
        moved = node.coefficients - given.coefficients
        score = -_PULL * moved
        add_scores(rows.codes, node.weights, node.design, node.residuals(rows), score)
        step = _inverse_information(rows, node, _PULL) @ score.ravel()
        step = np.clip(step, -_MAX_MOVE, _MAX_MOVE).reshape(score.shape)
        node = node._replace(coefficients=node.coefficients + step)
    return node


def _inverse_information(rows: Rows, of: Conditional, ridge: float = 0.0) -> Floats:
    n_columns, q = of.coefficients.shape
    shown, p = np.empty((2, rows.codes.shape[1], q))
    find_residuals(rows.codes, of.weights, of.design, of.coefficients, shown, p)
    packed = np.zeros((n_columns, n_columns, q * (q + 1) // 2))
    add_information(rows.codes, of.weights, of.design, p, packed, 0)
    whole = unpack_information(packed)
    whole[np.diag_indices_from(whole)] += max(
        ridge, MIN_INFORMATION * max(1.0, whole.diagonal().max())
    )
    if not _invert(whole):
        raise not_finite(of.design.target)
    return whole


def _extended_inverse(rows: Rows, of: Conditional, known: Floats) -> Floats | None:
    """Return the inverse from that without the last neighbour; None if rounding spoils it.

    What the neighbour adds has a few columns: a hub is inverted once for all that may join it.
    """
    n_columns, q = of.coefficients.shape
    old = len(known) // q
    shown, p = np.empty((2, rows.codes.shape[1], q))
    find_residuals(rows.codes, of.weights, of.design, of.coefficients, shown, p)
    packed = np.zeros((n_columns, n_columns, q * (q + 1) // 2))
    add_information(rows.codes, of.weights, of.design, p, packed, len(of.design.sources))
    corner = unpack_information(np.ascontiguousarray(packed[old:, old:]))
    largest = float((of.weights @ (p * (1.0 - p))).max())  # that of the intercept, as in `known`
    corner[np.diag_indices_from(corner)] += MIN_INFORMATION * max(1.0, largest)
    across = packed[:old, old:][:, :, logit_pairs(q)]
    across = across.transpose(0, 2, 1, 3).reshape(len(known), len(corner))
    explained = known @ across
    left = corner - across.T @ explained
    if not _invert(left):
        return None
    whole = np.empty((n_columns * q, n_columns * q))
    beside = explained @ left
    whole[: len(known), : len(known)] = known + beside @ explained.T
    whole[: len(known), len(known) :] = -beside
    whole[len(known) :, : len(known)] = -beside.T
    whole[len(known) :, len(known) :] = left
    return whole


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
