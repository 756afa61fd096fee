"""Whether so few rows can show an edge at all, known before anything is searched.

With noise weights and margins of variance ``v``, no table of a pair has a gradient above
``terms sqrt(v_i v_j)``, by the inequality of Cauchy and Schwarz. So no pair passes the activation
test if ``N <= q(k)``, the quantile of :mod:`~edgegraft.objective.noise`.

The likelihood ratio of a pair of ``d + 1`` states in a conditional of ``c`` columns is at most
``2 (N - c) log(d + 1)`` (columns that determine each other); it has at least ``d`` directions, of
which two groups of states meet in `MIN_MEETINGS` rows, and ``c`` is at most
``N / ROWS_PER_FEATURE``. Per column, at most ``c - 1`` edges are tested in conditionals of at most
``c`` columns. If the smallest p-values,
corrected for all pairs, exceed the level even so, no test can pass.

If cells are missing, ``N_ij`` rows know both columns of a pair. In all ``N`` rows, whose missing
cells are drawn, chance moves its score by about ``sqrt(q N)`` rows: pairs with fewer known rows
rest on what other columns say of missing cells.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import chdtrc

from edgegraft.conditional.conditional import ROWS_PER_FEATURE
from edgegraft.conditional.coordinates import MIN_MEETINGS
from edgegraft.config import Plan
from edgegraft.errors import TooFewRowsWarning
from edgegraft.objective.noise import NoiseWeights
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.table import PackedTable

_SAMPLED, _MAX_COLUMNS = 4096, 2000

NEEDED = 1.5  # scores up to this many thresholds are not worth a search if no test can pass


def too_few_rows(objective: Objective, rule: Penalty, plan: Plan) -> bool:
    """Return whether no edge can be found in the rows of `objective`, whatever they hold; warn.

    `rule` judges pairs, and is bound to the objective.
    """
    n, n_rows = len(objective.schema), objective.n_rows
    if n < 2 or rule.noise is None:
        return False
    score = objective.terms / np.sqrt(_quantile(rule.noise)) / max(rule.penalty, 1e-300)
    levels = [level for level in (plan.fdr, plan.fwer) if isinstance(level, float | int)]
    none_passes = score <= NEEDED and _none_passes(objective, max(levels, default=1.0))
    if not (none_passes if plan.cuts else score <= 1.0):
        return False
    warnings.warn(
        f"{n_rows:,.6g} rows are too few to find an edge among {n:,} columns at this level, even "
        "between equal columns: no pair was tested, and the model has no edges; use more rows, "
        "fewer columns or a higher fdr",
        TooFewRowsWarning,
        stacklevel=5,
    )
    return True


def _none_passes(objective: Objective, fdr: float) -> bool:
    """Return whether no edge could pass the tests, as many having the best p-value as can be."""
    n, n_rows = len(objective.schema), objective.n_rows
    states = int(np.sort(objective.schema.n_states)[-2])
    d = np.arange(1, min(states - 1, int(n_rows / MIN_MEETINGS)) + 1)
    columns = np.arange(2, int(n_rows / ROWS_PER_FEATURE) + 1)[:, None]
    best = chdtrc(d, 2 * (n_rows - columns) * np.log(d + 1)).min(axis=1, initial=1.0)
    needed = fdr * n * (columns[:, 0] - 1) / (n * (n - 1) / 2)
    return bool((best > needed).all())


def warn_of_sparse_pairs(table: PackedTable, rule: Penalty) -> None:
    """Warn of pairs that too few rows of a table know for an edge to be found, or to be believed.

    Estimated from `_SAMPLED` rows, for at most `_MAX_COLUMNS` columns.
    """
    n, n_rows = table.n_variables, table.n_rows
    if n < 2 or not table.n_missing.any():
        return
    if rule.noise is None:
        return
    shown = np.flatnonzero(table.n_missing < n_rows)[:_MAX_COLUMNS]
    rows = np.linspace(0, n_rows - 1, min(n_rows, _SAMPLED)).astype(np.int64)
    known = (table.cells[shown][:, rows] < table.schema.n_states[shown, None]).astype(np.float32)
    both = (known @ known.T) * (n_rows / len(rows))
    i, j = np.triu_indices(len(shown), 1)
    least = np.sqrt(_quantile(rule.noise) * n_rows)
    sparse = np.flatnonzero(both[i, j] <= least)
    if not len(sparse):
        return
    worst = int(sparse[np.argmin(both[i, j][sparse])])
    names = [table.schema.names[shown[k[worst]]] for k in (i, j)]
    warnings.warn(
        f"{len(sparse):,} of {n * (n - 1) // 2:,} pairs of columns are known together in fewer "
        f"than {least:,.0f} of {n_rows:,} rows, such as '{names[0]}' and '{names[1]}': edges "
        "between them may be missing, or stand for edges nearby; leave out columns that are mostly "
        "missing, or fill in what is known of them",
        TooFewRowsWarning,
        stacklevel=5,
    )


def _quantile(noise: NoiseWeights) -> float:
    """Return the least ``q(k)`` of a pair; it falls with the degrees of freedom."""
    largest = np.argsort(-noise.dof, kind="stable")[:2]
    return float((noise.of(largest[None])[0] / noise.spread[largest].prod()) ** 2)
