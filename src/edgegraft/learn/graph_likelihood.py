"""The likelihood of a graph at penalties of any strength, exactly or by persistent chains."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.counts import PairCounts
from edgegraft.inference import ExactBudget, affordable
from edgegraft.inference.ais import annealed_log_partition
from edgegraft.inference.exact import ExactEngine
from edgegraft.inference.sampling import PersistentChains, PersistentState
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import GroupWeight, Penalty
from edgegraft.optimize.by_chains import Fit, climb, penalty_pull, warn_unsettled
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table.blocks import TableRows

_LONGER = 3  # times the steps, of the last fit, which is not one of several
_EXACT = ExactBudget(seconds=0.1)  # one run; a fit takes some dozen
_STOPPING = Stopping(1e-4, 200)  # of fits by exact inference


class FittedGraph(NamedTuple):
    """A fit of one penalty, and the chains that may continue from it."""

    theta: Floats
    residual: float
    state: PersistentState | None = None  # on a device the next fit changes it
    codes: NDArray[np.uint16] | None = None  # where the chains were, whatever fits came after


class GraphLikelihood:
    """A graph and the rows that it is fitted to by likelihood, exactly or by chains."""

    def __init__(
        self,
        rows: TableRows,
        edges: Edges,
        features: Features | None,
        ridge: float,
        chains: PersistentChains,
        n_steps: int,
    ) -> None:
        counts, self._chains, self._n_steps = PairCounts(rows), chains, n_steps
        self._engine = ExactEngine()
        loss: Objective = Likelihood(counts, self._engine)
        self.loss = loss if features is None else featured(loss, features)
        self.layout, self.edges, self._features = self.loss.layout(edges), edges, features
        self._tables = Layout(rows.schema.n_states, edges)
        self._exact = affordable(self._tables, _EXACT)
        # The likelihood counts an edge once, the pseudolikelihood from both ends.
        weight: GroupWeight = "sqrt" if features is None else "noise"
        self._rule = Penalty(1.0, ridge / 2.0, group_weight=weight).bound(self.loss)
        self._fit = Fit.of(counts, self.layout, features)

    def tables(self, theta: Floats) -> Floats:
        """Return the tables of parameters."""
        return self.loss.expand(theta, self.layout)

    def begin(self) -> tuple[FittedGraph, float]:
        """Return the independent model, and the penalty at which it stays that."""
        theta = self.loss.start(self.layout)
        nodes, n = self.loss.margins(), int(self._tables.node_offset[-1])
        row, column = self._tables.cell_ends()
        gradient = np.concatenate((nodes, nodes[row] * nodes[column])) - self._fit.shares
        folded = self._fit.features.fold(gradient, self.layout)
        folded[:n] = 0.0
        return FittedGraph(theta, 0.0), self._rule.largest_useful(folded, self.layout)

    def fit(
        self,
        penalty: float,
        start: Floats,
        state: PersistentState | None = None,
        *,
        codes: NDArray[np.uint16] | None = None,
        last: bool = False,
    ) -> FittedGraph:
        """Maximise the penalised likelihood; the last fit takes longer.

        Chains continue from `state`, or begin at `codes`, which may be those of another graph.
        """
        rule = replace(self._rule, penalty=penalty)
        if self._exact is not None:
            exact = minimize(self.loss, rule, self.layout, start, _STOPPING, quiet=True)
            return FittedGraph(exact.theta, exact.info.residual)
        n_steps = _LONGER * self._n_steps if last else self._n_steps
        pull = penalty_pull(rule.groups(self.layout))
        state = state or self._chains.init(self._tables, codes)
        found = climb(self._fit, self._chains, start, pull, n_steps, state)
        if last:
            warn_unsettled(found)
        return FittedGraph(found.theta, found.residual, found.state, found.state.codes())

    def likelihoods(self, theta: Floats, rows: Integers) -> tuple[Floats, float]:
        """Return the log-likelihood of complete rows, and the error that all of them share.

        It is infinite if annealing has missed a mode, or cannot tell.
        """
        tables = self.tables(theta)
        if self._exact is not None:
            log_z, error = self._engine.run(tables, self._exact)[0].log_partition, 0.0
        else:
            found = annealed_log_partition(
                self._tables,
                tables,
                n_chains=2 * self._chains.n_chains,
                random_state=self._chains.random_state,
                n_jobs=self._chains.n_jobs,
                device="cuda" if self._chains.on_gpu else "cpu",
                rows=rows,
            )
            log_z, error = found.value, found.standard_error if found.reliable else np.inf
        model = PairwiseMRF(self.loss.schema, self.edges, tables)
        return model.energy(codes=rows) - log_z, error
