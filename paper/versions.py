"""The two versions of every experiment, expressed in the library's settings.

``paper``: likelihood with belief propagation; the product of two beliefs for a pair outside the
model; node vectors shrunk like edges; ``d_e = s_i s_j``; random order with hubs first; a reservoir
of ``n``; no two edges activated together share a variable; a fit to the tolerance after every
activation. Where the paper is not specific (how much smaller than ``n`` the number of tests is, the
threshold of a hub), `_paper` makes a choice. Penalty and ridge are the best of the paper's grid,
according to the experiment ``grid``.

``ours``: the search of :class:`~edgegraft.learn.Plan` as it is by default.

``paper, free nodes``: like ``paper``, but node vectors have neither penalty nor ridge; the
difference is the effect of the node penalty.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from edgegraft.counts import PairCounts
from edgegraft.grafting.problem import losses, penalty_of, search_settings
from edgegraft.learn import Plan, Settings
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows
from paper.memoized import MemoizedCounts
from paper.propagation import CountedPropagation

PAPER, FREE_NODES, OURS = "paper", "paper, free nodes", "ours"
VERSIONS = (PAPER, OURS)
EXHAUSTIVE, FIRST_HIT = "exhaustive", "first-hit"
ALPHAS = ("alpha=0", "alpha=0.25", "alpha=0.5", "alpha=0.75", "alpha=1")
METHODS = (*ALPHAS, EXHAUSTIVE, FIRST_HIT)

PAPER_PENALTY, PAPER_RIDGE = 1e-4, 0.5
_TESTS = 10  # n / 10 tests between two activations: "much smaller than n"
_TOL = 1e-3
_MESSAGE_TOL = 1e-4
_TO_TOLERANCE = 100  # iterations after an activation, enough to reach the tolerance in practice


class Learner(NamedTuple):
    """Everything that a search needs."""

    loss: Objective
    penalty: Penalty
    settings: Settings
    counts: PairCounts


def learner(
    version: str,
    table: PackedTable,
    n_jobs: int,
    penalty: float | None = None,
    ridge: float | None = None,
) -> Learner:
    """Return the parts of a version for a table, optionally with another penalty or ridge.

    Examples
    --------
    >>> table = PackedTable.from_codes([[0, 1, 0], [1, 0, 1]] * 20)
    >>> used = learner("paper", table, 1)
    >>> used.penalty.penalize_nodes, used.settings.priority, used.settings.max_touching
    (True, 'uniform', 1)
    """
    if version == OURS:
        return _ours(table, n_jobs, penalty, ridge)
    if version in (PAPER, FREE_NODES):
        return _paper(table, n_jobs, penalty, ridge, nodes=version == PAPER)
    raise ValueError(f"there is no version {version!r}: use {', '.join(VERSIONS)}")


def _ours(table: PackedTable, n_jobs: int, penalty: float | None, ridge: float | None) -> Learner:
    plan = Plan(
        penalty="auto" if penalty is None else penalty,
        ridge="auto" if ridge is None else ridge,
        n_jobs=n_jobs,
    )
    loss, counts = losses(table, plan, None)
    return Learner(loss, penalty_of(plan, loss), search_settings(plan, len(table.schema)), counts)


def _paper(
    table: PackedTable, n_jobs: int, penalty: float | None, ridge: float | None, nodes: bool
) -> Learner:
    # Tables are counted once and kept, as in the paper: only the first use of a pair has a cost.
    counts = MemoizedCounts(TableRows(table, n_jobs=n_jobs))
    engine = CountedPropagation(tol=_MESSAGE_TOL)
    rule = Penalty(
        PAPER_PENALTY if penalty is None else penalty,
        PAPER_RIDGE if ridge is None else ridge,
        group_weight="states",
        penalize_nodes=nodes,
    )
    settings = Settings(
        relaxed=False,
        selectivity=0.5,
        reservoir_size=len(table.schema),
        max_tests=max(1, len(table.schema) // _TESTS),
        max_touching=1,
        hub_threshold="mean",
        priority="uniform",
        requeue=False,
        keep_zeros=True,
        growth_iterations=_TO_TOLERANCE,
        tol=_TOL,
    )
    return Learner(Likelihood(counts, engine), rule, settings, counts)


def with_method(settings: Settings, method: str) -> Settings:
    """Return the settings with another method: ``alpha=...``, ``exhaustive`` or ``first-hit``.

    Examples
    --------
    >>> with_method(Settings(), "alpha=0.25").selectivity
    0.25
    """
    if method in ALPHAS:
        alpha = float(method.removeprefix("alpha="))
        return replace(settings, strategy="best-choice", selectivity=alpha)
    if method == EXHAUSTIVE:
        return replace(settings, strategy="exhaustive")
    if method == FIRST_HIT:
        return replace(settings, strategy="first-hit")
    raise ValueError(f"there is no method {method!r}: use {', '.join(METHODS)}")
