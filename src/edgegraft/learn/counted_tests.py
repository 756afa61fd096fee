"""Tests of many edges with small neighbourhoods, from counts of their joint states.

The sums of :mod:`edgegraft.learn.effective_score` depend on the states of an edge's ends and of
their neighbours alone. If these have few joint states, the rows are counted by them once, and what
follows is worked out for many edges of the same shape at a time. All columns of a neighbourhood
must have as many states, every one of which occurs, and no cell may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.threads import run
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.kernels.conditionals.counted import count_joint
from edgegraft.kernels.conditionals.row_conditionals import Neighbours
from edgegraft.learn.conditional import MIN_INFORMATION, ROWS_PER_COLUMN, Rows
from edgegraft.learn.effective_score import (
    LINEAR,
    MAX_DOUBTED,
    MIN_DIRECTION_ROWS,
    MIN_DOUBTED,
    MIN_RATIO,
    SIGNIFICANT,
    table_basis,
)

MIN_EDGES = 512
"""Edges from which it is worth it."""

_MAX_CELLS = 4096  # joint states
_CHUNK = 1 << 20  # joint states of the edges that are worked on at a time
_PIECES = 4  # of work per thread


class ManyTested(NamedTuple):
    """Tests of edges, in the order of asking.

    Attributes
    ----------
    settled : array of bool, shape (m,)
        The others are to be tested one by one: their neighbourhoods do not suit, or they need a
        test at zero.
    statistic, p_value : array of float, shape (m,)
    dof : array of int, shape (m,)
    """

    settled: Mask
    statistic: Floats
    dof: Integers
    p_value: Floats


def many_tests(
    rows: Rows, layout: Layout, theta: Floats, chosen: Integers, n_jobs: int
) -> ManyTested:
    """Test the `chosen` edges of a model, as far as counts suit them."""
    m = len(chosen)
    found = ManyTested(np.zeros(m, bool), np.zeros(m), np.zeros(m, np.int64), np.ones(m))
    if rows.known.size or rows.design is not None or rows.variances is not rows.weights:
        return found
    neighbours, edges = neighbours_of(layout), layout.edges[chosen]
    for at in _groups(rows, layout, neighbours, edges):
        group = _Group(rows, layout, theta, neighbours, edges[at])
        for part in np.array_split(np.arange(len(at)), -(-len(at) * group.cells // _CHUNK)):
            statistic, dof, p_value, settled = group.test(part, n_jobs)
            to = at[part]
            found.settled[to], found.statistic[to] = settled, statistic
            found.dof[to], found.p_value[to] = dof, p_value
    return found


def _groups(rows: Rows, layout: Layout, neighbours: Neighbours, edges: Edges) -> Iterator[Integers]:
    """Yield the edges, by position, that suit and whose neighbourhoods have the same shape."""
    states, degree = layout.states, np.diff(neighbours.start)
    complete = np.array([len(kept) for kept in rows.kept]) == states - 1
    own = np.repeat(np.arange(layout.n_variables), degree)
    alike = complete[neighbours.other] & (states[neighbours.other] == states[own])
    suits = complete & (np.bincount(own[~alike], minlength=len(states)) == 0)
    i, j = edges.T
    size = np.log(states[i]) * (degree[i] + degree[j])
    cells = min(_MAX_CELLS, rows.codes.shape[1])
    columns = 1 + np.maximum(degree[i], degree[j]) * (states[i] - 1)
    enough = rows.weights.sum() >= ROWS_PER_COLUMN * columns
    suits = suits[i] & suits[j] & (states[i] > 1) & (size <= np.log(cells) + 1e-9) & enough
    able = np.flatnonzero(suits)
    keys = np.stack((states[i], degree[i], degree[j]), axis=1)[able]
    order = np.lexsort(keys.T)
    cuts = np.flatnonzero(np.any(np.diff(keys[order], axis=0), axis=1)) + 1
    yield from (at for at in np.split(able[order], cuts) if len(at))


class _Side(NamedTuple):
    """The conditionals of one end of edges: a row of each array per edge."""

    scores: Floats  # (edges, joint states of the neighbours, own states, size)
    information: Floats  # (edges, size, size)
    shift: Floats  # (edges, size)
    sums: Floats  # (edges, size)
    products: Floats  # (edges, size, size)


class _Group:
    """Edges whose ends have as many states and as many neighbours."""

    def __init__(
        self, rows: Rows, layout: Layout, theta: Floats, neighbours: Neighbours, edges: Edges
    ) -> None:
        self._rows, self._theta, self._edges = rows, theta, edges
        self._neighbours, self._nodes = neighbours, layout.node_offset
        self._states = int(layout.states[edges[0, 0]])
        self._further = np.diff(neighbours.start)[edges[0]] - 1  # neighbours but the other end
        self.cells = self._states ** int(2 + self._further.sum())

    def test(self, part: Integers, n_jobs: int) -> tuple[Floats, Integers, Floats, Mask]:
        """Return statistics, degrees of freedom, p-values, and which edges need no other test."""
        s, (i, j) = self._states, self._edges[part].T
        at_i, at_j = self._entries(i, j), self._entries(j, i)
        other = self._neighbours.other
        variables = np.column_stack((i, j, other[at_i[:, 1:]], other[at_j[:, 1:]]))
        counts = self._count(variables, n_jobs)
        wide = [s ** int(further) for further in self._further]
        counts = counts.reshape(len(part), s, s, *wide)
        of_i = counts.sum(axis=4).transpose(0, 2, 3, 1).reshape(len(part), -1, s)
        of_j = counts.sum(axis=3).transpose(0, 1, 3, 2).reshape(len(part), -1, s)
        first = self._side(of_i, self._logits(i, at_i), at_i[:, 0], turned=True)
        second = self._side(of_j, self._logits(j, at_j), at_j[:, 0], turned=False)
        size = first.shift.shape[1]
        u = first.scores.reshape(len(part), s, wide[0], s, size).transpose(0, 3, 1, 2, 4)
        v = second.scores.reshape(len(part), s, wide[1], s, size).transpose(0, 1, 3, 2, 4)
        across = u.reshape(len(part), -1, size).transpose(0, 2, 1) @ (counts @ v).reshape(
            len(part), -1, size
        )
        statistic, dof, p_value = self._judge(first, second, across)
        return statistic, dof, p_value, ~self._at_zero(p_value, at_i[:, 0], i, j)

    def _entries(self, own: Integers, other: Integers) -> Integers:
        """Return the places of variables' neighbours, the other end of the edge first."""
        start = self._neighbours.start
        places = start[own][:, None] + np.arange(start[own[0] + 1] - start[own[0]])
        is_end = self._neighbours.other[places] == other[:, None]
        further = places[~is_end].reshape(len(own), -1)
        return np.column_stack((places[is_end], further))

    def _count(self, variables: Integers, n_jobs: int) -> Floats:
        out = np.empty((len(variables), self.cells))
        rows = self._rows
        pieces = np.array_split(np.arange(len(variables)), _PIECES * n_jobs if n_jobs > 1 else 1)

        def work(piece: Integers) -> None:
            if len(piece):
                chosen = slice(int(piece[0]), int(piece[-1]) + 1)
                count_joint(rows.codes, rows.weights, variables[chosen], self._states, out[chosen])

        run(work, pieces, n_jobs)
        return out

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

    def _side(self, counts: Floats, logits: Floats, edge: Integers, *, turned: bool) -> _Side:
        s, q, m = self._states, self._states - 1, len(counts)
        shown = _design(counts.shape[1], s)
        n_columns, basis = shown.shape[1], table_basis(q, q)
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
        across = np.linalg.inv(whole)[:, :, chosen]
        information = np.linalg.inv(across[:, chosen])
        information = (information + information.transpose(0, 2, 1)) / 2
        projection = (across @ information @ basis.T).reshape(m, n_columns, -1)
        moved = (shown @ projection).reshape(m, len(shown), q, q * q)
        scores = np.zeros((m, len(shown), s, q * q))
        scores[:, :, 1:] = moved
        scores -= np.einsum("eca,ecat->ect", p, moved)[:, :, None]
        flat, weighted = scores.reshape(m, -1, q * q), counts.reshape(m, -1, 1)
        table = _contrasts(self._tables(edge))  # (edges, other, own)
        table = table.transpose(0, 2, 1) if turned else table
        shift = information @ table.reshape(m, -1, 1)
        return _Side(
            scores,
            basis @ information @ basis.T,
            (basis @ shift)[:, :, 0],
            (flat * weighted).sum(axis=1),
            flat.transpose(0, 2, 1) @ (flat * weighted),
        )

    def _judge(
        self, first: _Side, second: _Side, across: Floats
    ) -> tuple[Floats, Integers, Floats]:
        """Return statistics, degrees of freedom and p-values, by the larger of two variances."""
        total = float(self._rows.weights.sum())
        score = first.sums + second.sums
        by_rows = first.products + second.products + across + across.transpose(0, 2, 1)
        by_rows = by_rows - score[:, :, None] * score[:, None] / total
        across = across - first.sums[:, :, None] * second.sums[:, None] / total
        by_model = first.information + second.information + across + across.transpose(0, 2, 1)
        columns = 1 + (self._further + 1) * (self._states - 1)
        raised = float(np.mean(total / np.maximum(total - columns, total / ROWS_PER_COLUMN)))
        score = score + first.shift + second.shift
        spread, axes = np.linalg.eigh(by_model * raised)
        enough = spread >= MIN_DIRECTION_ROWS
        # Directions of too few rows are columns of zeros, which add nothing below.
        white = axes * (enough / np.sqrt(np.where(enough, spread, 1.0)))[:, None]
        turned = white.transpose(0, 2, 1)
        ratio, turn = np.linalg.eigh(turned @ (by_rows * raised) @ white)
        along = np.square(score[:, None] @ (white @ turn))[:, 0]
        scaled = along / np.maximum(ratio, MIN_RATIO)
        statistic = np.minimum(along.sum(axis=1), scaled.sum(axis=1))
        dof = enough.sum(axis=1)
        p_value = np.maximum(chdtrc(np.maximum(dof, 1), statistic), np.finfo(float).tiny)
        return np.where(dof, statistic, 0.0), dof, np.where(dof, p_value, 1.0)

    def _at_zero(self, p_value: Floats, edge: Integers, i: Integers, j: Integers) -> Mask:
        """Return which edges are to be tested at zero, as `needs_test_at_zero` has it."""
        table = self._tables(edge)
        table = table - table.mean(axis=1, keepdims=True)
        table = table - table.mean(axis=2, keepdims=True)
        strong = (p_value > SIGNIFICANT) & (np.abs(table).max(axis=(1, 2)) > LINEAR)
        doubted = (p_value > MIN_DOUBTED) & (p_value < MAX_DOUBTED)
        return np.asarray(strong | (doubted & self._rows.are_sparse(i, j)))


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
