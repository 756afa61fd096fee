"""The last fit of levels: whole tables, each part of them shrunk as much as the data ask for.

Tests and search see a linear and a quadratic score of a column. Once the edges are known, columns
of few levels get scores of all degrees, whose weights make up whole tables. Their weights differ in
size: those of equal degrees are larger than mixed ones, low degrees larger than high ones. So
weights of a class ``c`` (equal degrees by their degree, mixed ones by the sum of degrees) share a
ridge, found by maximising the evidence (MacKay's fixed point):

    ridge_c = gamma_c / sum of w^2,      gamma_c = sum of h / (h + 2 ridge_c),

in rows, with ``h`` the curvature of the loss. A pseudolikelihood counts every edge in two
conditionals, which is the 2. No ridge is below that of the search's scores: edges were chosen for
being large. Edges of unordered columns keep that ridge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.types import Floats, Integers
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Groups, Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import Schema


@dataclass(frozen=True)
class _Rule:
    """Columns whose tables are fitted whole, and how."""

    max_levels: int = 8  # a budget: the weights of a table are their square
    rounds: int = 5  # of ridges; three are .04 nats worse per row of bfi, on -34.1
    max_rows: float = 1e4  # ridge of weights that the data do not need


_RULE = _Rule()
_FIXED = -1  # class of weights whose ridge stays


@dataclass(frozen=True, eq=False)
class GradedRidge(Penalty):
    """A ridge for every weight of the edges, in the order of the layout.

    >>> rule = GradedRidge(weights=np.array([1.0, 2.0, 2.0, 4.0]))
    >>> rule.value(np.ones(8), Layout([2, 2], [(0, 1)]))
    9.0
    """

    weights: Floats = field(default_factory=lambda: np.zeros(0))

    def groups(self, layout: Layout) -> Groups:
        """Return the groups: nodes, then every weight alone."""
        first, last = int(layout.edge_offset[0]), int(layout.edge_offset[-1])
        offsets = np.concatenate((layout.node_offset, np.arange(first, last) + 1))
        ridge = np.concatenate((np.zeros(layout.n_variables), self.weights))
        return Groups(offsets, np.zeros(len(ridge)), ridge)


def fit_graded(
    objective: Objective, model: PairwiseMRF, ridge: float, tol: float
) -> tuple[Floats, bool] | None:
    """Return the parameters of a model's edges with whole tables, and whether the fit converged.

    None if no column is one of few levels.

    The objective is a loss of weights of scores, with which the model was fitted to `tol`; `ridge`
    is the least weight of squares.
    """
    inner = getattr(objective, "inner", None)
    widths = whole_widths(objective.schema)
    gains = widths > objective.schema.widths
    if not isinstance(inner, Pseudolikelihood) or not gains[model.edges].any():
        return None
    features = Features.of(objective.schema, inner.state_weights(), widths)
    loss, layout = featured(inner, features), features.layout(model.edges)
    first, theta = int(layout.node_offset[-1]), features.weights_of(model.theta, model.edges)
    classes, curvature = _classes(features, layout), loss.curvature(layout)[first:]
    ridges = np.full(len(classes), ridge)
    converged = False
    for _ in range(_RULE.rounds):
        rule = GradedRidge(ridge=ridge, weights=ridges)
        found = minimize(loss, rule, layout, theta, Stopping(tol, 200), quiet=True)
        theta, converged = found.theta, found.info.converged
        ridges = _evidence(theta[first:], curvature, ridges, classes, ridge, loss.n_rows)
    return features.expand(theta, layout), converged


def whole_widths(schema: Schema) -> Integers:
    """Return numbers of scores: all that make up whole tables of columns of few levels."""
    few = np.array(
        [
            variable.kind == "ordinal" and variable.n_states <= _RULE.max_levels
            for variable in schema
        ]
    )
    return np.where(few, np.maximum(schema.n_states - 1, 1), schema.widths)


def _classes(features: Features, layout: Layout) -> Integers:
    """Return the class of every weight of the edges."""
    out = [np.zeros(0, np.int64)]
    plain = features.widths == features.states
    for i, j in layout.edges.tolist():
        a, b = np.indices((int(features.widths[i]), int(features.widths[j])))
        mixed = np.where(a == b, 2 * a, 2 * (a + b) + 1)
        out.append(np.full(a.size, _FIXED) if plain[i] or plain[j] else mixed.ravel())
    return np.concatenate(out)


def _evidence(
    weights: Floats,
    curvature: Floats,
    ridges: Floats,
    classes: Integers,
    least: float,
    n_rows: float,
) -> Floats:
    """Return the ridges of the next fit; all are in units of the mean loss of a row."""
    out = ridges.copy()
    for c in np.unique(classes[classes != _FIXED]):
        own = classes == c
        h = np.maximum(curvature[own], 0.0)
        known = float((h / (h + 2.0 * ridges[own])).sum())
        size = max(float((weights[own] ** 2).sum()), np.finfo(np.float64).tiny)
        out[own] = np.clip(known / size / n_rows, least, max(_RULE.max_rows / n_rows, least))
    return out
