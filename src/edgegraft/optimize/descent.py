"""A point on the way down, the direction from it, and one safe step.

The ridge is smooth and joins the loss; only norms are left to the proximal step,

    F = f + h,   f = L + ridge ||w||^2,   h = penalty sum_g d_g ||w_g||.

The direction is the minimum of a quadratic model plus the penalty (:func:`solve_step`),

    z = argmin_z  g'(z - x) + (z - x)' B (z - x) / 2 + h(z).

A step towards ``z`` is taken if ``F(x + t (z - x)) <= F(x) + c t (g'(z - x) + h(z) - h(x))``
(Tseng & Yun 2009), tried at the whole step first, which keeps the exact zeros of ``z``. A value
that the objective does not trust is never accepted.

Every loss here is convex, so the values at two points lie on or above each other's tangents. Those
of belief propagation do as long as its messages settle in the lowest of its fixed points, where
the Bethe free energy is smallest; a value below a tangent proves that one of them did not. Such a
loss has no minimum to be found: it falls on from one false fixed point to the next. At a kink,
where two fixed points are equally low, the slope changes however short the step is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.kernels.solver import dot
from edgegraft.objective.objective import Objective, State
from edgegraft.objective.penalty import Groups, Penalty
from edgegraft.optimize.coordinates import ContrastCoordinates, Coordinates
from edgegraft.optimize.metric import Metric, Model

#: A direction is accurate enough when its residual has fallen to this share.
ACCURACY = 0.3
#: Share of the largest violation above which a group takes part in a step.
WORTHWHILE = 0.03
#: Inner iterations.
MAX_INNER = 200
#: Share of the promised descent that a step must keep.
SUFFICIENT = 1e-4
#: Shorter steps tried before a direction is given up.
TRIALS = 12
#: No log-potential moves further than this at once.
FARTHEST = 8.0
#: Relative rise of F that may be rounding or an engine's last digits.
ROUNDING = 1e-12
#: The same if the residual falls, which rounding does not do.
NOISE = 1e-8
#: Share of the distance between values and tangents that an engine's last digits may turn round.
DOUBT = 0.03
#: Change of the slope, as a share of it, that a step too short to matter cannot explain.
KINK = 0.5
CONTRADICTION = (
    "values and gradients of the objective contradict each other, as happens when belief "
    "propagation has several fixed points"
)


class Point(NamedTuple):
    """Parameters, and the values and gradients at them."""

    theta: Floats
    inner: Floats  # the same in the solver's coordinates
    smooth: float  # loss plus ridge
    total: float  # loss plus penalty
    gradient: Floats  # of the loss alone, with respect to theta
    slope: Floats  # of the smooth part, in the solver's coordinates
    violation: Floats  # violation of each group
    residual: float  # the largest of them
    state: State
    trusted: bool
    message: str


class Refusal(NamedTuple):
    """Why no step was taken."""

    message: str
    untrusted: bool = False  # whether it was inference that failed


class Descent:
    """Evaluates points and takes safe steps for one objective, penalty and graph."""

    def __init__(self, objective: Objective, penalty: Penalty, layout: Layout) -> None:
        whole = penalty.groups(layout)
        self.objective = objective
        self.layout = layout
        self.norms = Groups(whole.offsets, whole.strength, np.zeros_like(whole.ridge))
        self.ridge = np.repeat(whole.ridge, np.diff(whole.offsets))
        self.coordinates = _coordinates(objective, layout, penalty)
        #: norms and ridge in the solver's coordinates
        self.inner_norms, self._inner_ridge = self.norms, self.ridge
        if isinstance(self.coordinates, ContrastCoordinates):
            sizes = np.ones(layout.n_edges, np.int64)
            ends = layout.node_offset[-1] + np.cumsum(sizes)
            offsets = np.concatenate((layout.node_offset, ends))
            self.inner_norms = Groups(offsets, 2.0 * whole.strength, self.norms.ridge)
            self._inner_ridge = np.repeat(4.0 * whole.ridge, np.diff(offsets))
        self.accuracy = objective.accuracy
        self.n_evaluations = 0
        self.n_untrusted = 0

    def diagonal(self) -> Floats:
        """Return the curvature of the smooth part in the solver's coordinates, never zero."""
        diagonal = self.coordinates.curvature(self.objective.curvature(self.layout))
        diagonal += 2.0 * self._inner_ridge
        return np.asarray(np.maximum(diagonal, 1e-9 * diagonal.max(initial=1.0)))

    def start(self, theta: Floats, state: State) -> Point:
        """Evaluate everything at parameters, which are kept bit for bit."""
        return self._evaluate(theta, self.coordinates.inward(theta), state)

    def at(self, inner: Floats, state: State) -> Point:
        """Evaluate everything at a point in the solver's coordinates."""
        return self._evaluate(self.coordinates.outward(inner), inner, state)

    def _evaluate(self, theta: Floats, inner: Floats, state: State) -> Point:
        self.n_evaluations += 1
        found = self.objective.evaluate(theta, state)
        loss = found.value + float(dot(self.ridge, theta * theta))
        smooth = found.gradient + 2.0 * self.ridge * theta
        violation = self.norms.violation(theta, smooth)
        residual = float(violation.max(initial=0.0))
        return Point(
            theta=theta,
            inner=inner,
            smooth=loss,
            total=loss + self.norms.value(theta),
            gradient=found.gradient,
            slope=self.coordinates.gradient(smooth),
            violation=violation,
            residual=residual,
            state=found.state,
            trusted=found.trusted and bool(np.isfinite(loss) and np.isfinite(residual)),
            message=found.message,
        )

    def step(self, point: Point, target: Floats) -> Point | Refusal:
        """Return a lower point on the way to `target`, or why there is none."""
        move = target - point.inner
        largest = float(np.abs(move).max(initial=0.0))
        promised = float(dot(point.slope, move)) + (
            self.inner_norms.value(target) - self.inner_norms.value(point.inner)
        )
        if not np.isfinite(largest) or promised >= 0.0:
            return Refusal("the model of the objective promises no descent")
        share = min(1.0, FARTHEST / largest)
        refusal = Refusal("no step lowers the objective: its precision is exhausted")
        for _ in range(TRIALS):
            inner = target if share == 1.0 else point.inner + share * move
            found = self.at(inner, point.state)
            if self.objective.fallback is not None and found.trusted:
                there_wrong, here_wrong = self._contradiction(point, found)
                if here_wrong:
                    return Refusal(CONTRADICTION, untrusted=True)
                if there_wrong:
                    found = found._replace(trusted=False, message=CONTRADICTION)
            if not found.trusted:
                self.n_untrusted += 1
                refusal = Refusal(found.message or "inference did not converge", untrusted=True)
                share *= 0.25
            elif _is_lower(found, point, share * promised):
                return found
            else:
                # The minimum of the parabola through both values and the promised slope.
                excess = found.total - point.total - share * promised
                share *= float(np.clip(-0.5 * share * promised / excess, 0.1, 0.5))
        if self.objective.fallback is not None and not refusal.untrusted:
            # Whether the slope changes at once, seen over the shortest of many steps.
            move = found.inner - point.inner
            slope = float(dot(point.slope, move))
            if float(dot(found.slope, move)) - slope > KINK * abs(slope):
                return Refusal(CONTRADICTION, untrusted=True)
        return refusal

    def _contradiction(self, here: Point, there: Point) -> tuple[bool, bool]:
        """Return whether the value there, and the one here, is below the tangent at the other.

        Marginals that are wrong by `accuracy` tilt a tangent: that much proves nothing.
        """
        move = there.inner - here.inner
        rise = there.smooth - here.smooth
        above = rise - float(dot(here.slope, move)), float(dot(there.slope, move)) - rise
        starts = np.concatenate((self.layout.node_offset[:-1], self.layout.edge_offset[:-1]))
        tilt = float(np.maximum.reduceat(np.abs(there.theta - here.theta), starts).sum())
        doubt = DOUBT * max(map(abs, above)) + NOISE * max(1.0, abs(here.total))
        least = -doubt - self.accuracy * tilt
        return above[0] < least, above[1] < least


def solve_step(
    x: Floats, slope: Floats, violation: Floats, metric: Metric, groups: Groups
) -> Floats:
    """Return the minimum of the quadratic model at `x`, in the groups that are worth the work.

    No inference and no rows: products with the low-rank ``B`` only. Accelerated proximal steps in
    the metric's diagonal, with the momentum that the known spectrum of ``B`` asks for, started at
    `x`; without norms in the penalty the answer is closed. Only groups that violate their
    condition by a fair share of the largest violation take part: after edges were added those are
    the new edges and, as they settle, what lies around them; otherwise nearly all groups but
    those at zero that stay there. `slope` is the gradient of the whole smooth part, to which the
    ridge belongs: `groups` have none.
    """
    if not groups.strength.any():
        return x - metric.solve(slope)
    taking_part = violation >= WORTHWHILE * violation.max()
    sizes = np.diff(groups.offsets)
    if sizes[taking_part].sum() > 0.8 * len(x):
        return _accelerate(x, slope, metric.model(), groups)
    chosen = np.flatnonzero(np.repeat(taking_part, sizes))
    offsets = np.concatenate(([0], np.cumsum(sizes[taking_part])))
    some = Groups(offsets, groups.strength[taking_part], groups.ridge[taking_part])
    target = x.copy()
    target[chosen] = _accelerate(x[chosen], slope[chosen], metric.model(chosen), some)
    return target


def _accelerate(x: Floats, slope: Floats, model: Model, groups: Groups) -> Floats:
    low, high = model.spectrum
    steps = 1.0 / (high * model.diagonal)
    root = np.sqrt(low / high)
    momentum = (1.0 - root) / (1.0 + root)
    z, ahead, first = x, x, 0.0
    for k in range(MAX_INNER):
        moved = groups.prox(ahead - steps * (slope + model.times(ahead - x)), steps)
        change = float(np.max(np.abs(moved - ahead) * model.diagonal))
        first = max(first, change)
        # Momentum that points uphill is dropped (O'Donoghue & Candes 2015).
        uphill = float(dot((ahead - moved) * model.diagonal, moved - z)) > 0.0
        ahead = moved if uphill else moved + momentum * (moved - z)
        z = moved
        # A diagonal model has low == high: its first proximal step is its minimum.
        if low == high or (k and change <= ACCURACY * first):
            break
    return z


def _is_lower(found: Point, before: Point, promised: float) -> bool:
    scale = max(1.0, abs(before.total))
    rise = found.total - before.total
    if rise <= SUFFICIENT * promised + ROUNDING * scale and rise <= 0.0:
        return True
    return rise <= NOISE * scale and found.residual < 0.9 * before.residual


def _coordinates(objective: Objective, layout: Layout, penalty: Penalty) -> Coordinates:
    """Return the solver's coordinates; objectives that know pair frequencies give better ones."""
    centred, features = not penalty.penalize_nodes, objective.features
    pairs = objective.pair_frequencies(layout) if centred else None
    normed = centred and pairs is None and penalty.penalty > 0.0 and penalty.kind == "group"
    # Beside missing neighbours a table counts for nothing, so its ends are not the nodes' alone.
    complete = (objective.known_shares() > 1.0 - 1e-9).all()
    if normed and features is None and complete and (layout.states == 2).all():
        return ContrastCoordinates(layout, objective.margins())
    return Coordinates(layout, objective.margins(), pairs, features, centred=centred)
