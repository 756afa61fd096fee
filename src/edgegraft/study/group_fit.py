"""One model of several groups: edges that they share, and edges that each has for itself.

    F = sum over groups of (W_g / W) L_g(u_g, w_shared, w_g) + ridge (||w||^2 + ||u - start||^2)

``L_g`` is the pseudolikelihood of the rows of a group; node vectors are always its own, so that
groups may differ in how common states are and still have the same network.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize as minimize_smooth

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.grafting.problem import ridge_of
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.objective import Objective
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.study.group_rows import GroupRows

_RIDGE_ROWS = 0.1  # as of fits that are tested
_MAX_ITERATIONS = 500
_TOLERANCE = 1e-6


class JointFit(NamedTuple):
    """Parameters of the groups on one layout, equal for shared edges."""

    layout: Layout
    thetas: list[Floats]


class JointModel:
    """The losses of all groups, ready to be fitted with any edges shared.

    `features` are of all rows together, so that a weight means the same in every group.
    """

    def __init__(self, given: GroupRows, features: Features, edges: Edges, n_jobs: int) -> None:
        self._features = features
        self._losses: list[Objective] = []
        for g in range(len(given.names)):
            table, weights = given.part(g)
            loss = Pseudolikelihood(table, weights=weights, n_jobs=n_jobs)
            self._losses.append(featured(loss, features))
        self.layout = features.layout(edges)
        total = sum(loss.n_rows for loss in self._losses)
        self._shares = [loss.n_rows / total for loss in self._losses]
        self._ridge = ridge_of(_RIDGE_ROWS, total)

    def fit(self, shared: Mask, start: JointFit | None = None) -> JointFit:
        """Return the fit with these edges shared and the others free in every group."""
        layout, n_nodes = self.layout, int(self.layout.node_offset[-1])
        sizes = np.diff(layout.edge_offset)
        common = np.concatenate((np.zeros(n_nodes, bool), np.repeat(shared, sizes)))
        first = [loss.start(layout) for loss in self._losses]
        states = [loss.init(layout) for loss in self._losses]
        origin = np.concatenate((np.zeros(common.sum()), *(theta[~common] for theta in first)))

        def spread(x: Floats) -> list[Floats]:
            own = np.split(x[common.sum() :], len(first))
            thetas = [np.empty(layout.n_parameters) for _ in first]
            for theta, free in zip(thetas, own, strict=True):
                theta[common], theta[~common] = x[: common.sum()], free
            return thetas

        def value(x: Floats) -> tuple[float, Floats]:
            total, slope = 0.0, np.zeros_like(x)
            parts = slope[common.sum() :].reshape(len(first), -1)
            for g, theta in enumerate(spread(x)):
                found = self._losses[g].evaluate(theta, states[g])
                states[g] = found.state
                total += self._shares[g] * found.value
                slope[: common.sum()] += self._shares[g] * found.gradient[common]
                parts[g] = self._shares[g] * found.gradient[~common]
            away = x - origin
            total += self._ridge * float(away @ away)
            return total, slope + 2.0 * self._ridge * away

        at = origin
        if start is not None:
            shared_parts = [theta[common] for theta in start.thetas]
            mean = np.average(shared_parts, axis=0, weights=self._shares)
            at = np.concatenate((mean, *(theta[~common] for theta in start.thetas)))
        scale = self._scale(common)

        def scaled(z: Floats) -> tuple[float, Floats]:
            found, slope = value(z * scale)
            return found, slope * scale

        found = minimize_smooth(
            scaled,
            at / scale,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _MAX_ITERATIONS, "gtol": _TOLERANCE, "ftol": 1e-13},
        )
        return JointFit(layout, spread(found.x * scale))

    def _scale(self, common: Mask) -> Floats:
        """Return the units in which parameters have about the same curvature."""
        each = [
            share * loss.curvature(self.layout)
            for share, loss in zip(self._shares, self._losses, strict=True)
        ]
        whole = np.concatenate((np.sum(each, axis=0)[common], *(own[~common] for own in each)))
        return np.asarray(1.0 / np.sqrt(np.maximum(whole, self._ridge)))

    def models(self, found: JointFit) -> list[PairwiseMRF]:
        """Return the model of each group."""
        schema = self._losses[0].schema
        edges = found.layout.edges
        return [
            PairwiseMRF(schema, edges, self._losses[0].expand(theta, found.layout))
            for theta in found.thetas
        ]
