"""What edges of ordered columns are made of: a few scores of the states instead of all of them.

Column ``i`` has a matrix ``Phi_i`` (states by features); the table of an edge is ``Phi_i W Phi_j'``
and its parameters are ``W``. An unordered column of three or more states has its states as
features, so tables of unordered columns alone are parameters as they are. An ordered column has

- a linear score: the middle rank of each state; of counts and numbers its normal quantile,
- a quadratic score: its square, without what is linear in it,

both with mean 0 and variance 1 under the data's margin. They depend on the order of the states and
on nothing else: other labels in the same order give the same features, and the reverse order turns
the sign of the linear score. A column of two states has one feature whatever its kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables, table_offsets
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.table import Schema
from edgegraft.table.numbers import scores_of

#: A quadratic or further score that fewer rows than this carry (rows over fourth moment) is zero:
#: of two rows in 20,000 its value is 60, and a fit of its weights ends at infinity.
_SCORE_ROWS = 20.0


@dataclass(frozen=True, eq=False)
class Features:
    """The features of every column of a table."""

    states: Integers
    widths: Integers  # number of features, (n,)
    #: where the matrix of each column begins in `phi`; columns without one have their states
    start: Integers
    phi: Floats  # matrices (states by features), row by row
    dual: Floats  # the same, each state times its frequency: dual' phi is the identity

    @classmethod
    def of(cls, schema: Schema, margins: Floats, widths: Integers | None = None) -> Features:
        """Return the features of columns whose states have these weights.

        `widths` are the numbers of features, those of the schema by default.
        """
        states = schema.n_states
        widths = schema.widths if widths is None else widths
        phi, dual = [np.zeros(0)], [np.zeros(0)]
        ends = np.cumsum(states)
        for variable, end, s, k in zip(schema, ends, states, widths, strict=True):
            if k < s:
                own = margins[end - s : end]
                scores = scores_of(own, int(k), variable.kind)
                fourth = own @ scores**4 / own.sum()
                scores[:, 1:][:, own.sum() < _SCORE_ROWS * fourth[1:]] = 0.0
                phi.append(scores.ravel())
                dual.append((scores * (own / own.sum())[:, None]).ravel())
        sizes = np.where(widths < states, states * widths, 0)
        start = np.concatenate(([0], np.cumsum(sizes)))
        return cls(states, widths, start, np.concatenate(phi), np.concatenate(dual))

    @classmethod
    def plain(cls, schema: Schema) -> Features:
        """Return features that are the states: weights are tables."""
        return cls.of(schema, np.zeros(0), schema.n_states)

    def matrix(self, i: int) -> Floats:
        """Return the features of the states of column `i`, one row per state."""
        if self.widths[i] == self.states[i]:
            return np.eye(int(self.states[i]))
        flat = self.phi[self.start[i] : self.start[i + 1]]
        return flat.reshape(int(self.states[i]), int(self.widths[i]))

    def layout(self, edges: ArrayLike | None = None) -> Layout:
        """Return where the weights of a graph's edges lie."""
        pairs = np.asarray([] if edges is None else edges, np.int64).reshape(-1, 2)
        return Layout(self.states, pairs, self.widths)

    def expand(self, theta: Floats, layout: Layout) -> Floats:
        """Return the parameters of the tables, laid out by the states."""
        if not len(self.phi):
            return theta.copy()
        full = layout.tables
        out, nodes = np.empty(full.n_parameters), int(layout.node_offset[-1])
        out[:nodes] = theta[:nodes]
        self._multiply(theta, layout.edge_offset, layout.edges, full.edge_offset, out, widen=True)
        return out

    def fold(self, gradient: Floats, layout: Layout) -> Floats:
        """Return the gradient with respect to the weights, from that of the tables."""
        if not len(self.phi):
            return gradient.copy()
        full = layout.tables
        out, nodes = np.empty(layout.n_parameters), int(layout.node_offset[-1])
        out[:nodes] = gradient[:nodes]
        self._multiply(gradient, full.edge_offset, layout.edges, layout.edge_offset, out)
        return out

    def fold_pairs(self, tables: PairTables) -> PairTables:
        """Return gradients with respect to the weights of pairs, from those of their tables."""
        if self.is_plain.all():
            return tables
        shapes = self.widths[tables.edges]
        offsets = table_offsets(shapes)
        out = np.empty(int(offsets[-1]))
        self._multiply(tables.values, tables.offsets, tables.edges, offsets, out)
        return PairTables(tables.edges, shapes, out, offsets)

    def weights_of(self, theta: Floats, edges: Edges) -> Floats:
        """Return the weights that tables have: the inverse of :meth:`expand`."""
        return replace(self, phi=self.dual).fold(theta, self.layout(edges))

    @cached_property
    def is_plain(self) -> Mask:
        """Which columns have their states as features."""
        return np.asarray(self.widths == self.states)

    @cached_property
    def free(self) -> Integers:
        """Numbers of features that do not follow from the others: of states, all but one."""
        return self.widths - self.is_plain

    @cached_property
    def squared(self) -> Features:
        """Features that fold a diagonal of second derivatives."""
        return replace(self, phi=self.phi**2)

    @cached_property
    def _stacks(self) -> tuple[Integers, Integers, list[Floats | None]]:
        """Columns of equal shape together: the stack of each, its place in it, and the stacks.

        None stands for columns that have their states as features.
        """
        shapes, stack = np.unique(
            np.stack((self.states, self.widths), axis=1), axis=0, return_inverse=True
        )
        stack = stack.reshape(-1)
        place, stacks = np.zeros(len(self.states), np.int64), []
        for k, (s, width) in enumerate(shapes.tolist()):
            members = np.flatnonzero(stack == k)
            place[members] = np.arange(len(members))
            stacks.append(None if s == width else np.stack([self.matrix(int(i)) for i in members]))
        return stack, place, stacks

    def _multiply(
        self,
        values: Floats,
        offsets: Integers,
        edges: Edges,
        out_offsets: Integers,
        out: Floats,
        *,
        widen: bool = False,
    ) -> None:
        """Write ``Phi_i' G Phi_j`` of every pair, or with `widen` ``Phi_i W Phi_j'``."""
        stack, place, stacks = self._stacks
        kind = stack[edges[:, 0]] * len(stacks) + stack[edges[:, 1]]
        sizes = self.widths if widen else self.states
        for own in np.flatnonzero(np.bincount(kind)).tolist():
            tall, wide = divmod(own, len(stacks))
            chosen = np.flatnonzero(kind == own)
            i, j = edges[chosen].T
            shape = (len(chosen), int(sizes[i[0]]), int(sizes[j[0]]))
            size = shape[1] * shape[2]
            block = values[offsets[chosen][:, None] + np.arange(size)].reshape(shape)
            left, right = stacks[tall], stacks[wide]
            if left is not None:
                phi = left[place[i]]
                block = (phi if widen else phi.transpose(0, 2, 1)) @ block
            if right is not None:
                phi = right[place[j]]
                block = block @ (phi.transpose(0, 2, 1) if widen else phi)
            flat = block.reshape(len(chosen), -1)
            out[out_offsets[chosen][:, None] + np.arange(flat.shape[1])] = flat
