"""What a network is learned by: every choice in one frozen value, and the losses it asks for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from numpy.typing import ArrayLike

from edgegraft.counts import PairCounts
from edgegraft.errors import Argument, MemoryBudgetError, SettingError
from edgegraft.inference import likelihood_engine
from edgegraft.learn.settings import Settings
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.noise_weight import chance_level
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalties import GroupWeight, make_penalty
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.choice import ridge_of
from edgegraft.table import PackedTable, Schema

ALL_PAIRS = 2_000_000  # up to so many pairs every one is tested, and tested again by `sharpen`
PAIRS_A_VARIABLE = 300  # tested at most where there are more
MAX_BYTES = 1 << 30  # of the states of a column compared with each other
_SEARCH_ROWS, _LAST_ROWS = 10.0, 2.0


@dataclass(frozen=True)
class Plan:
    """Every choice of learning a network.

    Parameters
    ----------
    objective : {"pseudolikelihood", "likelihood"}
    inference : {"auto", "exact", "bp", "trw"}
        Engine of the likelihood.
    penalty : float or "auto"
        Threshold of the activation test, and weight of the norms where the search is not relaxed.
        "auto" is what chance passes about once a variable; it needs noise weights.
    ridge : float or "auto"
        Weight of the squared norms, in the search and in the last fit. "auto" weighs as ten rows
        do in the search, which keeps edges of chance small, and as two in the last fit, which
        should shrink little; at most 0.1 and 0.02.
    group_weight : {"noise", "sqrt", "states"}
        See :func:`~edgegraft.objective.penalties.make_penalty`.
    penalize_nodes : bool, default False
    fdr : float or None, default 0.005
        Expected share of false edges among those kept; None keeps all that the search ended with.
    refit : bool, default True
        Fit the kept edges once more with the ridge alone; otherwise they keep the parameters of
        the search.
    settings : Settings
        Of the search.
    n_jobs : int, default 1
        Threads; -1 for all cores. The result does not depend on it.
    """

    objective: Literal["pseudolikelihood", "likelihood"] = "pseudolikelihood"
    inference: Literal["auto", "exact", "bp", "trw"] = "auto"
    penalty: float | Literal["auto"] = "auto"
    ridge: float | Literal["auto"] = "auto"
    group_weight: GroupWeight = "noise"
    penalize_nodes: bool = False
    fdr: float | None = 0.005
    refit: bool = True
    settings: Settings = field(default_factory=lambda: Settings(relaxed=True, tol=1e-3))
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if self.objective not in ("pseudolikelihood", "likelihood"):
            raise ValueError(
                f"objective must be 'pseudolikelihood' or 'likelihood', found {self.objective!r}"
            )
        if self.penalty == "auto" and self.group_weight != "noise":
            raise ValueError(
                "penalty='auto' needs group_weight='noise': with other weights no one penalty "
                "means the same for every pair"
            )
        if self.fdr is not None and not 0 < self.fdr <= 1:
            raise SettingError("fdr", f"must be above 0 and at most 1, or None, found {self.fdr}")
        make_penalty(  # refuses what is none
            0.0 if self.penalty == "auto" else self.penalty,
            0.0 if self.ridge == "auto" else self.ridge,
            group_weight=self.group_weight,
        )

    def rule(self, objective: Objective) -> Penalty:
        """Return the penalty for some data."""
        level = chance_level(objective) if self.penalty == "auto" else self.penalty
        return make_penalty(
            level,
            self._weigh(_SEARCH_ROWS, objective.n_rows),
            group_weight=self.group_weight,
            penalize_nodes=self.penalize_nodes,
        )

    def last_ridge(self, n_rows: float) -> float:
        """Return the ridge of the last fit to so many rows."""
        return self._weigh(_LAST_ROWS, n_rows)

    def _weigh(self, rows: float, n_rows: float) -> float:
        return ridge_of(rows, n_rows) if self.ridge == "auto" else self.ridge

    @property
    def precision(self) -> Literal["single", "double"]:
        """Of logits and probabilities: rounding must not be seen at the tolerance."""
        return "single" if self.settings.tol >= 1e-4 else "double"

    def search(self, n_variables: int) -> Settings:
        """Return the settings of the search, with a budget where pairs are too many to test all."""
        if self.settings.max_tables is None and n_variables * (n_variables - 1) // 2 > ALL_PAIRS:
            return replace(self.settings, max_tables=max(ALL_PAIRS, PAIRS_A_VARIABLE * n_variables))
        return self.settings


def losses(
    table: PackedTable, plan: Plan, weights: ArrayLike | None
) -> tuple[Objective, PairCounts]:
    """Return the loss that a plan asks for, and the counts of its rows."""
    check_states(table.schema)
    counts = PairCounts(table, plan.n_jobs, weights)
    if plan.objective == "likelihood":
        return Likelihood(counts, likelihood_engine(plan.inference)), counts
    loss = Pseudolikelihood(table, weights=weights, n_jobs=plan.n_jobs, precision=plan.precision)
    return loss, counts


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
