"""Tests of many edges with small neighbourhoods, from counts of their joint states.

The sums of :mod:`edgegraft.learn.effective_score` depend on the states of an edge's ends and of
their neighbours alone. If these have few joint states, the rows are counted by them once, and what
follows is worked out for many edges of the same shape at a time. All columns of a neighbourhood
must have as many states, every one of which occurs, and no cell may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.device.conditionals import EdgeSums
from edgegraft.kernels.conditionals.counted import count_joint
from edgegraft.kernels.conditionals.row_conditionals import Neighbours
from edgegraft.learn.conditional import MIN_INFORMATION, ROWS_PER_COLUMN, clean, strength_of
from edgegraft.learn.effective_score import (
    Directions,
    Verdicts,
    combine,
    directions,
    needs_test_at_zero,
)
from edgegraft.learn.table_conditionals import TableConditionals, table_basis

MIN_EDGES = 512
"""Edges from which it is worth it."""

_MAX_CELLS = 4096  # joint states
_CHUNK = 1 << 20  # joint states of the edges that are worked on at a time
_PIECES = 4  # of work per thread


def many_tests(
    rows: TableConditionals, layout: Layout, theta: Floats, chosen: Integers, n_jobs: int
) -> tuple[Verdicts, Mask]:
    """Test the `chosen` edges of a model, as far as counts suit them, and return which these are.

    The others have neighbourhoods that do not suit, or need a test at zero.
    """
    found, settled = Verdicts.none(len(chosen)), np.zeros(len(chosen), bool)
    if rows.known.size or rows.survey is not None or rows.variances is not rows.weights:
        return found, settled
    model = _Model(layout, theta, rows.codes, rows.weights, n_jobs)
    complete = rows.sizes == layout.states - 1
    for group, at in _groups(model, complete, layout.edges[chosen]):
        score, usable = group.test()
        found.statistic[at], found.dof[at] = usable.statistics(score), usable.dof
        found.p_value[at] = usable.p_values(found.statistic[at])
        settled[at] = ~group.at_zero(found.p_value[at], rows)
    return found, settled


class _Model(NamedTuple):
    """A fitted model and the rows of its columns."""

    layout: Layout
    theta: Floats
    codes: NDArray[Any]
    weights: Floats
    n_jobs: int


def _groups(model: _Model, suited: Mask, edges: Edges) -> Iterator[tuple[_Group, Integers]]:
    """Yield groups of edges whose neighbourhoods are `suited` and of one shape, with positions."""
    layout, n_rows, total = model.layout, model.codes.shape[1], float(model.weights.sum())
    neighbours = neighbours_of(layout)
    states, degree = layout.states, np.diff(neighbours.start)
    own = np.repeat(np.arange(layout.n_variables), degree)
    alike = suited[neighbours.other] & (states[neighbours.other] == states[own])
    suits = suited & (np.bincount(own[~alike], minlength=len(states)) == 0)
    i, j = edges.T
    size = np.log(states[i]) * (degree[i] + degree[j])
    cells = min(_MAX_CELLS, n_rows)
    columns = 1 + np.maximum(degree[i], degree[j]) * (states[i] - 1)
    enough = total >= ROWS_PER_COLUMN * columns
    suits = suits[i] & suits[j] & (states[i] > 1) & (size <= np.log(cells) + 1e-9) & enough
    able = np.flatnonzero(suits)
    keys = np.stack((states[i], degree[i], degree[j]), axis=1)[able]
    order = np.lexsort(keys.T)
    cuts = np.flatnonzero(np.any(np.diff(keys[order], axis=0), axis=1)) + 1
    for same in np.split(able[order], cuts):
        if len(same):
            first, second = edges[same[0]]
            n_cells = int(states[first]) ** int(degree[first] + degree[second])
            for at in np.array_split(same, -(-len(same) * n_cells // _CHUNK)):
                yield _Group(model, neighbours, edges[at]), at


class _Side(NamedTuple):
    """The conditionals of one end of edges: a row of each array per edge."""

    scores: Floats  # (edges, joint states of the neighbours, own states, size)
    information: Floats  # (edges, size, size)
    shift: Floats  # (edges, size)
    sums: Floats  # (edges, size)
    products: Floats  # (edges, size, size)


class _Group:
    """Edges whose ends have as many states and as many neighbours."""

    def __init__(self, model: _Model, neighbours: Neighbours, edges: Edges) -> None:
        self._model, self._neighbours = model, neighbours
        self._theta, self._nodes = model.theta, model.layout.node_offset
        self._states = int(model.layout.states[edges[0, 0]])
        self._further = np.diff(neighbours.start)[edges[0]] - 1  # neighbours but the other end
        self._i, self._j = edges.T
        self._at_i, self._at_j = self._entries(self._i, self._j), self._entries(self._j, self._i)

    def test(self) -> tuple[Floats, Directions]:
        """Return the scores of the edges, and their directions."""
        counts = self._count()
        m, s, _, *wide = counts.shape
        of_i = counts.sum(axis=4).transpose(0, 2, 3, 1).reshape(m, -1, s)
        of_j = counts.sum(axis=3).transpose(0, 1, 3, 2).reshape(m, -1, s)
        first = self._side(of_i, self._i, self._at_i, turned=True)
        second = self._side(of_j, self._j, self._at_j, turned=False)
        size = first.shift.shape[1]
        u = first.scores.reshape(m, s, wide[0], s, size).transpose(0, 3, 1, 2, 4)
        v = second.scores.reshape(m, s, wide[1], s, size).transpose(0, 1, 3, 2, 4)
        beside = (counts @ v).reshape(m, -1, size)
        across = u.reshape(m, -1, size).transpose(0, 2, 1) @ beside
        sums = EdgeSums(
            np.stack((first.sums, second.sums), axis=1),
            first.products + second.products + across + across.transpose(0, 2, 1),
            across,
            first.information + second.information,
            first.shift + second.shift,
        )
        total, columns = float(self._model.weights.sum()), 1 + (self._further + 1) * (s - 1)
        raised = float(np.mean(total / np.maximum(total - columns, total / ROWS_PER_COLUMN)))
        found = combine(sums, raised, total)
        return found.score, directions(found.by_model, found.by_rows)

    def _entries(self, own: Integers, other: Integers) -> Integers:
        """Return the places of variables' neighbours, the other end of the edge first."""
        start = self._neighbours.start
        places = start[own][:, None] + np.arange(start[own[0] + 1] - start[own[0]])
        is_end = self._neighbours.other[places] == other[:, None]
        further = places[~is_end].reshape(len(own), -1)
        return np.column_stack((places[is_end], further))

    def _count(self) -> Floats:
        """Return the rows by the states of both ends, and of the others of each."""
        other, n_jobs, s = self._neighbours.other, self._model.n_jobs, self._states
        further = other[self._at_i[:, 1:]], other[self._at_j[:, 1:]]
        variables = np.column_stack((self._i, self._j, *further))
        shape = len(variables), s, s, *(s ** int(size) for size in self._further)
        out = np.empty((len(variables), s ** variables.shape[1]))
        codes, weights = self._model.codes, self._model.weights
        pieces = np.array_split(np.arange(len(variables)), _PIECES * n_jobs if n_jobs > 1 else 1)

        def work(piece: Integers) -> None:
            if len(piece):
                chosen = slice(int(piece[0]), int(piece[-1]) + 1)
                count_joint(codes, weights, variables[chosen], s, out[chosen])

        run(work, pieces, n_jobs)
        return out.reshape(shape)

    def _tables(self, places: Integers) -> Floats:
        """Return the tables of neighbours, their own states first: (edges, other, own)."""
        given, state = self._neighbours, np.arange(self._states)
        at = given.table[places][:, None, None]
        at = at + given.step[places][:, None, None] * state[:, None]
        return np.asarray(self._theta[at + given.own_step[places][:, None, None] * state])

    def _logits(self, own: Integers, places: Integers) -> Floats:
        """Return the logits of all states at each joint state of the neighbours."""
        found = self._theta[self._nodes[own][:, None] + np.arange(self._states)][:, None]
        for k in range(places.shape[1]):
            found = found[:, :, None] + self._tables(places[:, k])[:, None]
            found = found.reshape(len(own), -1, self._states)
        return np.asarray(found)

    def _side(self, counts: Floats, own: Integers, at: Integers, *, turned: bool) -> _Side:
        logits, edge = self._logits(own, at), at[:, 0]
        s, q, m = self._states, self._states - 1, len(counts)
        shown = _design(counts.shape[1], s)
        n_columns = shown.shape[1]
        p = np.exp(logits - logits.max(axis=2, keepdims=True))
        p /= p.sum(axis=2, keepdims=True)
        p = p[:, :, 1:]
        weight = counts.sum(axis=2)[:, :, None, None]
        curvature = weight * (p[:, :, :, None] * (np.eye(q) - p[:, :, None]))
        pairs = (shown[:, :, None] * shown[:, None]).reshape(len(shown), -1)
        whole = curvature.reshape(m, -1, q * q).transpose(0, 2, 1) @ pairs
        whole = whole.reshape(m, q, q, n_columns, n_columns).transpose(0, 3, 1, 4, 2)
        whole = whole.reshape(m, n_columns * q, n_columns * q)
        diagonal = np.einsum("eaa->ea", whole)
        diagonal += MIN_INFORMATION * np.maximum(1.0, diagonal.max(axis=1, keepdims=True))
        cells = np.arange(q, q + q * q).reshape(q, q)  # of the other end's columns
        chosen = (cells.T if turned else cells).ravel()
        across = np.linalg.inv(whole)[..., chosen]
        projection, information, shift = clean(across, chosen, table_basis(q, q))
        projection = projection.reshape(m, n_columns, -1)
        moved = (shown @ projection).reshape(m, len(shown), q, q * q)
        scores = np.zeros((m, len(shown), s, q * q))
        scores[:, :, 1:] = moved
        scores -= np.einsum("eca,ecat->ect", p, moved)[:, :, None]
        flat, weighted = scores.reshape(m, -1, q * q), counts.reshape(m, -1, 1)
        table = _contrasts(self._tables(edge))  # (edges, other, own)
        table = table.transpose(0, 2, 1) if turned else table
        return _Side(
            scores,
            information,
            (shift @ table.reshape(m, -1, 1))[:, :, 0],
            (flat * weighted).sum(axis=1),
            flat.transpose(0, 2, 1) @ (flat * weighted),
        )

    def at_zero(self, p_value: Floats, rows: TableConditionals) -> Mask:
        """Return which edges are to be tested at zero."""
        strength = strength_of(self._tables(self._at_i[:, 0]))
        return needs_test_at_zero(p_value, strength, np.stack((self._i, self._j), axis=1), rows)


def _design(n_joint: int, states: int) -> Floats:
    """Return the columns of a conditional at each joint state: an intercept, then contrasts."""
    digits = np.arange(n_joint)[:, None]
    columns, length = [np.ones((n_joint, 1))], n_joint // states
    while length:
        columns.append((digits // length % states == np.arange(1, states)).astype(float))
        length //= states
    return np.concatenate(columns, axis=1)


def _contrasts(tables: Floats) -> Floats:
    """Return what states add to the log-odds of others, against the first of both."""
    found = tables[:, 1:, 1:] - tables[:, :1, 1:] - tables[:, 1:, :1] + tables[:, :1, :1]
    return np.asarray(found)
