"""The state of message passing, and a run of it.

The compiled loops know integers and floats only. This module keeps what they need from one run to
the next: a run that starts from an earlier state refreshes the potentials that changed, and the
residual schedule then visits only the nodes that the change reaches. Messages are plain
probabilities where every table's span allows it and all edges weigh one, logarithms otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core import Layout
from edgegraft.core.tables import stretches
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ModelError
from edgegraft.inference.floors import Floored
from edgegraft.inference.wiring import common_pairs, wire
from edgegraft.kernels.messages.beliefs import linear_marginals, log_marginals
from edgegraft.kernels.messages.linear_messages import WIDEST
from edgegraft.kernels.messages.schedules import LINEAR, LOG, MAX, chase, flood
from edgegraft.kernels.messages.wiring import Potentials, Wiring, fill_potentials

Schedule = Literal["residual", "flooding"]


class MessageState(NamedTuple):
    """What message passing carries from one run to the next; its arrays are not changed."""

    layout: Layout
    wiring: Wiring
    weight: Floats  # (m,) edge appearance probabilities; ones in plain belief propagation
    value: Floats  # the messages
    plain: bool  # whether they are probabilities; logarithms otherwise
    pending: Floats  # (n,) how far each node's answers are out of date
    dirty: NDArray[np.bool_]  # (n,) nodes whose answers were never worked out on this graph
    theta: Floats  # finite parameters of the last run; nan where there was none
    potentials: Potentials | None  # what was made of them
    beliefs: Floats  # marginals of the last run; empty before the first


class Plan(NamedTuple):
    """How to pass messages."""

    schedule: Schedule
    damping: float
    tol: float
    max_iter: int


class Passed(NamedTuple):
    """The outcome of a run."""

    state: MessageState
    inverse: Floats  # reciprocals of plain messages
    converged: bool
    n_iter: int  # sweeps, or as many single updates as would make so many sweeps
    n_updates: int
    residual: float


def cold_state(layout: Layout, weight: Floats | None = None) -> MessageState:
    """Return the state of uniform messages."""
    return MessageState(
        layout=layout,
        wiring=wire(layout),
        weight=np.ones(layout.n_edges) if weight is None else weight,
        value=np.zeros(int(layout.states[layout.edges].sum())),
        plain=False,
        pending=np.zeros(layout.n_variables),
        dirty=np.ones(layout.n_variables, np.bool_),
        theta=np.full(layout.n_parameters, np.nan),
        potentials=None,
        beliefs=np.empty(0),
    )


def regrown(state: MessageState, layout: Layout, weight: Floats | None = None) -> MessageState:
    """Return the state for another graph, with the messages of the edges that are in both.

    Only the ends of edges that came, went or changed their weight are out of date.
    """
    if not np.array_equal(layout.states, state.layout.states):
        raise ModelError("a state can only grow to a graph over the same variables and states")
    fresh = cold_state(layout, weight)
    new, old = common_pairs(state.layout, layout.edges)
    logs = np.log(state.value) if state.plain else state.value
    sides: tuple[Callable[[Wiring], Integers], ...] = (
        lambda wiring: wiring.into_first,
        lambda wiring: wiring.reverse[wiring.into_first],
    )
    for column, side in enumerate(sides):
        length = layout.states[layout.edges[new, column]]
        to = fresh.wiring.links[side(fresh.wiring)[new], 0]
        origin = state.wiring.links[side(state.wiring)[old], 0]
        fresh.value[stretches(to, length)] = logs[stretches(origin, length)]
    size = np.diff(layout.edge_offset)[new]
    nodes = int(layout.node_offset[-1])
    fresh.theta[:nodes] = state.theta[:nodes]
    fresh.theta[stretches(layout.edge_offset[new], size)] = state.theta[
        stretches(state.layout.edge_offset[old], size)
    ]
    dirty = state.dirty.copy()
    dirty[np.delete(layout.edges, new, axis=0)] = True
    dirty[np.delete(state.layout.edges, old, axis=0)] = True
    dirty[layout.edges[new[fresh.weight[new] != state.weight[old]]]] = True
    return fresh._replace(pending=state.pending, dirty=dirty)


def pass_messages(
    given: Floored, state: MessageState, plan: Plan, maximise: bool = False
) -> Passed:
    """Pass messages until they stop changing or the plan's patience ends."""
    wiring = state.wiring
    potentials, dirty = _refresh(given.theta, state)
    plain = not maximise and _may_be_plain(potentials)
    value, inverse = _in_domain(state, plain)
    kind = LINEAR if plain else MAX if maximise else LOG
    n_messages = len(wiring.reverse)
    key = state.pending.copy()
    if n_messages == 0:
        n_updates = n_iter = 0
        residual = 0.0
    elif plan.schedule == "flooding":
        value, inverse, n_iter, residual = flood(
            wiring, potentials, value, inverse, kind, plan.damping, plan.tol, plan.max_iter,
            given.negligible,
        )  # fmt: skip
        n_updates = n_iter * n_messages
        residual /= 1.0 - plan.damping
        key[:] = residual
    else:
        n_updates = chase(
            wiring, potentials, value, inverse, kind, plan.damping, plan.tol,
            plan.max_iter * n_messages, given.negligible, dirty, key,
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
    return Passed(
        after, inverse, bool(residual <= plan.tol), int(n_iter), int(n_updates), float(residual)
    )


def beliefs_of(passed: Passed, theta: Floats) -> tuple[Floats, float]:
    """Return the marginals that the messages stand for, and the free energy's log Z."""
    state = passed.state
    assert state.potentials is not None  # a run has filled them
    values = np.empty(state.layout.n_parameters)
    if len(values) == 0:
        return values, 0.0
    if state.plain:
        log_z = linear_marginals(
            state.wiring, state.potentials, state.value, passed.inverse, values
        )
    else:
        log_z = log_marginals(state.wiring, state.potentials, state.value, values)
        values[np.isneginf(theta)] = 0.0
    return values, float(log_z)


def _refresh(theta: Floats, state: MessageState) -> tuple[Potentials, NDArray[np.bool_]]:
    """Return the potentials under `theta`, and the nodes whose answers they put out of date."""
    old = state.potentials
    potentials = _room(state) if old is None else Potentials(*(array.copy() for array in old))
    dirty = state.dirty.copy()
    fill_potentials(theta, state.theta, old is None, state.wiring, potentials, dirty)
    return potentials, dirty


def _room(state: MessageState) -> Potentials:
    layout = state.layout
    size = 2 * int(layout.edge_offset[-1] - layout.edge_offset[0])
    nodes, n, m = int(layout.node_offset[-1]), layout.n_variables, layout.n_edges
    return Potentials(
        unary=np.empty(nodes),
        unary_exp=np.empty(nodes),
        log_tables=np.empty(size),
        tables=np.empty(size),
        node_top=np.empty(n),
        edge_top=np.empty(m),
        node_span=np.empty(n),
        edge_span=np.empty(m),
        weight=state.weight,
    )


def _may_be_plain(potentials: Potentials) -> bool:
    return bool((potentials.weight == 1.0).all() and (potentials.edge_span <= WIDEST).all())


def _in_domain(state: MessageState, plain: bool) -> tuple[Floats, Floats]:
    """Return a copy of the messages, plain with their reciprocals or as logarithms."""
    if plain:
        # The messages of another theta may span more than those of this one ever can.
        value = state.value.copy() if state.plain else np.exp(np.maximum(state.value, -WIDEST))
        return value, 1.0 / value
    return (np.log(state.value) if state.plain else state.value.copy()), np.empty(0)
