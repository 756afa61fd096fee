"""What a plan amounts to for given data: losses, penalties, precision, budgets."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from edgegraft.config import Plan, Settings
from edgegraft.counts import PairCounts
from edgegraft.errors import Argument, MemoryBudgetError
from edgegraft.inference import likelihood_engine
from edgegraft.learn.selection.levels import chance_level, ridge_of
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import make_penalty
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable, Schema
from edgegraft.table.blocks import Rows, as_rows

ALL_PAIRS = 2_000_000  # up to this many pairs, all are tested, and again by `sharpen`
PAIRS_PER_VARIABLE = 300  # tested at most if there are more
MAX_BYTES = 1 << 30  # for the states of a column compared with each other
_SEARCH_ROWS, _LAST_ROWS = 10.0, 2.0
_SINGLE = 1e-4  # tolerance from which the rounding of single precision does not matter


def penalty_of(plan: Plan, objective: Objective) -> Penalty:
    """Return the penalty that a plan asks for with given data."""
    level = chance_level(objective) if plan.penalty == "auto" else plan.penalty
    return make_penalty(
        level,
        _ridge(plan, _SEARCH_ROWS, objective.n_rows),
        group_weight=plan.group_weight,
        penalize_nodes=plan.penalize_nodes,
    )


def last_ridge(plan: Plan, n_rows: float) -> float:
    """Return the ridge of the last fit to this many rows."""
    return _ridge(plan, _LAST_ROWS, n_rows)


def _ridge(plan: Plan, rows: float, n_rows: float) -> float:
    return ridge_of(rows, n_rows) if plan.ridge == "auto" else plan.ridge


def precision_of(plan: Plan) -> Literal["single", "double"]:
    """Return the precision of logits and probabilities that a plan's tolerance needs."""
    return "single" if plan.tol >= _SINGLE else "double"


def search_settings(plan: Plan, n_variables: int) -> Settings:
    """Return the settings of the search, with a budget if there are too many pairs to test all.

    Examples
    --------
    >>> search_settings(Plan(), 2000).max_tables, search_settings(Plan(), 20_000).max_tables
    (None, 6000000)
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
) -> tuple[Objective, PairCounts]:
    """Return the loss that a plan asks for, and the counts of its rows.

    `weights` are those of a table; `stand_in` is the loss of a sample of rows in blocks.
    """
    rows = as_rows(table, weights, plan.n_jobs)
    check_states(rows.schema)
    counts = PairCounts(rows)
    if plan.objective == "likelihood":
        return Likelihood(counts, likelihood_engine(plan.inference)), counts
    return Pseudolikelihood(rows, precision=precision_of(plan), stand_in=stand_in), counts


def check_states(schema: Schema) -> None:
    """Refuse a column of so many categories that pairs of them would not fit in memory.

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
