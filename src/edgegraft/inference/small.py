"""Exact marginals of small graphs by NumPy, for which nothing has to be compiled.

The two sweeps of :mod:`edgegraft.kernels.elimination.junction`, in logarithms, one bucket after
another. A bucket takes some ten calls of NumPy, a run over a dozen variables less than a
millisecond. The kernels take less still, but several seconds to compile the first time.
"""

from __future__ import annotations

import math
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
        return _calibrate(theta, *self._known), state, describe_run(state)


class _Part(NamedTuple):
    """A table over some of a clique's variables."""

    shape: tuple[int, ...]  # with ones for the others
    others: tuple[int, ...]  # their axes


class _Bucket(NamedTuple):
    """Where the tables of a bucket lie; the axes of its clique are its scope and its own states."""

    tables: list[tuple[slice, _Part]]  # blocks of the node and of the edges that end in it
    children: list[tuple[int, _Part]]


def _buckets(tree: JunctionTree) -> list[_Bucket]:
    n = len(tree.variable)
    scopes = [tree.scope[tree.scope_start[k] : tree.scope_start[k + 1]].tolist() for k in range(n)]
    states = tree.states.tolist()

    def part(k: int, members: list[int]) -> _Part:
        axes = [*scopes[k], k]
        shape = tuple(states[v] if v in members else 1 for v in axes)
        return _Part(shape, tuple(a for a, v in enumerate(axes) if v not in members))

    def block(k: int, at: int, members: list[int]) -> tuple[slice, _Part]:
        found = part(k, members)
        return slice(at, at + math.prod(found.shape)), found

    def bucket(k: int) -> _Bucket:
        local = slice(tree.local_start[k], tree.local_start[k + 1])
        edges = zip(tree.edge_block[local].tolist(), tree.other[local].tolist(), strict=True)
        tables = [block(k, int(tree.node_block[k]), [k])]
        tables += [block(k, at, [j, k]) for at, j in edges]
        children = tree.child[tree.child_start[k] : tree.child_start[k + 1]].tolist()
        return _Bucket(tables, [(c, part(k, scopes[c])) for c in children])

    return [bucket(k) for k in range(n)]


def _calibrate(theta: Floats, tree: JunctionTree, buckets: list[_Bucket]) -> Marginals:
    """Go up and down the tree; a child's message makes way for the marginals of its scope."""
    cliques, messages, log_partition = list[Floats](), list[Floats](), 0.0
    blocks = theta[tree.place]
    for bucket in buckets:
        clique = np.zeros(())
        for cells, part in bucket.tables:
            clique = clique + blocks[cells].reshape(part.shape)
        for child, part in bucket.children:
            clique = clique + messages[child].reshape(part.shape)
        message = np.logaddexp.reduce(clique, axis=-1)
        cliques.append(np.exp(clique - message[..., None]))
        messages.append(message)
        if not message.ndim:
            log_partition += float(message)
    above = [np.ones(()) for _ in buckets]
    for k in range(len(buckets) - 1, -1, -1):
        joint = cliques[k] * above[k][..., None]
        for cells, part in buckets[k].tables:
            blocks[cells] = joint.sum(axis=part.others).ravel()
        for child, part in buckets[k].children:
            above[child] = joint.sum(axis=part.others)
    out = np.empty_like(theta)
    out[tree.place] = blocks
    return Marginals(out, log_partition)
