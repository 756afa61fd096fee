"""The state of message passing, and a run of it.

The compiled loops know integers and floats only. This module keeps what they need from one run to
the next: a run that starts from an earlier state refreshes the potentials that changed, and the
schedule then visits only the nodes that the change reaches. Messages are plain
probabilities if every table's span allows it and all edges weigh one, logarithms otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.checks import check_theta, owner_of
from edgegraft.core.pairs import find_pairs, stretches
from edgegraft.core.types import Floats, Mask
from edgegraft.errors import ModelError
from edgegraft.kernels.messages.beliefs import (
    MessagePotentials,
    Wiring,
    fill_potentials,
    write_marginals,
)
from edgegraft.kernels.messages.forests import Forests, root_forest
from edgegraft.kernels.messages.schedules import LINEAR, LOG, MAX, chase
from edgegraft.kernels.messages.updates import WIDEST

#: Exponentials of less than minus this are zero in double precision.
UNDERFLOW = 800.0


class MessageState(NamedTuple):
    """What message passing carries from one run to the next; its arrays are not changed."""

    layout: Layout
    wiring: Wiring
    weight: Floats  # (m,) edge appearance probabilities; ones in plain belief propagation
    forests: Forests | None  # those that the weights come from
    value: Floats  # the messages
    plain: bool  # whether they are probabilities; logarithms otherwise
    pending: Floats  # (n,) how far each node's answers are out of date
    dirty: Mask  # (n,) nodes whose answers were never worked out on this graph
    theta: Floats  # finite parameters of the last run; nan before the first
    potentials: MessagePotentials | None  # what was made of them
    beliefs: Floats  # marginals of the last run; empty before the first

    @property
    def logs(self) -> Floats:
        """The messages as logarithms."""
        return np.log(self.value) if self.plain else self.value


class Floored(NamedTuple):
    """Finite parameters and what they stand for.

    Impossible configurations (entries of ``-inf``) are given a finite weight so small that all of
    them together weigh nothing beside one possible configuration,

        floor = -(sum of the spans of all finite potentials + sum_i log s_i + 800),

    so no loop ever meets an infinity, beliefs of impossible states underflow to zeros, and a model
    in which nothing is possible shows itself by a log Z near the floor.
    """

    theta: Floats
    least: float  # a possible configuration scores no less; -inf if everything is possible
    negligible: float  # a log message below this means "impossible"; -inf likewise


def floored(theta: Floats, layout: Layout, weight: Floats) -> Floored:
    """Return `theta` with every ``-inf`` replaced by a floor, or refuse it.

    >>> floored(np.array([0.0, -np.inf]), Layout([2], []), np.empty(0)).theta
    array([    0., -1024.])
    """
    theta = check_theta(theta, layout).copy()  # states remember it, callers may write to theirs
    if np.isfinite(theta).all():
        return Floored(theta, -np.inf, -np.inf)
    return _replace_zeros(theta, layout, weight)


def _replace_zeros(theta: Floats, layout: Layout, weight: Floats) -> Floored:
    n, states = layout.n_variables, layout.states
    starts = np.concatenate((layout.node_offset[:-1], layout.edge_offset[:-1]))
    zero = np.isneginf(theta)
    top = np.maximum.reduceat(theta, starts)
    if np.isneginf(top).any():
        at = int(starts[int(np.argmax(np.isneginf(top)))])
        raise ModelError(
            f"every entry of {owner_of(layout, at)} is -inf: the model allows no configuration"
        )
    least = np.minimum.reduceat(np.where(zero, np.inf, theta), starts)
    span = top - least
    needed = float(span.sum() + np.log(states).sum() + UNDERFLOW)
    # A power of two, so that small changes of the parameters leave the floor where it was.
    depth = 2.0 ** np.ceil(np.log2(needed))
    deep = np.repeat(top, np.concatenate((states, np.diff(layout.edge_offset)))) - depth
    around = span[:n].copy()
    for side in (0, 1):
        np.add.at(around, layout.edges[:, side], span[n:] / weight)
    return Floored(
        theta=np.where(zero, deep, theta),
        least=float(least.sum()),
        negligible=-float(around.max()) - 50.0,
    )


class Passed(NamedTuple):
    """The outcome of passing messages."""

    state: MessageState
    inverse: Floats  # reciprocals of plain messages
    converged: bool
    n_iter: int  # sweeps, or as many single updates as would make so many sweeps
    n_updates: int
    residual: float
    damping: float


def wire(layout: Layout) -> Wiring:
    """Return the wiring of the two messages of every edge of `layout`.

    >>> wiring = wire(Layout([2, 3, 2], [(0, 1), (1, 2)]))
    >>> wiring.start
    array([0, 1, 3, 4])
    >>> wiring.reverse
    array([1, 0, 3, 2])
    """
    m, n, states = layout.n_edges, layout.n_variables, layout.states
    first, second = layout.edges[:, 0], layout.edges[:, 1]
    owner, source = np.concatenate((first, second)), np.concatenate((second, first))
    sorted_messages = np.lexsort((source, owner))
    place = np.empty(2 * m, np.int64)
    place[sorted_messages] = np.arange(2 * m)
    reverse = np.concatenate((place[m:], place[:m]))[sorted_messages]
    edge = np.tile(np.arange(m), 2)[sorted_messages]
    owner, source = owner[sorted_messages], source[sorted_messages]
    start = np.searchsorted(owner, np.arange(n + 1)).astype(np.int64)
    sizes = states[owner] * states[source]
    offset = np.cumsum(states[owner]) - states[owner]
    columns = (offset, offset[reverse], np.cumsum(sizes) - sizes, states[source], source)
    links = np.stack(columns, axis=1)
    by_degree = np.argsort(start[:-1] - start[1:], kind="stable")
    whole = np.ones(n, np.bool_), np.ones(m, np.bool_)
    order, _ = root_forest(by_degree, start, links, reverse, edge, *whole)
    return Wiring(
        start=start,
        links=links,
        reverse=reverse,
        edge=edge,
        into_first=place[:m].copy(),
        states=states,
        node_offset=layout.node_offset,
        edge_offset=layout.edge_offset,
        order=order,
    )


def cold_state(layout: Layout, wiring: Wiring, forests: Forests | None = None) -> MessageState:
    """Return the state of uniform messages."""
    return MessageState(
        layout=layout,
        wiring=wiring,
        weight=np.ones(layout.n_edges) if forests is None else forests.probability,
        forests=forests,
        value=np.zeros(int(layout.states[layout.edges].sum())),
        plain=False,
        pending=np.zeros(layout.n_variables),
        dirty=np.ones(layout.n_variables, np.bool_),
        theta=np.full(layout.n_parameters, np.nan),
        potentials=None,
        beliefs=np.empty(0),
    )


def carry_messages(state: MessageState, fresh: MessageState) -> MessageState:
    """Return the cold state of another graph with the messages of the edges that are in both.

    Only the ends of edges that came, went or changed their weight are out of date.
    """
    layout, before = fresh.layout, state.layout
    if not np.array_equal(layout.states, before.states):
        raise ModelError("a state can only grow to a graph over the same variables and states")
    number = find_pairs(layout.edges, before.edges, layout.n_variables)
    new = np.flatnonzero(number >= 0)
    old = number[new]
    logs = state.logs
    to, origin = fresh.wiring.into_first[new], state.wiring.into_first[old]
    for column in (0, 1):
        length = layout.states[layout.edges[new, column]]
        source = stretches(state.wiring.links[origin, 0], length)
        fresh.value[stretches(fresh.wiring.links[to, 0], length)] = logs[source]
        to, origin = fresh.wiring.reverse[to], state.wiring.reverse[origin]
    size = np.diff(layout.edge_offset)[new]
    nodes = int(layout.node_offset[-1])
    fresh.theta[:nodes] = state.theta[:nodes]
    cells = stretches(before.edge_offset[old], size)
    fresh.theta[stretches(layout.edge_offset[new], size)] = state.theta[cells]
    dirty = state.dirty.copy()
    dirty[np.delete(layout.edges, new, axis=0)] = True
    dirty[np.delete(before.edges, old, axis=0)] = True
    dirty[layout.edges[new[fresh.weight[new] != state.weight[old]]]] = True
    return fresh._replace(pending=state.pending, dirty=dirty)


def pass_messages(
    given: Floored,
    state: MessageState,
    damping: float,
    tol: float,
    max_iter: int,
    *,
    maximise: bool = False,
) -> Passed:
    """Pass messages until they stop changing or `max_iter` sweeps are over."""
    wiring = state.wiring
    potentials, dirty = _refresh(given.theta, state)
    plain = not maximise and bool(
        (potentials.weight == 1.0).all() and (potentials.edge_span <= WIDEST).all()
    )
    value, inverse = _in_domain(state, plain)
    kind = LINEAR if plain else MAX if maximise else LOG
    n_messages = len(wiring.reverse)
    key = state.pending.copy()
    n_updates, n_iter, residual = 0, 0, 0.0
    if n_messages:
        n_updates = chase(
            wiring, potentials, value, inverse, kind, damping, tol, max_iter * n_messages,
            given.negligible, dirty, key,
        )  # fmt: skip
        n_iter = -(-n_updates // n_messages)
        residual = float(key.max())
    after = state._replace(
        value=value,
        plain=plain,
        pending=key,
        dirty=np.zeros_like(dirty),
        theta=given.theta,
        potentials=potentials,
    )
    converged = bool(residual <= tol)
    return Passed(after, inverse, converged, int(n_iter), int(n_updates), float(residual), damping)


def beliefs_of(passed: Passed, theta: Floats) -> tuple[Floats, float]:
    """Return the marginals that the messages stand for, and the free energy's log Z."""
    state = passed.state
    assert state.potentials is not None  # a run has filled them
    values = np.empty(state.layout.n_parameters)
    if len(values) == 0:
        return values, 0.0
    messages = state.value, passed.inverse, state.plain
    log_z = write_marginals(state.wiring, state.potentials, *messages, values)
    if not state.plain:
        values[np.isneginf(theta)] = 0.0
    return values, float(log_z)


def _refresh(theta: Floats, state: MessageState) -> tuple[MessagePotentials, Mask]:
    """Return the potentials under `theta`, and the nodes whose answers they put out of date."""
    old, dirty = state.potentials, state.dirty.copy()
    if old is None:
        layout = state.layout
        nodes, n, m = int(layout.node_offset[-1]), layout.n_variables, layout.n_edges
        size = 2 * int(layout.edge_offset[-1] - nodes)
        sizes = (nodes, nodes, size, size, n, m, n, m)
        potentials = MessagePotentials(*(*map(np.empty, sizes), state.weight))
    else:
        potentials = MessagePotentials(*(array.copy() for array in old))
    fill_potentials(theta, state.theta, old is None, state.wiring, potentials, dirty)
    return potentials, dirty


def _in_domain(state: MessageState, plain: bool) -> tuple[Floats, Floats]:
    """Return a copy of the messages, plain with their reciprocals or as logarithms."""
    if plain:
        # The messages of another theta may span more than those of this one ever can.
        value = state.value.copy() if state.plain else np.exp(np.maximum(state.value, -WIDEST))
        return value, 1.0 / value
    return state.logs.copy(), np.empty(0)
