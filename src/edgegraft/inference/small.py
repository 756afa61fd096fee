"""Exact marginals of small graphs by NumPy, for which nothing has to be compiled.

The two sweeps of :mod:`edgegraft.kernels.elimination.junction`, in logarithms, one bucket after
another. A bucket takes some ten calls of NumPy, a run over a dozen variables less than a
millisecond. The kernels take less still, but several seconds to compile the first time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core.checks import check_theta
from edgegraft.core.types import Floats
from edgegraft.inference.affordability import ExactState
from edgegraft.inference.engine import Info, Marginals
from edgegraft.inference.exact import ExactEngine, describe_run
from edgegraft.kernels.elimination.buckets import JunctionTree

MAX_VARIABLES = 48


class SmallExactEngine(ExactEngine):
    """Exact inference, by NumPy if there are at most `MAX_VARIABLES` variables.

    Examples
    --------
    >>> from edgegraft.core import Layout
    >>> engine = SmallExactEngine()
    >>> marginals, *_ = engine.run(np.zeros(8), engine.init(Layout([2, 2], [(0, 1)])))
    >>> round(marginals.log_partition, 4)
    1.3863
    """

    _known: tuple[JunctionTree, list[_Bucket]] | None = None

    def run(
        self, theta: Floats, state: ExactState, rng: np.random.Generator | None = None
    ) -> tuple[Marginals, ExactState, Info]:
        """Return the exact marginals and log-partition function; `rng` is not used."""
        theta = check_theta(theta, state.layout)
        if len(state.tree.variable) > MAX_VARIABLES or not np.isfinite(theta).all():
            return super().run(theta, state, rng)
        if self._known is None or self._known[0] is not state.tree:
            self._known = state.tree, _buckets(state.tree)
        return _calibrate(theta, self._known[1]), state, describe_run(state)


class _Part(NamedTuple):
    """A table over some of a clique's variables."""

    shape: tuple[int, ...]  # with ones for the others
    others: tuple[int, ...]  # their axes


class _Edge(NamedTuple):
    """The table of an edge that ends in a bucket."""

    cells: slice  # in the parameters
    shape: tuple[int, int]  # of the table there
    own_first: bool  # whether its rows are the bucket's own states
    part: _Part

    def read(self, theta: Floats) -> Floats:
        table = theta[self.cells].reshape(self.shape)
        return (table.T if self.own_first else table).reshape(self.part.shape)

    def write(self, table: Floats, out: Floats) -> None:
        out[self.cells] = (table.T if self.own_first else table).ravel()


class _Bucket(NamedTuple):
    """Where the tables of a bucket lie; the axes of its clique are its scope and its own states."""

    node: slice
    others: tuple[int, ...]  # all axes but the own
    edges: list[_Edge]
    children: list[tuple[int, _Part]]


def _buckets(tree: JunctionTree) -> list[_Bucket]:
    n = len(tree.variable)
    scopes = [tree.scope[tree.scope_start[k] : tree.scope_start[k + 1]].tolist() for k in range(n)]
    states = tree.states.tolist()

    def part(k: int, members: list[int]) -> _Part:
        axes = [*scopes[k], k]
        shape = tuple(states[v] if v in members else 1 for v in axes)
        return _Part(shape, tuple(a for a, v in enumerate(axes) if v not in members))

    def edge(k: int, e: int) -> _Edge:
        j, at = int(tree.other[e]), int(tree.table[e])
        own_first = bool(tree.other_stride[e] == 1)
        shape = (states[k], states[j]) if own_first else (states[j], states[k])
        return _Edge(slice(at, at + states[k] * states[j]), shape, own_first, part(k, [j, k]))

    def bucket(k: int) -> _Bucket:
        at = int(tree.unary[k])
        edges = [edge(k, e) for e in range(tree.local_start[k], tree.local_start[k + 1])]
        children = tree.child[tree.child_start[k] : tree.child_start[k + 1]].tolist()
        below = [(c, part(k, scopes[c])) for c in children]
        return _Bucket(slice(at, at + states[k]), tuple(range(len(scopes[k]))), edges, below)

    return [bucket(k) for k in range(n)]


def _calibrate(theta: Floats, tree: list[_Bucket]) -> Marginals:
    """Go up and down the tree; a child's message makes way for the marginals of its scope."""
    cliques, messages, log_partition = list[Floats](), list[Floats](), 0.0
    for bucket in tree:
        clique = theta[bucket.node]
        for edge in bucket.edges:
            clique = clique + edge.read(theta)
        for child, part in bucket.children:
            clique = clique + messages[child].reshape(part.shape)
        message = np.logaddexp.reduce(clique, axis=-1)
        cliques.append(np.exp(clique - message[..., None]))
        messages.append(message)
        if not message.ndim:
            log_partition += float(message)
    out = np.empty_like(theta)
    above = [np.ones(()) for _ in tree]
    for k in range(len(tree) - 1, -1, -1):
        bucket, joint = tree[k], cliques[k] * above[k][..., None]
        out[bucket.node] = joint.sum(axis=bucket.others)
        for edge in bucket.edges:
            edge.write(joint.sum(axis=edge.part.others), out)
        for child, part in bucket.children:
            above[child] = joint.sum(axis=part.others)
    return Marginals(out, log_partition)
