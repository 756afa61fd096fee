"""Evidence: from names and labels to a smaller model.

Conditioning on ``x_O = o`` leaves a pairwise model over the other variables: edges between an
observed and a free variable become terms of the free one's node vector, everything that is fixed
becomes a constant, and

    log Z(o) = constant + log Z(smaller model),    log p(o) = log Z(o) - log Z.

Missing cells of a row are completed given the known ones. A cell none of whose neighbours are
missing has a closed-form conditional. The others are completed together, exactly by junction tree
if that is affordable, otherwise by Gibbs sampling (draws), or by Gibbs sampling that is cooled down
and ends in a state that no single change improves (likeliest): approximations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import stretches
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ImpossibleEvidenceError, ModelError, suggestion
from edgegraft.inference import ExactBudget, ExactEngine, affordable
from edgegraft.kernels.conditionals.gaps import sum_over_gaps
from edgegraft.kernels.conditionals.row_conditionals import (
    Neighbours,
    fill_alone,
    log_conditionals,
    sweep_cells,
)
from edgegraft.model.answers import NodeMarginals
from edgegraft.table import Schema


class Conditioned(NamedTuple):
    """A model given evidence, over the variables that are left."""

    layout: Layout
    theta: Floats
    constant: float
    codes: Integers  # of the evidence, -1 for a variable that is free
    free: Integers  # the free variables, those of the smaller model

    def complete(self, assignment: Integers) -> Integers:
        """Return the codes with those of the free variables."""
        codes = self.codes.copy()
        codes[self.free] = assignment
        return codes


def parse_evidence(schema: Schema, given: Mapping[str, Any] | None) -> dict[int, int]:
    """Return evidence as codes, naming what the model does not know."""
    evidence = {}
    for name, label in (given or {}).items():
        i = variable_index(schema, name)
        code = schema[i].state_of(label)
        if code is None:
            raise ModelError(f"variable {name!r} has no category {label!r}; {schema[i].expected()}")
        evidence[i] = code
    return evidence


def with_evidence(found: NodeMarginals, schema: Schema, given: Mapping[str, Any]) -> NodeMarginals:
    """Return the marginals of all variables of a model: those that are given are certain."""
    codes, start = parse_evidence(schema, given), np.cumsum(schema.n_states) - schema.n_states
    free = np.ones(len(schema), np.bool_)
    free[list(codes)] = False
    values = np.zeros(int(schema.n_states.sum()))
    values[np.repeat(free, schema.n_states)] = found.probabilities
    values[[start[i] + code for i, code in codes.items()]] = 1.0
    return replace(found, schema=schema, probabilities=values)


def variable_index(schema: Schema, name: str) -> int:
    """Return the number of a variable, refusing names that the model does not have."""
    if name not in schema:
        hint = suggestion(str(name), schema.names)
        raise ModelError(f"the model has no variable {name!r}; {hint}")
    return schema.index(name)


def condition(layout: Layout, theta: Floats, codes: Integers) -> Conditioned:
    """Return the model of the variables whose code is -1, given the codes of the others.

    Evidence that has probability zero whatever the rest does is refused.
    """
    observed = codes >= 0
    free = np.flatnonzero(~observed)
    low, high = layout.edges[:, 0], layout.edges[:, 1]
    inner = ~observed[low] & ~observed[high]
    rank = np.cumsum(~observed) - 1
    smaller = Layout(layout.states[free], rank[layout.edges[inner]])
    out = np.empty(smaller.n_parameters)
    n_nodes = int(smaller.node_offset[-1])
    out[:n_nodes] = theta[stretches(layout.node_offset[free], layout.states[free])]
    sizes = np.diff(layout.edge_offset)[inner]
    out[n_nodes:] = theta[stretches(layout.edge_offset[:-1][inner], sizes)]
    constant = _fold(layout, theta, codes, out, smaller.node_offset, rank)
    if constant == -np.inf:
        raise ImpossibleEvidenceError("the evidence contradicts itself: its probability is zero")
    return Conditioned(smaller, out, constant, codes, free)


def _fold(
    layout: Layout,
    theta: Floats,
    codes: Integers,
    out: Floats,
    node_offset: Integers,
    rank: Integers,
) -> float:
    """Add the edges to observed variables to the free ones' node vectors; return the constant."""
    observed = codes >= 0
    low, high = layout.edges[:, 0], layout.edges[:, 1]
    start, columns = layout.edge_offset[:-1], layout.states[high]
    constant = float(theta[layout.node_offset[:-1][observed] + codes[observed]].sum())
    both = observed[low] & observed[high]
    constant += float(
        theta[start[both] + codes[low[both]] * columns[both] + codes[high[both]]].sum()
    )
    rows = observed[low] & ~observed[high]
    at = stretches(start[rows] + codes[low[rows]] * columns[rows], columns[rows])
    np.add.at(out, stretches(node_offset[rank[high[rows]]], columns[rows]), theta[at])
    cols = ~observed[low] & observed[high]
    length = layout.states[low[cols]]
    at = stretches(start[cols] + codes[high[cols]], length, np.repeat(columns[cols], length))
    np.add.at(out, stretches(node_offset[rank[low[cols]]], length), theta[at])
    return constant


ImputeMethod = Literal["map", "draw"]

ROW_BUDGET = ExactBudget(seconds=0.02)  # rows are many
_SWEEPS = 200  # of chains that complete a row; as many again, without noise, for the likeliest


def complete_rows(
    layout: Layout,
    theta: Floats,
    neighbours: Neighbours,
    codes: Integers,
    method: ImputeMethod,
    rng: np.random.Generator,
) -> tuple[Integers, int]:
    """Return `codes` without missing cells, and the number of rows that are approximations."""
    if method not in ("map", "draw"):
        raise ValueError(f"method must be 'map' or 'draw', found {method!r}")
    out, exact, cooling = codes.copy(), ExactEngine(), np.ones(_SWEEPS)
    n_approximate = 0
    uniform = rng.random(codes.shape) if method == "draw" else np.empty((0, 0))
    if method == "map":
        cooling = np.concatenate((np.linspace(1.0, 0.05, _SWEEPS), np.zeros(_SWEEPS)))
    fill_alone(theta, codes, codes < 0, layout.states, layout.node_offset, neighbours, uniform, out)
    for r in np.flatnonzero((out < 0).any(axis=1)):
        row = out[r]
        try:
            # What was filled in just now is independent of the rest given the known cells, so
            # conditioning on the known ones alone or on both is the same.
            part = condition(layout, theta, row)
            state = affordable(part.layout, ROW_BUDGET)  # searched once per pattern of gaps
            if state is not None and method == "map":
                row[part.free] = exact.map(part.theta, state).assignment
            elif state is not None:
                row[part.free] = exact.sample(part.theta, state, 1, rng)[0]
        except ModelError as error:
            raise ImpossibleEvidenceError(f"row {r} is impossible: {error}") from error
        if state is None:
            uniform = rng.random((len(cooling), len(part.free)))
            sweep_cells(
                theta, out[r : r + 1], part.free, np.array([0, len(part.free)]), layout.states,
                layout.node_offset, neighbours, cooling, uniform,
            )  # fmt: skip
            n_approximate += 1
    return out, n_approximate


@dataclass(frozen=True)
class _GapRule:
    """How missing cells are summed over."""

    states: int = 512  # of connected missing cells that are enumerated, or draws: errors of .022
    burn_in: int = 50  # sweeps before the draws
    forbidden: float = -1000.0  # stands for a log-potential of minus infinity: exp is zero


_GAPS = _GapRule()


def expected_conditionals(
    layout: Layout, theta: Floats, neighbours: Neighbours, codes: Integers, i: int
) -> Floats:
    """Return ``p(x_i | known cells)`` of rows, the missing ones summed over, by row.

    Exact if that is affordable, else as by :func:`summed_conditionals` for each state.
    """
    asked = codes.copy()
    asked[:, i] = -1
    distinct, which = np.unique(asked, axis=0, return_inverse=True)
    out, drawn = np.empty((len(distinct), int(layout.states[i]))), []
    for r, row in enumerate(distinct):
        part = condition(layout, theta, row)
        state = affordable(part.layout, ROW_BUDGET)  # searched once per pattern of gaps
        if state is None:
            drawn.append(r)
            continue
        values = ExactEngine().run(part.theta, state)[0].values
        out[r] = part.layout.node(values, int(np.searchsorted(part.free, i)))
    n_states = out.shape[1]
    rows = np.repeat(distinct[drawn], n_states, axis=0)
    rows[:, i] = np.tile(np.arange(n_states), len(drawn))
    chance = np.exp(summed_conditionals(layout, theta, neighbours, rows)[:, i])
    chance = chance.reshape(-1, n_states)
    with np.errstate(invalid="ignore"):  # nan if no state is possible
        out[drawn] = chance / chance.sum(axis=1, keepdims=True)
    return np.asarray(out[which.ravel()])


def summed_conditionals(
    layout: Layout, theta: Floats, neighbours: Neighbours, codes: Integers
) -> Floats:
    """Return ``log p(x_i | known rest)`` of the known cells of rows, nan if a cell is missing.

    Missing cells are summed over: exactly, or by draws of those that are connected if they have
    more than 512 states together.
    """
    out, gaps = np.empty(codes.shape), (codes < 0).any(axis=1)
    given = layout.states, layout.node_offset, neighbours
    known = out[~gaps]
    log_conditionals(theta, codes[~gaps], *given, np.empty(layout.states.max(initial=0)), known)
    out[~gaps] = known
    if gaps.any():
        rng, rows = np.random.default_rng(0), codes[gaps]
        uniform = rng.random((_GAPS.burn_in + _GAPS.states, layout.n_variables))
        summed, finite = np.empty(rows.shape), np.maximum(theta, _GAPS.forbidden)
        sum_over_gaps(finite, rows, *given, _GAPS.burn_in, uniform, rng.random(rows.shape), summed)
        out[gaps] = np.where(summed < _GAPS.forbidden / 2, -np.inf, summed)
    return out
