"""Conditionals of columns, and the effective score of an edge in one of them.

A conditional is a softmax regression on what its neighbours show. Parameters are numbered column
by column of its design, the intercept first. What follows from them is the same for tables, whose
columns are contrasts of states (:mod:`~edgegraft.learn.table_conditionals`), and for weights of
features (:mod:`~edgegraft.learn.feature_conditionals`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core import Layout
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.device.conditionals import ConditionalsOnDevice
from edgegraft.kernels.conditionals.effective_scores import Design, project_rows
from edgegraft.learn.rare_states import Rarity
from edgegraft.table import PackedTable

ROWS_PER_COLUMN = 5  # with fewer, a regression fits noise and the normal approximation fails
MIN_INFORMATION = 1e-9  # share of the largest; keeps the inverse finite, far below one row
MAX_BYTES = 1 << 28  # for the information of one conditional, and for residuals
PULL = 1.0  # weight of the given parameters during a refit, in rows
MAX_MOVE = 2.0  # largest change of a parameter in a step


@dataclass(frozen=True, eq=False)
class Conditional:
    """The conditional of one variable at given parameters."""

    design: Design
    weights: Floats  # of rows; zero for unused ones
    intercept: Floats  # this and coefficients in the form of their kind; tables have
    coefficients: Floats  # the intercept as the first row of the coefficients
    #: (degree + 1,) first design column of each of the design's sources, then their number
    start: Integers
    shape: tuple[int, int]  # free intercepts, and parameters per further column
    #: of the information; None if the conditional is not usable, and on a device
    inverse: Floats | None = None
    usable: bool = False  # whether there are enough rows and memory for it
    #: which states the coefficients are of, if the parameters are those of groups of states
    of_states: Design | None = None
    first: int = 0  # parameter of the inverse's first column, if only one neighbour's are known

    @property
    def target(self) -> int:
        """The variable."""
        return int(self.design.target)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return self.shape[0] + (int(self.start[-1]) - 1) * self.shape[1]

    @property
    def correction(self) -> float:
        """The factor that corrects variances for the number of fitted parameters."""
        total = float(self.weights.sum())
        return total / max(total - float(self.start[-1]), total / ROWS_PER_COLUMN)

    def is_of(self, other: Conditional) -> bool:
        """Return whether it has the neighbours and parameters of another."""
        return (
            np.array_equal(self.design.sources, other.design.sources)
            and np.array_equal(self.intercept, other.intercept)
            and np.array_equal(self.coefficients, other.coefficients)
        )

    def columns_of(self, other: int) -> slice:
        """Return the design columns of a neighbour."""
        k = int(np.flatnonzero(self.design.sources == other)[0])
        return slice(int(self.start[k]), int(self.start[k + 1]))

    def across(self, chosen: Integers) -> Floats:
        """Return the columns of the inverse of some parameters."""
        assert self.inverse is not None
        return self.inverse[:, chosen - self.first]

    def cells_of(self, other: int) -> Integers:
        """Return the numbers of an edge's parameters, the end of the smaller index first."""
        first, width = self.shape
        columns = np.arange(self.start[-1] - 1)[:, None] * width + np.arange(width) + first
        at = self.columns_of(other)
        cells = columns[at.start - 1 : at.stop - 1]
        return np.asarray((cells if other < self.target else cells.T).ravel())


class Side(NamedTuple):
    """The effective score of an edge in the conditional of one end."""

    node: Conditional
    other: int
    residuals: Floats | None  # of all rows, if they are kept
    tables: Floats  # tables of the projection, see `lay_out`
    free: Floats | None  # projection of the intercepts' residuals, if they have their own
    information: Floats  # (size, size)
    shift: Floats  # (size,) information times parameters


def clean(across: Floats, chosen: Integers, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """Return what is left of some parameters' scores beside all others, of one or many inverses.

    These are the projection of scores, its information, and what turns parameters to the shift,
    all in the coordinates of `basis`. `across` are the inverse's columns of the parameters.
    """
    information = np.linalg.inv(across[..., chosen, :])
    information = (information + np.swapaxes(information, -1, -2)) / 2
    shift = basis @ information
    return across @ information @ basis.T, shift @ basis.T, shift


class Conditionals(ABC):
    """The rows of a table, from which the conditional of any column can be described.

    Parameters
    ----------
    table : PackedTable
    weights : array of float, shape (n_rows,), optional
    sampling : bool
        Whether the weights are those of a sample, not numbers of equal rows.
    survey : SurveyDesign, optional
        Rows that were drawn together.
    max_bytes : int
        Memory for the information of one conditional; one that needs more is not used.
    """

    elsewhere: ConditionalsOnDevice | None = None  # computes the sums over rows, if not here
    completed = False  # whether cells that are not known have been drawn
    grouped = False  # whether weights of a pair fall into groups
    alone = False  # whether edges are described without others at little cost
    at_fit = True  # whether edges are tested by a step from the fit, not only at zero
    sizes: Integers  # (n,) coordinates of each column
    kept: list[Integers]  # observed states of each column, except the most common
    rarity: Rarity  # how rare the states of columns are

    def __init__(
        self,
        table: PackedTable,
        weights: ArrayLike | None = None,
        *,
        sampling: bool = False,
        survey: SurveyDesign | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        n, self.states = table.n_rows, table.schema.n_states
        self.weights = np.ones(n) if weights is None else check_weights(weights, n)
        # Factors of the squares of rows' scores in the variance of their sum.
        self.variances = self.weights**2 if sampling else self.weights
        self.sampling = sampling
        self.survey, self.max_bytes = survey, max_bytes
        self.codes: NDArray[Any] = np.ascontiguousarray(table.cells[:, :n])
        self.codes.flags.writeable = False  # one compiled version, for copies and views
        #: (n, N), or (n, 0) if no cell is missing
        self.known: Mask = np.empty((len(self.codes), 0), bool)
        if table.n_missing.any():
            self.known = self.codes < self.states[:, None]

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance over the rows."""
        return float("inf") if self.survey is None else self.survey.freedom

    @property
    def incomplete(self) -> bool:
        """Whether conditionals have to do without the rows in which a neighbour is missing."""
        return bool(self.known.size) and not self.completed

    def describe(
        self,
        i: int,
        layout: Layout,
        theta: Floats,
        edges: Integers,
        base: Conditional | None = None,
        known: Conditional | None = None,
        inverse: bool = True,
    ) -> Conditional:
        """Return the conditional of variable `i`, whose edges are the `edges`-th of the layout.

        `base` is that without the last edge, if it is known and the parameters of that edge are
        zero. `known` is returned if it is the conditional asked for. The inverse of its information
        need not be found if only tests at zero follow.
        """
        node = self.read(i, layout, theta, edges)
        if known is not None and known.is_of(node):
            lacking = inverse and known.usable and known.inverse is None and self.elsewhere is None
            return self.inform(known, base) if lacking else known
        return self.inform(node, base) if inverse else self.outline(node)

    @abstractmethod
    def read(self, i: int, layout: Layout, theta: Floats, edges: Integers) -> Conditional:
        """Return a conditional at the parameters of a model, without its information."""

    @abstractmethod
    def inform(self, node: Conditional, base: Conditional | None) -> Conditional:
        """Return a conditional with its information, if there are rows and memory for it."""

    def outline(self, node: Conditional) -> Conditional:
        """Return a conditional without its information, and whether there are rows for it."""
        return self.inform(node, None)

    @abstractmethod
    def without(self, node: Conditional, other: int) -> Conditional:
        """Return the conditional with the weights of one edge at zero, the other ones unchanged."""

    @abstractmethod
    def residuals(self, node: Conditional, first: int, n: int) -> Floats:
        """Return what `n` rows show less what is expected; intercepts last, if they differ."""

    @abstractmethod
    def lay_out(self, node: Conditional, projection: Floats) -> tuple[Floats, Floats | None]:
        """Return a projection of parameters' scores as :meth:`project` reads it."""

    @abstractmethod
    def weights_of(self, node: Conditional, other: int) -> Floats:
        """Return the parameters of an edge, one row per column of the neighbour."""

    @abstractmethod
    def basis(self, i: int, j: int) -> Floats:
        """Return the matrix from a pair's parameters to coordinates that treat states alike."""

    def basis_in(self, node: Conditional, other: int) -> Floats:
        """Return the matrix to them from the parameters of a pair in the conditional of one end."""
        return self.basis(*sorted((node.target, other)))

    @abstractmethod
    def table_of(self, node: Conditional, other: int) -> Floats:
        """Return what the observed states of a neighbour add to the logits of the own ones."""

    def strength(self, node: Conditional, other: int) -> float:
        """Return the largest entry of an edge's table over observed states, in zero-sum gauge."""
        return float(strength_of(self.table_of(node, other)))

    @abstractmethod
    def expect(self, node: Conditional) -> tuple[Floats, Floats]:
        """Return what all rows show of tested states less what is expected, and the latter."""

    @abstractmethod
    def terms(
        self, node: Conditional, other: int, cell: tuple[int, int], used: Integers
    ) -> tuple[Floats, Floats]:
        """Return what each own state adds to the score of a cell, beside the other parameters.

        First without the other end, row by row, then what each of its states adds to that.
        """

    def has_rows(self, node: Conditional) -> bool:
        """Return whether there are rows and memory for the information of a conditional."""
        enough = node.weights.sum() >= ROWS_PER_COLUMN * int(node.start[-1])
        return node.shape[0] > 0 and bool(enough) and 8 * node.n_parameters**2 <= self.max_bytes

    def design(self, i: int, own: Integers, sources: Integers, places: list[Integers]) -> Design:
        """Return the design of a variable's conditional, after an intercept.

        `own` are the logits of its states, and `places` the columns of those of each source, from
        0; -1 stands for none.
        """
        column = np.full((len(sources), int(self.states[sources].max(initial=1)) + 1), -1, np.int64)
        first = 1
        for row, place in zip(column, places, strict=True):
            row[: len(place)] = np.where(place < 0, -1, first + place)
            first += int(place.max(initial=-1)) + 1
        return Design(i, own, sources, column)

    def linear(self, i: int, j: int) -> Mask:
        """Return which weights of a pair are linear, flat."""
        return np.ones(int(self.sizes[i] * self.sizes[j]), bool)

    def own_place(self, i: int) -> Integers:
        """Return the place of each state among those kept, -1 for others and a missing cell."""
        own = np.full(self.states[i] + 1, -1, np.int64)
        own[self.kept[i]] = np.arange(len(self.kept[i]))
        return own

    def place_of(self, i: int) -> Integers:
        """Return the place of each row's state among those kept, -1 for the most common."""
        return np.asarray(self.own_place(i)[self.codes[i]])

    def seen_place_of(self, i: int) -> Integers:
        """Return the same of a neighbour that is not tested."""
        return self.place_of(i)

    def side(self, node: Conditional, other: int, residuals: Floats | None = None) -> Side:
        """Return the effective score of an edge in the conditional of one of its ends."""
        weights = self.weights_of(node, other)
        weights = weights if other < node.target else weights.T
        basis = self.basis_in(node, other)
        cells = node.cells_of(other)
        projection, information, shift = clean(node.across(cells), cells, basis)
        laid_out = self.lay_out(node, projection)
        return Side(node, other, residuals, *laid_out, information, shift @ weights.ravel())

    def project(self, side: Side, first: int, n: int) -> Floats:
        """Return the effective scores of `n` rows."""
        out, node = np.empty((n, len(side.shift))), side.node
        if side.residuals is None:
            shown = self.residuals(node, first, n)
        else:
            shown = side.residuals[first : first + n]
        own = shown if side.free is None else np.ascontiguousarray(shown[:, : node.shape[1]])
        project_rows(self.codes, node.weights, node.design, own, side.tables, first, out)
        if side.free is not None:
            out += shown[:, node.shape[1] :] @ side.free
        return out

    def evidence(self, sides: list[Side]) -> tuple[Floats, Floats, float, list[float]]:
        """Return weights and factors of the rows that count, their sum, and the sides' shares."""
        return self.weights, self.variances, float(self.weights.sum()), [1.0] * len(sides)

    def describe_all(
        self,
        layout: Layout,
        theta: Floats,
        n_jobs: int,
        only: Integers | None = None,
        nodes: dict[int, Conditional] | None = None,
        *,
        inverse: bool = True,
    ) -> dict[int, Conditional]:
        """Return the conditional of every variable that has an edge, or of some of them.

        `nodes` are those of an earlier fit, and replaced if they have changed.
        """
        groups = edges_by_end(layout.edges)
        nodes = {} if nodes is None else nodes

        def work(i: int) -> None:
            known = nodes.get(i)
            nodes[i] = self.describe(i, layout, theta, groups[i], known=known, inverse=inverse)

        run(work, groups if only is None else only.tolist(), n_jobs)
        return nodes

    def describe_alone(
        self,
        layout: Layout,
        theta: Floats,
        n_jobs: int,
        chosen: Integers,
        alone: Integers,
        bases: dict[int, Conditional],
    ) -> list[tuple[Conditional, Conditional]]:
        """Return the conditionals of the ends of each chosen edge, without the other edges `alone`.

        `bases` are conditionals of an earlier fit, and replaced if they have changed.
        """
        beside = np.setdiff1d(np.arange(layout.n_edges), alone)
        groups = {i: beside[at] for i, at in edges_by_end(layout.edges[beside]).items()}
        none = np.empty(0, np.int64)
        found: dict[int, tuple[Conditional, Conditional]] = {}
        extends = self.elsewhere is None and not self.known.size

        def prepare(a: int) -> None:
            edges = groups.get(a, none)
            bases[a] = self.describe(a, layout, theta, edges, known=bases.get(a))

        if extends:
            run(prepare, np.unique(layout.edges[chosen]).tolist(), n_jobs)

        def end(a: int, k: int) -> Conditional:
            edges = np.append(groups.get(a, none), chosen[k])
            return self.describe(a, layout, theta, edges, bases[a] if extends else None)

        def work(k: int) -> None:
            i, j = layout.edges[chosen[k]].tolist()
            found[k] = end(i, k), end(j, k)

        run(work, range(len(chosen)), n_jobs)
        return [found[k] for k in range(len(chosen))]


def contrast_basis(q: int) -> Floats:
    """Return the matrix from scores of a column's contrasts to orthonormal coordinates.

    The score of the reference is minus the sum of the others: the Gram matrix is ``I + 1 1'``.
    """
    return np.asarray(np.linalg.cholesky(np.eye(q) + 1.0).T)


def edges_by_end(edges: Edges) -> dict[int, Integers]:
    """Return the positions of the edges of every variable that has any."""
    ends = edges.ravel()
    order = np.argsort(ends, kind="stable")
    own, first = np.unique(ends[order], return_index=True)
    return dict(zip(own.tolist(), np.split(order // 2, first[1:]), strict=True)) if len(own) else {}


def strength_of(tables: Floats) -> Floats:
    """Return the largest entry of one table or of many, in zero-sum gauge."""
    tables = tables - tables.mean(axis=-2, keepdims=True)
    tables = tables - tables.mean(axis=-1, keepdims=True)
    return np.asarray(np.abs(tables).max(axis=(-2, -1), initial=0.0))
