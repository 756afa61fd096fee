"""What a search minimises and by which rules: all that does not change while it runs.

Also what a plan amounts to for given rows: the loss, the penalty, the budget of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.conditional.survey_design import weigh_rows
from edgegraft.config import Plan, Settings
from edgegraft.core import Layout
from edgegraft.core.backend import find_backend
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.errors import Argument, MemoryBudgetError
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.grafting.policies import Policy, choose_policy
from edgegraft.grafting.reservoir import BestChoice
from edgegraft.inference import likelihood_engine
from edgegraft.objective.featured import featured
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.solver import Solution, Stopping, minimize
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import Rows, as_rows, distinct_rows

ALL_PAIRS = 2_000_000  # up to this many pairs, all are tested, and a spanning tree is found
PAIRS_PER_VARIABLE = 10  # tested at most if there are more: twice as many as are ranked
MAX_BYTES = 1 << 30  # for the states of a column compared with each other
_SINGLE = 1e-4  # tolerance from which the rounding of single precision does not matter


@dataclass(frozen=True)
class _RidgeRows:
    """Pseudo-rows that a ridge is worth, if it is chosen by the library."""

    search: float = 10.0  # more than in the last fit: nothing of these fits is reported
    last: float = 2.0  # what is reported has a negligible ridge
    last_scored: float = 20.0  # measured: on wenchuan better than 2 by .4 nats per row, bfi .02
    per_row: float = 0.01  # at most: tables of few rows get a small one


_RIDGE_ROWS = _RidgeRows()


@dataclass(frozen=True)
class Problem:
    """What a search minimises, and how: to change it, :func:`dataclasses.replace` it."""

    objective: Objective  #: the loss, over the rows or counts to learn from
    penalty: Penalty  #: what pairs are judged by; it is bound to the objective here, unless it is
    settings: Settings = field(default_factory=Settings)
    rule: BestChoice | None = None  #: of your own, in place of the rule of the settings

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", self.penalty.bound(self.objective))

    @cached_property
    def policy(self) -> Policy:
        """What the settings ask for."""
        policy = choose_policy(self.settings, len(self.objective.schema))
        return replace(policy, rule=self.rule or policy.rule)

    @cached_property
    def rules(self) -> PairRules:
        """What is known of pairs."""
        return PairRules.read(self.settings.rules, self.objective.schema.names)

    def solve(
        self,
        layout: Layout,
        start: Solution | Floats | None,
        max_iter: int = 0,
        *,
        objective: Objective | None = None,
        quiet: bool = True,
    ) -> Solution:
        """Return the parameters of a graph after this many iterations; none evaluates `start`.

        `objective` is the fallback that has taken over. Unless `quiet`, a tolerance that is not
        reached is warned of.
        """
        rule, stopping = (
            self.policy.fit_penalty(self.penalty),
            Stopping(self.settings.tol, max_iter),
        )
        return minimize(objective or self.objective, rule, layout, start, stopping, quiet=quiet)


def chance_level(objective: Objective) -> float:
    """Return the penalty that chance passes about once per variable, with noise weights.

    >>> from edgegraft.table import PackedTable
    >>> from edgegraft.objective.pseudolikelihood import Pseudolikelihood
    >>> chance_level(Pseudolikelihood(PackedTable.from_codes([[0, 0], [1, 1]] * 50)))
    0.2
    """
    return float(objective.terms / objective.n_rows**0.5)


def ridge_of(rows: float, n_rows: float) -> float:
    """Return the ridge worth `rows` of `n_rows` rows; tables of few rows get a small one.

    >>> ridge_of(10, 1000), ridge_of(10, 20)
    (0.01, 0.1)
    """
    return float(rows) * min(_RIDGE_ROWS.per_row, 1.0 / n_rows)


def penalty_of(plan: Plan, objective: Objective) -> Penalty:
    """Return the penalty that a plan asks for with given data."""
    level = chance_level(objective) if plan.penalty == "auto" else plan.penalty
    ridge = plan.ridge
    if ridge == "auto":
        ridge = ridge_of(_RIDGE_ROWS.search, objective.n_rows)
    weight, nodes = plan.group_weight, plan.penalize_nodes
    return Penalty(level, ridge, group_weight=weight, penalize_nodes=nodes)


def last_ridge(plan: Plan, objective: Objective) -> float:
    """Return the ridge of the last fit; weights of scores get a larger one than tables."""
    if plan.ridge != "auto":
        return plan.ridge
    rows = _RIDGE_ROWS.last if objective.features is None else _RIDGE_ROWS.last_scored
    return ridge_of(rows, objective.n_rows)


def search_settings(plan: Plan, n_variables: int) -> Settings:
    """Return the settings of the search, with a budget if there are too many pairs to test all.

    >>> search_settings(Plan(), 2000).max_tables, search_settings(Plan(), 10**6).max_tables
    (None, 10000000)
    """
    if plan.max_tables is None and n_variables * (n_variables - 1) // 2 > ALL_PAIRS:
        budget = max(ALL_PAIRS, PAIRS_PER_VARIABLE * n_variables)
        return Settings.from_options(plan, max_tables=budget)
    return Settings.from_options(plan)


def losses(
    table: PackedTable | Rows,
    plan: Plan,
    weights: ArrayLike | None = None,
    stand_in: Objective | None = None,
    features: Features | None = None,
) -> tuple[Objective, PairCounts]:
    """Return the loss that a plan asks for, and the counts of its rows.

    `weights` are those of a table; `stand_in` is the loss of a sample of rows in blocks; `features`
    are those of ordered columns, by default those of the margins of the rows.
    """
    given = as_rows(table, weights, plan.n_jobs, find_backend(plan.device))
    rows = distinct_rows(weigh_rows(given, plan.weights_are)[0])
    check_states(rows.schema)
    counts = PairCounts(rows)
    if plan.objective == "likelihood":
        likelihood = Likelihood(counts, likelihood_engine(plan.inference))
        return featured(likelihood, features), counts
    precision: Literal["single", "double"] = "single" if plan.tol >= _SINGLE else "double"
    loss = Pseudolikelihood(rows, precision=precision, stand_in=stand_in)
    return featured(loss, features), counts


def check_states(schema: Schema) -> None:
    """Refuse a column if the pairs of its categories would not fit in memory.

    The search compares the states of a column with each other, ``s^2`` numbers.
    """
    if not len(schema):
        return
    largest = max(schema, key=lambda variable: variable.n_states)
    needed = 8 * largest.n_states**2
    if needed > MAX_BYTES:
        raise MemoryBudgetError(
            f"column '{largest.name}' has {largest.n_states:,} categories, and comparing them "
            f"takes {needed / 2**30:.1f} GiB, more than the {MAX_BYTES / 2**30:.0f} GiB allowed: "
            "merge rare categories, or leave the column out with ",
            Argument("drop", [largest.name]),
        )
