"""What users ask about rows: how likely they are, what is missing in them, more like them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import ModelError
from edgegraft.inference import ExactEngine, affordable
from edgegraft.kernels.conditionals.rows import log_conditionals, state_conditionals
from edgegraft.model.answers import RowLikelihood
from edgegraft.model.evidence import condition, parse_evidence
from edgegraft.model.imputation import ImputeMethod, impute_codes
from edgegraft.model.potentials import variable_index
from edgegraft.model.questions import Engine, Given, Questions, RandomState
from edgegraft.model.sampling import draw_by_gibbs

if TYPE_CHECKING:
    import pyarrow as pa


class RowQuestions(Questions):
    """Questions about rows; :class:`~edgegraft.model.PairwiseMRF` answers them."""

    def pseudo_log_likelihood(
        self, X: Any = None, *, codes: ArrayLike | None = None, per_variable: bool = False
    ) -> NDArray[np.float64]:
        """Return the sum over variables of ``log p(x_i | rest)`` for each row, in nats.

        Missing cells have no term of their own, and their neighbours are conditioned on what is
        known (an approximation: the missing cell's edges are left out, not summed over).

        Parameters
        ----------
        X : table of the model's columns
        codes : array of int, shape (n_rows, n), optional
            The rows as numbers of categories, -1 for a missing cell, in place of `X`.
        per_variable : bool, default False
            Return one column a variable instead of the sum; nan where the cell is missing.
        """
        rows, layout = self._read(X, codes), self.layout
        out = np.empty(rows.shape)
        log_conditionals(self.theta, rows, layout.states, layout.node_offset, self._neighbours, out)
        return out if per_variable else np.nansum(out, axis=1)

    def predict_proba(
        self, X: Any = None, target: str = "", *, codes: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return ``p(target = category | the other known cells)`` for each row.

        Exact for rows in which every neighbour of the target is known; the edges of missing
        neighbours are left out (an approximation: use `marginals` with evidence for the rest).

        Parameters
        ----------
        X : table of the model's columns
        target : str
        codes : array of int, shape (n_rows, n), optional
            The rows as numbers of categories, -1 for a missing cell, in place of `X`.
        """
        i = variable_index(self.schema, target)
        rows, layout = self._read(X, codes), self.layout
        out = np.empty((len(rows), int(layout.states[i])))
        state_conditionals(
            self.theta, rows, i, layout.states, layout.node_offset, self._neighbours, out
        )
        impossible = np.isnan(out).any(axis=1)
        if impossible.any():
            row = int(np.argmax(impossible))
            raise ModelError(f"row {row}: no category of {target!r} is possible given the rest")
        return out

    def log_likelihood(
        self,
        X: Any = None,
        *,
        codes: ArrayLike | None = None,
        engine: Engine = "auto",
        random_state: RandomState = 0,
    ) -> RowLikelihood:
        """Return the log-probability of each row, missing cells summed over, in nats.

        The log-partition function is exact where affordable, otherwise estimated with a standard
        error (see :meth:`log_partition`). Rows with missing cells need exact inference over
        their missing variables, which is refused where it is not affordable.
        """
        rows = self._read(X, codes)
        log_z = self.log_partition(engine=engine, random_state=random_state)
        missing = rows < 0
        gaps = np.flatnonzero(missing.any(axis=1))
        out = np.empty(len(rows))
        whole = np.delete(np.arange(len(rows)), gaps)
        out[whole] = self.energy(codes=rows[whole])
        for r in gaps[np.lexsort(missing[gaps].T)]:  # the same gaps share one preparation
            out[r] = self._log_sum(rows[r])
        return RowLikelihood(out - log_z.value, log_z)

    def _log_sum(self, row: NDArray[np.int64]) -> float:
        """Return the log of the summed potentials of all completions of a row."""
        known = {int(i): int(row[i]) for i in np.flatnonzero(row >= 0)}
        part = condition(self.layout, self.theta, known)
        engine = ExactEngine()
        found, _, _ = engine.run(part.theta, engine.init(part.layout))
        return part.constant + found.log_partition

    def sample_codes(
        self,
        n_rows: int,
        given: Given = None,
        *,
        engine: str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = 1,
    ) -> NDArray[np.int64]:
        """Draw rows as codes; see :meth:`sample`."""
        if n_rows < 0:
            raise ValueError(f"n_rows must not be negative, found {n_rows}")
        if engine not in ("auto", "exact", "gibbs"):
            raise ModelError(f"engine {engine!r} does not sample: use 'auto', 'exact' or 'gibbs'")
        part = self._condition(given)
        rng = np.random.default_rng(random_state)
        out = np.empty((n_rows, len(self.schema)), np.int64)
        out[:] = self._evidence_row(given)
        exact = ExactEngine()
        state = affordable(part.layout) if engine == "auto" else None
        if engine == "exact":
            state = exact.init(part.layout)
        if state is not None:
            out[:, part.free] = exact.sample(part.theta, state, n_rows, rng)
        elif part.layout.n_variables:
            names = tuple(self.names[i] for i in part.free)
            out[:, part.free] = draw_by_gibbs(part.layout, part.theta, n_rows, rng, n_jobs, names)
        return out

    def sample(
        self,
        n_rows: int,
        given: Given = None,
        *,
        engine: str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = 1,
    ) -> pa.Table:
        """Draw rows from the model, as a table of its names and categories.

        Parameters
        ----------
        n_rows : int
        given : dict of name to category, optional
            Evidence that every row agrees with.
        engine : {"auto", "exact", "gibbs"}
            Exact draws by junction tree where that is affordable; otherwise Gibbs sampling by 64
            chains, with a warning where split R-hat says that they do not agree.
        random_state : int, Generator or None
        n_jobs : int
            Threads of the Gibbs sampler; the rows do not depend on it.

        Returns
        -------
        pyarrow.Table
            ``.to_pandas()`` makes a data frame of it.
        """
        codes = self.sample_codes(
            n_rows, given, engine=engine, random_state=random_state, n_jobs=n_jobs
        )
        return self.schema.decode(codes)

    def impute(
        self,
        X: Any = None,
        *,
        codes: ArrayLike | None = None,
        method: ImputeMethod = "map",
        random_state: RandomState = 0,
    ) -> pa.Table:
        """Return the rows with their missing cells filled in.

        Parameters
        ----------
        X : table of the model's columns
        codes : array of int, shape (n_rows, n), optional
            The rows as numbers of categories, -1 for a missing cell, in place of `X`.
        method : {"map", "draw"}
            The likeliest joint completion of each row, or one drawn at random from its
            distribution given the known cells. Exact where inference over the row's missing
            cells is affordable; otherwise by Gibbs sampling, cooled down for "map".
        random_state : int, Generator or None
            For draws, and for the approximation.
        """
        filled = self.impute_codes(self._read(X, codes), method=method, random_state=random_state)
        return self.schema.decode(filled)

    def impute_codes(
        self, codes: ArrayLike, *, method: ImputeMethod = "map", random_state: RandomState = 0
    ) -> NDArray[np.int64]:
        """Return codes with their missing cells (-1) filled in; see :meth:`impute`."""
        rng = np.random.default_rng(random_state)
        rows = self._read(None, codes)
        return impute_codes(self.layout, self.theta, self._neighbours, rows, method, rng)

    def _evidence_row(self, given: Given) -> NDArray[np.int64]:
        row = np.zeros(len(self.schema), np.int64)
        for i, code in parse_evidence(self.schema, given).items():
            row[i] = code
        return row
