"""A path of penalised fits, and the walk along it that held-out rows guide.

The penalty falls from the level that no edge passes. Each fit starts from the one before, and the
path ends when held-out rows are predicted worse; then ridge and penalty change in turn while that
helps. Strengths are not taken from a grid, so they cannot end at its edge. A fit has few pairs at
a time: those with an edge and those whose gradient passes the penalty, checked again after every
fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import GroupWeight, Penalty, norms_of
from edgegraft.optimize.solver import Solution, Stopping, minimize

_LEAP, _STEP, _FINE = 0.25, 0.5, 0.7  # of the penalty, from one fit to the next
_LEAPING = 0.25  # share of the loss that a step must save for the next to be a leap
_FIRST_RIDGE = 1.0  # in penalties
_MOVES = ((1.0, 10**0.5), (_FINE, 1.0), (1.0 / _FINE, 1.0))  # of penalty and ridge, in turn
_SETTLED = 2e-4  # nats per column: with less there is nothing left to predict
_GAIN, _GAIN_PER_COLUMN = 2e-5, 1e-5  # of the score, and in nats, for a step to be worth the next
_MIN_PENALTY = 1e-3  # penalty in rows: below it nothing is shrunk
_TOL = 0.5  # of the penalty: what a fit may leave
_FIRST_ITERATIONS, _ITERATIONS = 20, 60  # of a fit
_ROUNDS = 5  # fits at most until no other pair passes the penalty
_BLOCK = 1 << 17  # pairs scored at a time


PathState = tuple[Solution, Floats, Mask]


class Trial(NamedTuple):
    """One fit of the path."""

    penalty: float
    ridge: float
    score: float  # mean log-pseudolikelihood of a held-out row
    n_edges: int  # mean of the folds

    def settles(self, n_columns: int) -> bool:
        """Return whether it leaves next to nothing to predict."""
        return -self.score < _SETTLED * n_columns


class Path:
    """Fits of one loss at falling strengths, each from the one before."""

    solution: Solution
    scores: Floats

    def __init__(self, loss: Objective, pairs: Edges, tol: float) -> None:
        self.loss, self.pairs, self._tol = loss, pairs, tol
        weight: GroupWeight = "sqrt" if loss.features is None else "noise"
        self._rule = Penalty(1.0, group_weight=weight).bound(loss)
        self._active: Mask = np.zeros(len(pairs), bool)

    def begin(
        self, edges: Edges | None = None, solution: tuple[Layout, Floats] | None = None
    ) -> None:
        """Go to the fit without edges, or to some of the edges of another loss's solution."""
        layout, theta = self.loss.layout(), None
        if edges is not None and solution is not None:
            n = len(self.loss.schema)
            self._active = np.isin(pair_ids(self.pairs, n), pair_ids(edges, n))
            layout = self.loss.layout(self.pairs[self._active])
            theta = layout.carry(solution[1], solution[0])
        self.solution = self._minimize(
            self._rule, layout, theta, _ITERATIONS if theta is None else 0
        )
        # Rows that were not fitted yet have gradients everywhere: the first round is of the
        # edges given, and says which others pass.
        self.scores = self._score() if theta is None else np.zeros(len(self.pairs))

    def fit(
        self,
        penalty: float,
        ridge: float,
        max_iter: int = _ITERATIONS,
        hopeless: Callable[[], bool] = lambda: False,
    ) -> None:
        """Minimise at these strengths, with every pair that passes the penalty.

        A fit that is `hopeless` after its first iterations ends there, as does one with none to
        follow.
        """
        rule = replace(self._rule, penalty=penalty, ridge=ridge)
        tol = min(self._tol, _TOL * penalty)
        chosen = self._active
        for k in range(_ROUNDS):
            chosen = chosen | (self.scores > penalty)
            layout = self.loss.layout(self.pairs[chosen])
            if k == 0:
                self._improve(rule, layout, tol, _FIRST_ITERATIONS)
                if hopeless():
                    break
            if max_iter and (k or not self.solution.info.converged):
                self._improve(rule, layout, tol, max_iter)
            self.scores = self._score()
            if not max_iter or not (~chosen & (self.scores > penalty + tol)).any():
                break
        layout = self.solution.layout
        norms = norms_of(self.solution.theta, layout.edge_offset)
        self._active = np.zeros(len(self.pairs), bool)
        self._active[np.flatnonzero(chosen)[norms > 0.0]] = True

    def _improve(self, rule: Penalty, layout: Layout, tol: float, max_iter: int) -> None:
        self.solution = self._minimize(rule, layout, self.solution, max_iter, tol)

    def edges(self) -> Edges:
        """Return the pairs that are not zero."""
        return self.pairs[self._active]

    def state(self) -> PathState:
        """Return where the path is, for :meth:`resume`."""
        return self.solution, self.scores, self._active

    def resume(self, state: PathState) -> None:
        """Go back to where the path was."""
        self.solution, self.scores, self._active = state

    def _minimize(
        self,
        rule: Penalty,
        layout: Layout,
        start: Solution | Floats | None,
        max_iter: int,
        tol: float | None = None,
    ) -> Solution:
        stopping = Stopping(self._tol if tol is None else tol, max_iter)
        return minimize(self.loss, rule, layout, start, stopping, quiet=True)

    def _score(self) -> Floats:
        theta, state = self.solution.theta, self.solution.state
        return np.concatenate(
            [
                self._rule.score(
                    self.loss.edge_gradients(theta, state, self.pairs[first : first + _BLOCK])
                )
                for first in range(0, len(self.pairs), _BLOCK)
            ]
            or [np.zeros(0)]
        )


def choose_strengths(
    folds: list[tuple[Path, Objective]], stop: Callable[[], bool]
) -> tuple[Trial, list[Trial]]:
    """Walk paths together; return the strengths that predict held-out rows best, and all tried.

    Every path has the loss of its held-out rows beside it, and is left at the best fit.
    """
    walk = _Walk(folds, stop)
    walk.go_down()
    moved = True
    while moved and walk.best.n_edges and not walk.settled:
        moved = False
        for move in _MOVES:
            moved |= walk.climb(*move)
    walk.go_back()
    return walk.best, walk.trials


class _Walk:
    """The best fit so far, from which others are tried."""

    def __init__(self, folds: list[tuple[Path, Objective]], stop: Callable[[], bool]) -> None:
        self._folds, self._stop = folds, stop
        self._paths = [path for path, _ in folds]
        self._tried = set[tuple[float, float]]()
        self._n_columns = len(self._paths[0].loss.schema)
        self._min_penalty = _MIN_PENALTY / self._paths[0].loss.n_rows
        self.trials = list[Trial]()
        for path in self._paths:
            path.begin()
        self._where = [path.state() for path in self._paths]
        top = max(float(path.scores.max(initial=0.0)) for path in self._paths)
        self.best = Trial(top, 0.0, self._score(), 0)

    @property
    def settled(self) -> bool:
        """Whether there is next to nothing left to predict."""
        return self.best.settles(self._n_columns)

    def go_down(self) -> None:
        """Lower the penalty, in leaps as long as they save much, until that predicts worse."""
        step = _LEAP
        while self.best.penalty * step > self._min_penalty:
            before = self.best.score
            if self._try_out(self.best.penalty * step, 0.0, leap=step == _LEAP):
                saves = self.best.score - before > -_LEAPING * before
                step = _LEAP if saves or not self.best.n_edges else _STEP
            elif step == _LEAP and not self.settled:
                step = _STEP
            else:
                return

    def go_back(self) -> None:
        """Leave the paths where the best fit was."""
        for path, where in zip(self._paths, self._where, strict=True):
            path.resume(where)

    def climb(self, lower: float, higher: float) -> bool:
        """Change penalty and ridge by these factors while that helps; return whether it did."""
        start = self.best
        while True:
            penalty = self.best.penalty * lower
            ridge = self.best.ridge * higher
            if ridge == 0.0 and higher > 1.0:
                ridge = _FIRST_RIDGE * penalty
            key = (round(np.log(penalty), 6), round(np.log(ridge + 1e-300), 6))
            if penalty < self._min_penalty or key in self._tried:
                return self.best is not start
            self._tried.add(key)
            if not self._try_out(penalty, ridge):
                return self.best is not start

    def _try_out(self, penalty: float, ridge: float, *, leap: bool = False) -> bool:
        """Fit from the best; return whether the held-out rows are predicted better by it."""
        best = self.best
        if self._stop():
            return False
        found = self._fit(penalty, ridge, leap)
        self.trials.append(found)
        gain = max(_GAIN * abs(best.score), _GAIN_PER_COLUMN * self._n_columns)
        # The first steps down may have no edge yet.
        better = found.score > best.score + gain or found.n_edges == best.n_edges == 0
        if better:
            self.best = found
            self._where = [path.state() for path in self._paths]
        return better

    def _fit(self, penalty: float, ridge: float, leap: bool) -> Trial:
        """Fit all paths from the best."""
        self.go_back()
        for path in self._paths:
            n_iter = 0 if leap else _ITERATIONS
            path.fit(penalty, ridge, n_iter, self._hopeless)
        n_edges = round(float(np.mean([len(path.edges()) for path in self._paths])))
        return Trial(penalty, ridge, self._score(), n_edges)

    def _hopeless(self) -> bool:
        """Return whether the fit under way predicts worse already; of one path alone."""
        return len(self._folds) == 1 and self._score() < self.best.score

    def _score(self) -> float:
        found = [(path.solution, held) for path, held in self._folds]
        losses = [held.evaluate(at.theta, held.init(at.layout)).value for at, held in found]
        return -float(np.mean(losses))
