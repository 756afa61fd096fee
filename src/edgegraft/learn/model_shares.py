"""Shares of a model with their errors, or the statement that they are not known.

They are exact if a run of elimination takes less than half a second, and otherwise from Gibbs
chains. Half of these start in rows of the data and half in independent uniform draws: what one
family has to leave, the other has to find. The chains run twice as long until both families agree
on the share of every state of every column, and every chain has forgotten where it began. The means
of single chains are independent of each other, so their spread is the error of a share however
slowly chains mix, and how much a chain varies beside it says how often it has seen the model anew.

Draws are rows: pairs of states are counted as in the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.inference import ExactBudget, ExactEngine, affordable
from edgegraft.inference.chains import Chains, make_streams, move_chains, scattered
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable
from edgegraft.table.blocks import Rows, sample_rows
from edgegraft.table.packed import empty_cells


@dataclass(frozen=True)
class _Rule:
    """When shares are exact, and when chains have settled."""

    family: int = 256  # chains that start alike: their spread is known to 5 %
    records: int = 64  # draws kept of a chain
    look_ups: float = 1e9  # of a run, per number of a conditional: about .4 s
    level: float = 0.01  # of the largest of all differences, if there is none
    alike: float = 0.001  # a difference that does not count even if it is known: what reports show
    precise: float = 0.005  # an error that is small enough: that of 10,000 rows
    part: float = 0.1  # the same, of a difference
    renewed: float = 3.0  # draws that a settled chain is worth, at least: R-hat below 1.15


_RULE = _Rule()
_EXACT = ExactBudget(seconds=0.3, nbytes=1 << 27)  # a run that is as quick as chains


class ModelShares(NamedTuple):
    """The shares of a model.

    Attributes
    ----------
    values : array of float
        Shares of states and of the edges' pairs of states, laid out like the parameters.
    error : array of float
        Standard errors of the states' shares; zero if they are exact.
    farthest : float
        Largest difference of a state's share in a family of chains from the share given.
    draw : callable
        Returns draws of the model.
    engine : {"exact", "gibbs"}
    settled : bool
        Whether both families of chains agree and every chain has moved about.
    n_sweeps : int
        Sweeps of each chain before the recorded ones, which are as many or more.
    """

    values: Floats
    error: Floats
    farthest: float
    draw: Callable[[], PackedTable]
    engine: str = "exact"
    settled: bool = True
    n_sweeps: int = 0

    def differ_from(self, shares: Floats) -> bool:
        """Return whether states have other shares than these, beyond chance."""
        if self.engine == "exact":
            return self.farthest > _RULE.alike
        return _differ((self.values - shares)[: len(self.error)], self.error)


def find_shares(
    model: PairwiseMRF, rows: Rows, shares: Floats, seed: int, n_sweeps: int = 0
) -> ModelShares | None:
    """Return the shares of a model; None if even short chains would take too long.

    Chains run until they have settled and their shares are precise, at least beside how far they
    are from those given. The first record begins after `n_sweeps`, and lasts twice as long.

    >>> from edgegraft.table.blocks import TableRows
    >>> rows = TableRows(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> theta = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    >>> found = find_shares(PairwiseMRF(rows.schema, [(0, 1)], theta), rows, np.zeros(8), seed=0)
    >>> found.engine, found.values[4:].round(3).tolist()
    ('exact', [0.366, 0.134, 0.134, 0.366])
    """
    layout, engine = model.layout, ExactEngine()
    state = affordable(layout, _EXACT)
    if state is not None:

        def draw() -> PackedTable:
            rng = np.random.default_rng(seed)
            codes = engine.sample(model.theta, state, 2 * _RULE.family * _RULE.records, rng)
            return PackedTable.from_codes(codes, model.schema)

        values, n_nodes = engine.run(model.theta, state)[0].values, int(layout.node_offset[-1])
        farthest = float(np.abs(values - shares)[:n_nodes].max())
        return ModelShares(values, np.zeros(n_nodes), farthest, draw)
    return _by_chains(model, rows, shares, seed, n_sweeps)


def _by_chains(
    model: PairwiseMRF, rows: Rows, shares: Floats, seed: int, n_sweeps: int
) -> ModelShares | None:
    layout = model.layout
    records = _RULE.records
    cost = _RULE.family * (layout.n_variables + 2 * layout.n_edges) * layout.states.mean()
    if 2 * records * cost > _RULE.look_ups:
        return None
    jobs = getattr(rows, "n_jobs", 1)
    chains = move_chains(layout, model.theta, _starts(layout, rows, seed), rows.device, jobs)
    chains.sweep(n_sweeps)
    done, length = n_sweeps, max(records, 2 * n_sweeps)
    while True:
        cells = empty_cells(model.schema, 2 * _RULE.family * records)
        draws = cells.reshape(layout.n_variables, records, -1)
        chains.sweep(length % records)
        chains.record(draws, length // records)
        done += length
        families, error, settled = _measure(layout, draws)
        farthest = float(np.abs(families - shares[: len(error), None]).max())
        precise = error.max() < max(_RULE.precise, _RULE.part * farthest)
        if (settled and precise) or 2 * done * cost > _RULE.look_ups:
            break
        length = done
    table = PackedTable(model.schema, cells, cells.shape[1])
    pairs = PairCounts(table, jobs).pairs(layout.edges).values / table.n_rows
    values = np.concatenate((families.mean(axis=1), pairs))
    return ModelShares(values, error, farthest, lambda: table, "gibbs", settled, done - length)


def _starts(layout: Layout, rows: Rows, seed: int) -> Chains:
    """Return chains of which the first half start in rows, whose missing cells are drawn."""
    rng = np.random.default_rng(seed)
    chains = scattered(layout, make_streams(rng, 2 * _RULE.family))
    sample = sample_rows(rows, 4 * _RULE.family, rng)
    p = None if sample.weights is None else sample.weights / sample.weights.sum()
    codes = sample.table.cells[:, rng.choice(sample.table.n_rows, _RULE.family, p=p)]
    known = codes < layout.states[:, None]
    chains.state[:, : _RULE.family][known] = codes[known]
    return chains


def _measure(layout: Layout, draws: NDArray[Any]) -> tuple[Floats, Floats, bool]:
    """Return the shares of states in both families of chains, the errors of their means, and more.

    That is whether chains have settled. The draws have the shape (n, records, chains).
    """
    _, records, n_chains = draws.shape
    means = np.empty((int(layout.node_offset[-1]), n_chains))  # of every chain
    for a in range(int(layout.states.max())):
        have = layout.states > a
        shown = (draws if have.all() else draws[have]) == a
        means[layout.node_offset[:-1][have] + a] = np.add.reduce(shown.view(np.uint8), 1)
    by_family = (means / records).reshape(len(means), 2, -1)
    families, spread = by_family.mean(axis=2), by_family.var(axis=2, ddof=1).mean(axis=1)
    # A state that is seldom seen may have been missed: no surer than one draw.
    error = np.sqrt(spread / n_chains + (n_chains * records) ** -2.0)
    values = families.mean(axis=1)
    left = values * (1.0 - values) - _RULE.renewed * spread
    renewed = (np.add.reduceat(left, layout.node_offset[:-1]) >= 0.0).all()
    agree = not _differ(families[:, 0] - families[:, 1], 2.0 * error)
    return families, error, bool(renewed and agree)


def _differ(differences: Floats, error: Floats) -> bool:
    """Return whether the largest of many differences is more than noise."""
    limit = -ndtri(_RULE.level / 2.0 / len(error))
    return bool((np.abs(differences) > limit * error + _RULE.alike).any())
