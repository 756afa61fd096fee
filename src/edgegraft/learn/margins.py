"""A model whose shares are the data's.

A pseudolikelihood fits every column given the others, and the shares that follow from the whole
model may be off, the more the further the network is from the truth. So the last fit of a network
is by likelihood, from the pseudolikelihood's answer, if exact inference takes milliseconds: shares
of columns and of edges are then the data's but for the ridge. (Of edges that are made of scores,
only the node vectors are moved.)

Otherwise shares are measured by chains (:mod:`~edgegraft.learn.model_shares`), and what is not
known to differ is not touched. Beyond the noise the node vectors take a Newton step,

    u += C^-1 (p - q) s,      s = 1 - noise / difference, of squares,

with ``p`` the data's shares, ``q`` the model's and ``C`` the covariance of all indicators in the
chains' draws. A pseudolikelihood sees the model around the rows alone, and a dense network may have
a second mode that has none of them and most of the probability. No node vectors cure that: then,
and if shares of edges are far off, the tables are fitted by likelihood with persistent chains,
which go where the model goes (:mod:`~edgegraft.optimize.by_chains`), and pulled to those that they
were. Each step is taken only if other chains, which run longer, say that the shares became better.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Floats, Tree
from edgegraft.counts import PairCounts
from edgegraft.errors import ConvergenceWarning
from edgegraft.inference import ExactBudget, affordable
from edgegraft.inference.exact import ExactEngine
from edgegraft.inference.sampling import PersistentChains
from edgegraft.learn.model_shares import ModelShares, find_shares
from edgegraft.model import PairwiseMRF
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.by_chains import STEPS, Fit, climb, pull_to
from edgegraft.optimize.solver import Stopping, minimize


@dataclass(frozen=True)
class _Rule:
    """Steps by which shares are matched."""

    farthest: float = 1.0  # step of a log-potential
    max_states: int = 1000  # whose covariance takes a tenth of a second to solve for
    damping: float = 0.05  # added to the variances of the draws, as a share of them
    min_variance: float = 1e-6  # and as a number
    far: float = 0.05  # difference beyond which the tables are fitted again: what is warned of
    node_steps: int = 3  # of the node vectors before a fit of the tables; one less after it
    exact_steps: int = 12  # before it if shares are exact, which cost little
    pull_rows: float = 30.0  # strength by which a fit by chains is pulled to the tables


_RULE = _Rule()
_EXACT = ExactBudget(seconds=0.01, nbytes=1 << 26)  # a fit takes some dozen runs
_STOPPING = Stopping(3e-4, 60)  # of an exact fit: the largest error of shares


class Agreement(NamedTuple):
    """How far the shares of a model are from the data's."""

    columns: float  # largest difference of a share of a column's category; NaN if not known
    edges: float  # the same of a pair of categories of an edge
    engine: str  # what the model's shares were computed by: "exact" or "gibbs"
    error: float = 0.0  # largest standard error of a column's share; zero if exact

    def tree(self) -> Tree:
        """Return all of it, for :meth:`of_tree`."""
        return {"numbers": np.array((self.columns, self.edges, self.error)), "by": self.engine}

    @classmethod
    def of_tree(cls, tree: Tree | None) -> Self | None:
        """Return what :meth:`tree` described."""
        if tree is None:
            return None
        columns, edges, error = tree["numbers"].tolist()
        return cls(columns, edges, tree["by"], error)

    def __str__(self) -> str:
        return self.describe()

    def describe(self, model: str = "the network's model") -> str:
        """Return the difference in words."""
        if np.isnan(self.columns):
            return (
                f"The shares of {model} are not known: chains from rows and from random starts do "
                "not come to agree."
            )
        noise = "" if self.engine == "exact" else f" (by {self.engine}, +- {self.error:.4f})"
        return (
            f"The shares of {model} differ from the data's by at most {self.columns:.4f} for "
            f"categories of columns and {self.edges:.4f} for pairs of categories of edges{noise}."
        )


def match_margins(
    model: PairwiseMRF,
    counts: PairCounts,
    ridge: float,
    *,
    features: Features | None = None,
    seed: int = 0,
) -> tuple[PairwiseMRF, Agreement | None]:
    """Return the model with the shares of the data, and how well they agree, None if too large.

    The model was fitted by pseudolikelihood to the rows of `counts`; `ridge` is that of edge
    tables, `features` those that its tables are made of if columns are ordered. `seed` is that of
    chains, for which the model must not be too large.

    >>> from edgegraft.table import PackedTable
    >>> counts = PairCounts(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> start = PairwiseMRF(counts.schema, np.array([(0, 1)]), np.zeros(8))
    >>> found, agreement = match_margins(start, counts, 1e-3)
    >>> agreement.columns < 0.001, agreement.engine
    (True, 'exact')
    """
    layout, loss = model.layout, Likelihood(counts, ExactEngine())
    if not layout.n_variables:
        return model, None

    def at(theta: Floats) -> PairwiseMRF:
        return PairwiseMRF(model.schema, model.edges, theta, model.edge_columns)

    if features is None and affordable(layout, _EXACT) is not None:
        rule, start = Penalty(0.0, ridge), model.theta
        fitted = minimize(loss, rule, layout, start, _STOPPING, quiet=True)
        if fitted.info.converged:
            return at(fitted.theta), _agreement(fitted.gradient, layout)
    shares = _shares(loss, layout)
    found = find_shares(model, counts.rows, shares, seed)
    if found is None:
        return model, None
    size = 1.0  # of a step; chains that refuse one are asked about half of it
    before = _RULE.exact_steps if found.engine == "exact" else _RULE.node_steps
    for k in range(1, before + _RULE.node_steps + 1):
        # Chains that have not settled say where nodes should move only if they are near.
        near = found.settled or k > before + 1
        if k != before + 1 and near and found.differ_from(shares):
            theta = model.theta + size * _newton_step(layout, found, shares)
        elif k == before + 1 and np.abs(found.values - shares).max() > _RULE.far:
            theta = _fit_tables(model, counts, features, seed)
        else:
            continue
        other = at(theta)
        again = find_shares(other, counts.rows, shares, seed + k, found.n_sweeps)
        # Of chains that have not settled both families must have come nearer.
        if again and again.farthest < found.farthest and again.settled >= found.settled:
            model, found, size = other, again, 1.0
        else:
            size /= 2.0
    return model, _stated(found, shares, layout)


def compare_margins(model: PairwiseMRF, counts: PairCounts, *, seed: int = 0) -> Agreement | None:
    """Return how well the shares of a model agree with the data's, None if it is too large.

    >>> from edgegraft.table import PackedTable
    >>> counts = PairCounts(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> round(compare_margins(PairwiseMRF(counts.schema, [(0, 1)], np.zeros(8)), counts).columns, 3)
    0.25
    """
    shares = _shares(Likelihood(counts, ExactEngine()), model.layout)
    found = find_shares(model, counts.rows, shares, seed)
    return None if found is None else _stated(found, shares, model.layout)


def warn_of_shares(agreement: Agreement | None, advice: str) -> None:
    """Warn if a model's shares of categories are far from the data's."""
    if agreement is not None and agreement.columns > _RULE.far:
        warnings.warn(f"{agreement} {advice}".rstrip(), ConvergenceWarning, stacklevel=6)


def _shares(data: Likelihood, layout: Layout) -> Floats:
    return np.concatenate((data.margins(), data.pair_frequencies(layout)))


def _newton_step(layout: Layout, found: ModelShares, shares: Floats) -> Floats:
    """Return the step of the node vectors that gives the model the shares of the data.

    Shares change with node vectors by the covariance of all indicators, here that of the draws; of
    many states, by that of a variable's own. The part of the difference that is as large as noise
    stays.
    """
    step, n_nodes = np.zeros(layout.n_parameters), len(found.error)
    values, wanted = found.values[:n_nodes], (shares - found.values)[:n_nodes]
    sure = max(0.0, 1.0 - float((found.error**2).sum() / (wanted**2).sum()))
    if n_nodes > _RULE.max_states:
        least = np.maximum((shares[:n_nodes], values), _RULE.min_variance)
        move = np.log(least[0] / least[1])
    else:
        whole = layout.with_edges(all_pairs(layout.n_variables))
        row, column = whole.cell_ends()
        draws = found.draw()
        covariance = np.diag(values)  # two states of a column never meet
        pairs = PairCounts(draws).pairs(whole.edges).values / draws.n_rows
        covariance[row, column] = covariance[column, row] = pairs
        covariance -= np.outer(values, values)
        covariance[np.diag_indices(n_nodes)] += (
            _RULE.damping * values * (1 - values) + _RULE.min_variance
        )
        move = np.linalg.solve(covariance, wanted)
    step[:n_nodes] = sure * np.clip(move, -_RULE.farthest, _RULE.farthest)
    return step


def _fit_tables(
    model: PairwiseMRF, counts: PairCounts, features: Features | None, seed: int
) -> Floats:
    """Return the parameters of a fit by likelihood with chains, pulled to the tables as given."""
    device, layout, first = counts.rows.device, model.layout, model.theta
    if features is not None:
        layout = features.layout(model.edges)
        first = features.weights_of(first, model.edges)
    fit = Fit.of(counts, layout, features)
    chains = PersistentChains(random_state=seed, device=device)
    # The norm is that of the tables, whatever they are made of.
    norm = fit.features.squared.fold(np.ones(model.layout.n_parameters), layout)
    pull = pull_to(first, layout, _RULE.pull_rows / counts.rows.weight * norm)
    return fit.features.expand(climb(fit, chains, first, pull, STEPS).theta, layout)


def _stated(found: ModelShares, shares: Floats, layout: Layout) -> Agreement:
    """Return how the shares of chains agree with the data's: NaN if they are not known."""
    difference = found.values - shares if found.settled else np.full_like(shares, np.nan)
    return _agreement(difference, layout, found.engine, float(found.error.max()))


def _agreement(
    difference: Floats, layout: Layout, engine: str = "exact", error: float = 0.0
) -> Agreement:
    parts = np.split(np.abs(difference), [int(layout.node_offset[-1])])
    columns, edges = (float(part.max(initial=0.0)) for part in parts)
    return Agreement(columns, edges, engine, error)
