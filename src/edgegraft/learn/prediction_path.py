"""A path of penalised fits, and the walk along it that held-out rows guide.

The penalty falls from the level that no edge passes. Each fit starts from the best before, and the
path ends when held-out rows are predicted worse; then ridge and penalty change in smaller steps
while that helps. Strengths are not taken from a grid, so they cannot end at its edge. A fit has few
pairs at a time: those with an edge and those whose gradient passes the penalty, checked again after
every fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import pair_ids
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import GroupWeight, Penalty, norms_of
from edgegraft.optimize.solver import Solution, Stopping, minimize


@dataclass(frozen=True)
class _Rule:
    """Steps of the walk, and how far its fits go."""

    step: float = 0.5  # of the penalty, from one fit to the next; its root and square later
    gain: float = 3e-5  # nats per column for which the next step is worth it
    left: float = 0.5  # of the penalty: what a fit may leave
    iterations: int = 20  # of a fit; columns that determine each other have their optimum nowhere
    rounds: int = 5  # fits at most until no other pair passes the penalty
    block: int = 1 << 17  # pairs scored at a time: a budget of memory


_RULE = _Rule()

PathState = tuple[Solution, Floats, Mask]


class Trial(NamedTuple):
    """One fit of the path."""

    penalty: float
    ridge: float
    score: float  # mean log-pseudolikelihood of a held-out row
    n_edges: int  # mean of the folds


class Path:
    """Fits of one loss at falling strengths, each from the one before.

    The first is without edges, or that of another loss, `start`.
    """

    def __init__(
        self,
        loss: Objective,
        pairs: Edges,
        tol: float,
        start: tuple[Layout, Floats] | None = None,
    ) -> None:
        self.loss, self.pairs, self._tol = loss, pairs, tol
        weight: GroupWeight = "sqrt" if loss.features is None else "noise"
        self._rule = Penalty(1.0, group_weight=weight).bound(loss)
        self._active: Mask = np.zeros(len(pairs), bool)
        theta, stopping = None, Stopping(tol)
        if start is not None:
            n, stopping = len(loss.schema), Stopping(tol, 0)
            self._active = np.isin(pair_ids(pairs, n), pair_ids(start[0].edges, n))
            theta = loss.layout(self.edges()).carry(start[1], start[0])
        layout = loss.layout(self.edges())
        self.solution = minimize(loss, self._rule, layout, theta, stopping, quiet=True)
        # Rows that were not fitted yet have gradients everywhere: the first round is of the
        # edges given, and says which others pass.
        self.scores = self._score() if start is None else np.zeros(len(pairs))

    def fit(self, penalty: float, ridge: float, *, fully: bool = False) -> None:
        """Minimise at these strengths, with every pair that passes the penalty.

        Unless `fully`, a few iterations have to do.
        """
        rule = replace(self._rule, penalty=penalty, ridge=ridge)
        tol = min(self._tol, _RULE.left * penalty) if penalty else self._tol
        stopping = Stopping(tol) if fully else Stopping(tol, _RULE.iterations)
        chosen = self._active
        for _ in range(_RULE.rounds):
            chosen = chosen | (self.scores > penalty)
            layout = self.loss.layout(self.pairs[chosen])
            self.solution = minimize(self.loss, rule, layout, self.solution, stopping, quiet=True)
            self.scores = self._score()
            if not (~chosen & (self.scores > penalty + tol)).any():
                break
        norms = norms_of(self.solution.theta, self.solution.layout.edge_offset)
        self._active = np.zeros(len(self.pairs), bool)
        self._active[np.flatnonzero(chosen)[norms > 0.0]] = True

    def edges(self) -> Edges:
        """Return the pairs that are not zero."""
        return self.pairs[self._active]

    def state(self) -> PathState:
        """Return where the path is, for :meth:`resume`."""
        return self.solution, self.scores, self._active

    def resume(self, state: PathState) -> None:
        """Go back to where the path was."""
        self.solution, self.scores, self._active = state

    def _score(self) -> Floats:
        theta, state = self.solution.theta, self.solution.state
        parts = [
            self.loss.edge_gradients(theta, state, self.pairs[first : first + _RULE.block])
            for first in range(0, len(self.pairs), _RULE.block)
        ]
        return np.concatenate([np.zeros(0), *map(self._rule.score, parts)])


def choose_strengths(
    folds: list[tuple[Path, Objective]], stop: Callable[[], bool]
) -> tuple[Trial, list[Trial]]:
    """Walk paths together; return the strengths that predict held-out rows best, and all tried.

    Every path has the loss of its held-out rows beside it, and is left at the best fit.
    """
    paths = [path for path, _ in folds]
    trials: list[Trial] = []
    least = _RULE.gain * len(paths[0].loss.schema)
    top = max(float(path.scores.max(initial=0.0)) for path in paths)
    best, states = Trial(top, 0.0, _score(folds), 0), [path.state() for path in paths]

    def try_out(penalty: float, ridge: float) -> bool:
        """Fit from the best; return whether the held-out rows are predicted better by it."""
        nonlocal best, states
        if stop():
            return False
        for path, state in zip(paths, states, strict=True):
            path.resume(state)
            path.fit(penalty, ridge)
        n_edges = round(float(np.mean([len(path.edges()) for path in paths])))
        trial = Trial(penalty, ridge, _score(folds), n_edges)
        trials.append(trial)
        gain = trial.score - best.score
        # The first steps down may have no edge yet.
        better = gain > least or (n_edges == best.n_edges == 0 and penalty < best.penalty)
        if better:
            best, states = trial, [path.state() for path in paths]
        return better

    while try_out(_RULE.step * best.penalty, 0.0):
        pass
    fine = _RULE.step**0.5
    moves = ((1.0, _RULE.step**-2), (fine, 1.0), (1.0 / fine, 1.0))  # of penalty and ridge
    before = None
    while best is not before and best.n_edges:
        before = best
        for lower, higher in moves:
            while try_out(
                lower * best.penalty, higher * best.ridge or (higher > 1.0) * best.penalty
            ):
                pass
    for path, state in zip(paths, states, strict=True):
        path.resume(state)
    return best, trials


def _score(folds: list[tuple[Path, Objective]]) -> float:
    found = [(path.solution, held) for path, held in folds]
    losses = [held.evaluate(at.theta, held.init(at.layout)).value for at, held in found]
    return -float(np.mean(losses))
