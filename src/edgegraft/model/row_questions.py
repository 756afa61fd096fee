"""What users ask about rows: how likely they are, what is missing in them, more like them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.backend import find_backend
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import Argument, ConvergenceWarning, ModelError
from edgegraft.inference import ExactEngine, affordable, gibbs_sample
from edgegraft.inference.gibbs import AGREEMENT, mixing
from edgegraft.kernels.conditionals.row_conditionals import state_conditionals
from edgegraft.model.answers import RowCodes, RowLikelihood, check_shares, no_numbers
from edgegraft.model.evidence import (
    Conditioned,
    ImputeMethod,
    complete_rows,
    condition,
    expected_conditionals,
    summed_conditionals,
    variable_index,
)
from edgegraft.model.questions import Engine, Given, Questions, RandomState
from edgegraft.table.arrow import labels
from edgegraft.table.numbers import numbers_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _Rule:
    """Chains that rows are drawn by."""

    chains: int = 64
    gpu_chains: int = 2048  # as fast there as few
    min_draws: int = 32  # per chain: with fewer, R-hat is mostly noise
    burn_in: int = 1000  # sweeps


_RULE = _Rule()


class RowQuestions(Questions):
    """Questions about rows; :class:`~edgegraft.model.PairwiseMRF` answers them.

    Rows are a table of the model's columns, whose cells are categories whatever their type, or
    ``codes=``: an array of numbers of categories, -1 for a missing cell, of shape (n_rows, n).
    """

    def pseudo_log_likelihood(
        self, X: Any = None, *, codes: ArrayLike | None = None, per_variable: bool = False
    ) -> Floats:
        """Return the sum over variables of ``log p(x_i | known rest)`` for each row, in nats.

        Missing cells have no term of their own, and are summed over in those of the others:
        exactly, or by 512 Gibbs draws per row if more than nine connected cells of two states are
        missing.

        Parameters
        ----------
        X, codes
            The rows, as a table of categories or as codes.
        per_variable : bool, default False
            Return one column per variable instead of the sum; nan if the cell is missing.
        """
        rows = self._read(X, codes)
        out = summed_conditionals(self.layout, self.theta, self._neighbours, rows)
        return out if per_variable else np.nansum(out, axis=1)

    def predict_proba(
        self, X: Any = None, target: str = "", *, codes: ArrayLike | None = None
    ) -> Floats:
        """Return ``p(target = category | the other known cells)`` for each row.

        Missing cells are summed over: exactly, or by 512 Gibbs draws per row and category if too
        much is missing of a dense network (standard errors of about .02 if the draws mix well).

        Parameters
        ----------
        X, codes
            The rows, as a table of categories or as codes.
        target : str
        """
        i = variable_index(self.schema, target)
        rows, layout = self._read(X, codes), self.layout
        out = np.empty((len(rows), int(layout.states[i])))
        model = self.theta, rows, i, layout.states, layout.node_offset, self._neighbours
        state_conditionals(*model, out)
        around = self._neighbours.other[slice(*self._neighbours.start[i : i + 2])]
        gaps = (rows[:, around] < 0).any(axis=1)
        if gaps.any():
            out[gaps] = expected_conditionals(layout, self.theta, self._neighbours, rows[gaps], i)
        impossible = np.isnan(out).any(axis=1)
        if impossible.any():
            row = int(np.argmax(impossible))
            raise ModelError(f"row {row}: no category of {target!r} is possible given the rest")
        return out

    def predict(
        self,
        X: Any = None,
        target: str = "",
        *,
        codes: ArrayLike | None = None,
        quantiles: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return what the other known cells of each row say of a column: one value per row.

        Of a column of numbers (or of levels that are numbers) the conditional mean; of others the
        likeliest category. Missing neighbours are treated as by :meth:`predict_proba`.

        Parameters
        ----------
        X, codes
            The rows, as a table of categories or as codes.
        target : str
        quantiles : float or array of float, optional
            Quantiles between 0 and 1 of a column of numbers instead of its mean, one column each
            if there are several.

        Examples
        --------
        >>> from edgegraft.model import PairwiseMRF
        >>> from edgegraft.table import Schema, Variable
        >>> visits = Variable("visits", (0, 1), kind="count")
        >>> model = PairwiseMRF.from_potentials(
        ...     Schema([Variable("ill", ("no", "yes"), "string"), visits]),
        ...     edges={("ill", "visits"): [[1.0, 0.0], [0.0, 1.0]]},
        ... )
        >>> model.predict(target="visits", codes=[[0, -1], [1, -1]]).round(2)
        array([0.27, 0.73])
        >>> model.predict(target="ill", codes=[[-1, 0], [-1, 1]]).tolist()
        ['no', 'yes']
        """
        found = self.predict_proba(X, target, codes=codes)
        variable = self.schema[target]
        numbers = numbers_of(variable)
        if quantiles is not None:
            if numbers is None:
                raise ModelError(no_numbers(variable))
            out = numbers.quantiles(found, check_shares(quantiles))
            return out[:, 0] if np.ndim(quantiles) == 0 else out
        if numbers is not None:
            return numbers.expectation(found)
        types = {type(label) for label in variable.categories}
        known = np.array(variable.categories, None if len(types) == 1 else object)
        return np.asarray(known[found.argmax(axis=1)])

    def log_likelihood(
        self,
        X: Any = None,
        *,
        codes: ArrayLike | None = None,
        engine: Engine = "auto",
        random_state: RandomState = 0,
    ) -> RowLikelihood:
        """Return the log-probability of each row, missing cells summed over, in nats.

        The log-partition function is exact if affordable, otherwise estimated with a standard
        error, which the rows themselves check (see :meth:`log_partition`). Rows with missing cells
        need exact inference over their missing variables, which is refused if not affordable.
        """
        rows = self._read(X, codes)
        log_z = self.log_partition(engine=engine, random_state=random_state, rows=rows)
        missing, exact = rows < 0, ExactEngine()
        gaps = np.flatnonzero(missing.any(axis=1))
        whole = np.delete(np.arange(len(rows)), gaps)
        out = np.empty(len(rows))
        out[whole] = self.energy(codes=rows[whole])
        for r in gaps[np.lexsort(missing[gaps].T)]:  # the same gaps share one preparation
            part = condition(self.layout, self.theta, rows[r])
            found, _, _ = exact.run(part.theta, exact.init(part.layout))
            out[r] = part.constant + found.log_partition
        return RowLikelihood(out - log_z.value, log_z)

    def draw(
        self,
        n_rows: int,
        given: Given = None,
        *,
        engine: str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = 1,
        device: str = "cpu",
    ) -> RowCodes:
        """Draw rows as codes, and name the approximation if there is one; see :meth:`sample`."""
        if n_rows < 0:
            raise ValueError(f"n_rows must not be negative, found {n_rows}")
        if engine not in ("auto", "exact", "gibbs"):
            raise ModelError(f"engine {engine!r} does not sample: use 'auto', 'exact' or 'gibbs'")
        part = self._condition(given)
        rng = np.random.default_rng(random_state)
        out = np.tile(part.codes, (n_rows, 1))
        exact = ExactEngine()
        state = affordable(part.layout) if engine == "auto" else None
        if engine == "exact":
            state = exact.init(part.layout)
        if state is not None:
            out[:, part.free] = exact.sample(part.theta, state, n_rows, rng)
            return RowCodes(out)
        if len(part.free):
            out[:, part.free] = self._draw_by_gibbs(part, n_rows, rng, n_jobs, device)
        return RowCodes(out, "Gibbs sampling")

    def sample_codes(self, n_rows: int, given: Given = None, **options: Any) -> Integers:
        """Draw rows as codes, with the options of :meth:`sample`."""
        return self.draw(n_rows, given, **options).codes

    def sample(
        self,
        n_rows: int,
        given: Given = None,
        *,
        engine: str = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = 1,
        device: str = "cpu",
    ) -> pa.Table:
        """Draw rows from the model, as a table of its names and categories.

        Columns of numbers have numbers, drawn within their levels.

        Parameters
        ----------
        n_rows : int
        given : dict of name to category, optional
            Evidence that every row agrees with.
        engine : {"auto", "exact", "gibbs"}
            Exact draws by junction tree if that is affordable; otherwise Gibbs sampling by 64
            chains, with a warning if split R-hat shows that they do not agree.
        random_state : int, Generator or None
        n_jobs : int
            Threads of the Gibbs sampler; the rows do not depend on it.
        device : {"cpu", "cuda", "auto", "torch"}
            Where the Gibbs sampler runs, with 2,048 chains on a GPU.

        Returns
        -------
        pyarrow.Table
            ``.to_pandas()`` makes a data frame of it.
        """
        rng = np.random.default_rng(random_state)
        codes = self.sample_codes(
            n_rows, given, engine=engine, random_state=rng, n_jobs=n_jobs, device=device
        )
        return labels(self.schema, codes, rng)

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
        X, codes
            The rows, as a table of categories or as codes.
        method : {"map", "draw"}
            The likeliest joint completion of each row, or one drawn at random from its
            distribution given the known cells. Exact if inference over the row's missing cells
            is affordable; otherwise by Gibbs sampling, cooled down for "map". Columns of numbers
            get the mean of the numbers in their level, or one drawn from it.
        random_state : int, Generator or None
            For draws, and for the approximation.
        """
        rng = np.random.default_rng(random_state)
        filled = self.complete(self._read(X, codes), method=method, random_state=rng)
        return labels(self.schema, filled.codes, rng if method == "draw" else None)

    def complete(
        self, codes: ArrayLike, *, method: ImputeMethod = "map", random_state: RandomState = 0
    ) -> RowCodes:
        """Fill the missing cells (-1) of codes, and name the approximation if there is one."""
        rng = np.random.default_rng(random_state)
        rows = self._read(None, codes)
        filled, n = complete_rows(self.layout, self.theta, self._neighbours, rows, method, rng)
        return RowCodes(filled, f"Gibbs sampling in {n:,} of {len(rows):,} rows" if n else None)

    def impute_codes(
        self, codes: ArrayLike, *, method: ImputeMethod = "map", random_state: RandomState = 0
    ) -> Integers:
        """Return codes with their missing cells (-1) filled in; see :meth:`impute`."""
        return self.complete(codes, method=method, random_state=random_state).codes

    def _draw_by_gibbs(
        self,
        part: Conditioned,
        n_rows: int,
        rng: np.random.Generator,
        n_jobs: int | None,
        device: str,
    ) -> Integers:
        """Return rows of the free variables; warn, naming the worst, if the chains do not agree.

        More rows are drawn than asked for if that is needed to compare the chains. Rows that
        follow each other come from different chains.
        """
        there = find_backend(device)
        n_chains = _RULE.gpu_chains if there is not None and there.is_gpu else _RULE.chains
        n_draws = max(_RULE.min_draws, -(-n_rows // n_chains))
        codes, _ = gibbs_sample(
            part.layout,
            part.theta,
            n_draws * n_chains,
            n_chains=n_chains,
            burn_in=_RULE.burn_in,
            random_state=rng,
            n_jobs=n_jobs,
            device=device,
        )
        draws = np.ascontiguousarray(codes.reshape(n_draws, n_chains, -1).transpose(2, 0, 1))
        modes = np.array([np.bincount(column.ravel()).argmax() for column in draws], np.int64)
        r_hat = mixing(draws, modes, n_jobs).r_hat
        worst = int(np.argmax(r_hat))
        if not r_hat[worst] < AGREEMENT:
            warnings.warn(
                ConvergenceWarning(
                    f"the Gibbs chains do not agree: R-hat of {self.names[part.free[worst]]!r} is "
                    f"{r_hat[worst]:.3g} (below {AGREEMENT} is wanted), so the rows may be far "
                    "from the model's distribution; use ",
                    Argument("engine", "exact"),
                    " if it is affordable",
                ),
                stacklevel=4,
            )
        return codes[:n_rows].astype(np.int64)
