"""A learned model fitted again by likelihood, as far as rows that it has not seen gain by it.

    L(theta) + penalty * sum_e d_e ||w_e||_2 + ridge * ||w||_2^2

A pseudolikelihood sees the model around the rows alone. Of baskets, most of whose cells are empty,
its model may have nearly all of its probability where no row is. So the likelihood is not climbed
from there but from the independent model, along a path of falling penalties on which the chains can
follow: each fit starts from the one before. A fifth of the rows is held out, and the path ends when
they gain no more. Their log-likelihood needs log Z, which is exact if that is affordable and
otherwise comes from annealing. The best penalty then serves a fit to all rows.

Held-out rows must not have chosen the graph, or they gain by what is their own noise. The penalised
pseudolikelihood is therefore fitted again without them, over all pairs. A model that was fitted
without a penalty keeps its graph, and what is said to be gained is too much by what the choice of
the graph is worth: little, if its edges passed tests.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.config import Plan
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import ConvergenceWarning, DataError
from edgegraft.inference.sampling import PersistentChains
from edgegraft.ingest.rows import read_table
from edgegraft.learn.graph_likelihood import FittedGraph, GraphLikelihood
from edgegraft.learn.prediction import candidates, hold_out, loss_of
from edgegraft.learn.prediction_path import Path
from edgegraft.model import PairwiseMRF
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.by_chains import STEPS, make_chains
from edgegraft.table.blocks import TableRows


@dataclass(frozen=True)
class _Rule:
    """How the path goes, and when its end is used."""

    min_held_out: int = 20  # rows: fewer say nothing of a gain of a tenth of a nat
    weaker: float = 1 / 3  # from one penalty to the next
    min_penalty: float = 1e-2  # in rows: a weaker one shrinks nothing
    patience: int = 2  # penalties that may gain nothing
    disagree: float = 3.0  # standard errors by which the last fit may be worse


_RULE = _Rule()


class Gain(NamedTuple):
    """Difference of the log-likelihoods per row of two models, on rows that neither has seen."""

    value: float
    error: float  # standard error


class Refit(NamedTuple):
    """How a model was fitted again by likelihood.

    Attributes
    ----------
    gain : Gain
        Log-likelihood per held-out row of the new fit less the old one's, both made without
        the held-out rows.
    penalty : float
        The best penalty; infinite if the model is returned as it was.
    tried : list of (float, Gain)
        Penalties and what held-out rows gained.
    residual : float
        Largest difference between a share of the model and what the fit wants it to be.
    """

    gain: Gain
    penalty: float
    tried: list[tuple[float, Gain]]
    residual: float

    def arrays(self) -> dict[str, Floats]:
        """Return all of it as arrays, for :meth:`from_arrays`."""
        tried = [(penalty, *gain) for penalty, gain in self.tried]
        return {name: np.array(part) for name, part in (self._asdict() | {"tried": tried}).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> Self:
        """Return what :meth:`arrays` described."""
        gain, penalty, tried, residual = (arrays[name].tolist() for name in cls._fields)
        return cls(Gain(*gain), penalty, [(each[0], Gain(*each[1:])) for each in tried], residual)


def refit_by_likelihood(
    model: PairwiseMRF,
    X: Any,
    penalty: float = 0.0,
    ridge: float = 0.0,
    *,
    weights: ArrayLike | None = None,
    n_steps: int | None = None,
    n_chains: int | None = None,
    n_jobs: int | None = 1,
    device: str = "cpu",
    random_state: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[PairwiseMRF, Refit]:
    """Fit a learned model again by likelihood, with persistent chains.

    The graph stays. How strongly it is penalised is chosen by held-out rows; if those do not gain,
    the model is returned as it was.

    Parameters
    ----------
    model : PairwiseMRF
        Fitted to the rows by pseudolikelihood.
    X : table
        The rows that it was fitted to.
    penalty, ridge : float, default 0.0
        Of that fit; see :func:`fit_parameters`. With a penalty, the graph that the held-out rows
        are asked about is found without them; otherwise it is that of `model`.
    weights : array of float, shape (n_rows,), optional
    n_steps : int, optional
        Steps of the chains at each penalty, 120 by default. Not used if exact inference is
        affordable.
    n_chains : int, optional
        512 by default, 8,192 on a GPU.
    n_jobs : int, default 1
    device : {"cpu", "cuda", "auto", "torch"}
        Where the chains run; see :class:`~edgegraft.GraftedMRF`.
    random_state : int, default 0
    stop : callable, optional
        Asked before every fit; if it returns True, the model is returned as it was.

    Returns
    -------
    model : PairwiseMRF
    refit : Refit

    Warns
    -----
    ConvergenceWarning
        If shares of the model still differ by more than .01 from what they should be.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> both = rng.integers(0, 2, (2000, 1))
    >>> X = both ^ (rng.random((2000, 5)) < 0.1)
    >>> from edgegraft import fit_parameters
    >>> first, _ = fit_parameters(X, ridge=0.1)
    >>> again, refit = refit_by_likelihood(first, X, ridge=0.1)
    >>> again.n_edges == first.n_edges, refit.gain.value > refit.gain.error
    (True, True)
    """
    rows = TableRows(read_table(X, model.schema), weights, n_jobs)
    chains = make_chains(n_chains, n_jobs, device, random_state)
    (fewer, held), *_ = hold_out(rows, np.random.default_rng(random_state))
    codes, counts = _complete(held)
    refitting = _Refitting(model, rows, (penalty, ridge), chains, n_steps or STEPS)
    before, graph = refitting.without(fewer)
    judge = _Judge(codes, counts, *graph.likelihoods(before, codes))
    tried = _follow_path(graph, judge, stop)
    stated = [(each.penalty, each.gain) for each in tried]
    if not tried or stop():
        return model, Refit(Gain(0.0, 0.0), np.inf, stated, 0.0)
    best = max(tried, key=lambda each: each.gain.value)
    unchanged = model, Refit(best.gain, np.inf, stated, 0.0)
    if best.gain.value <= best.gain.error:
        return unchanged
    share = graph.loss.n_rows / rows.weight  # strengths fall with the rows as noise does
    penalty, last = best.penalty * share**0.5, refitting.of_all()
    start = last.layout.carry(best.fitted.theta, graph.layout)
    fitted = last.fit(penalty, start, codes=best.fitted.codes, last=True)
    # Rows that are fitted now should be likelier than they were as held-out ones.
    worst = best.gain.value - _RULE.disagree * best.gain.error
    if judge.judge(last, fitted.theta).value < worst:
        warnings.warn(
            "the fit to all rows is worse than the one without held-out rows, and is not used: "
            "take more steps (n_steps=) or chains (n_chains=)",
            ConvergenceWarning,
            stacklevel=2,
        )
        return unchanged
    answer = PairwiseMRF(model.schema, model.edges, last.tables(fitted.theta), model.edge_columns)
    return answer, Refit(best.gain, penalty, stated, fitted.residual)


def _complete(held: TableRows) -> tuple[Integers, Floats]:
    """Return the codes and weights of complete rows."""
    codes = held.table.codes().astype(np.int64)
    known = (codes >= 0).all(axis=1)
    weights = (np.ones(len(codes)) if held.weights is None else held.weights)[known]
    if weights.sum() < _RULE.min_held_out:
        raise DataError(
            f"only {weights.sum():.0f} complete rows can be held out, and {_RULE.min_held_out} are "
            "needed to see whether a fit by likelihood is better: impute missing cells"
        )
    return codes[known], weights


class _Trial(NamedTuple):
    """What held-out rows say of one penalty."""

    penalty: float
    fitted: FittedGraph
    gain: Gain


class _Judge(NamedTuple):
    """Complete held-out rows, and their log-likelihoods before."""

    codes: Integers  # (n_rows, n_variables)
    weights: Floats
    before: Floats
    error: float  # of all of them together

    def judge(self, graph: GraphLikelihood, theta: Floats) -> Gain:
        """Return what the rows gain by other parameters."""
        after, error = graph.likelihoods(theta, self.codes)
        if not np.isfinite(error):  # log Z is too small if modes are missed
            return Gain(-np.inf, np.inf)
        n_rows, change = self.weights.sum(), after - self.before
        mean = self.weights @ change / n_rows
        spread = self.weights @ (change - mean) ** 2 / n_rows**2  # a row of weight 2 is two rows
        # If log Z was too small before, more is gained than it seems.
        before = self.error if np.isfinite(self.error) else 0.0
        return Gain(float(mean), float(np.sqrt(error**2 + spread + before**2)))


def _follow_path(graph: GraphLikelihood, judge: _Judge, stop: Callable[[], bool]) -> list[_Trial]:
    """Return fits at ever weaker penalties, until held-out rows gain no more."""
    fitted, penalty = graph.begin()
    tried: list[_Trial] = []
    best = 0
    while penalty * graph.loss.n_rows > _RULE.min_penalty and len(tried) - best <= _RULE.patience:
        if stop():
            break
        penalty *= _RULE.weaker
        fitted = graph.fit(penalty, fitted.theta, fitted.state)
        tried.append(_Trial(penalty, fitted, judge.judge(graph, fitted.theta)))
        if tried[-1].gain.value > tried[best].gain.value:
            best = len(tried) - 1
    return tried


class _Refitting:
    """A model and its rows, of which some may be left out."""

    def __init__(
        self,
        model: PairwiseMRF,
        rows: TableRows,
        strengths: tuple[float, float],
        chains: PersistentChains,
        n_steps: int,
    ) -> None:
        self._model, self._rows, self._chains, self._n_steps = model, rows, chains, n_steps
        self._penalty, self._ridge = strengths
        self._features: Features | None = None
        self.first = model.theta
        scored = loss_of(rows)
        if scored.features is not None:
            first = scored.features.weights_of(model.theta, model.edges)
            # Tables that are not made of scores alone are fitted as tables.
            if np.allclose(scored.expand(first, scored.layout(model.edges)), model.theta):
                self._features, self.first = scored.features, first

    def without(self, rows: TableRows) -> tuple[Floats, GraphLikelihood]:
        """Return the first fit again, to fewer rows, and its graph over these.

        With a penalty the pseudolikelihood finds its edges again.
        """
        fewer = self._rows.weight / rows.weight  # whose noise is penalised more
        penalty, ridge = self._penalty * fewer**0.5, self._ridge * fewer
        loss = (
            Pseudolikelihood(rows, precision="single")
            if self._features is None
            else loss_of(rows, self._features)
        )
        edges = self._model.edges
        pairs = candidates(rows, self._chains.random_state or 0) if penalty else edges
        path = Path(loss, pairs, Plan().tol, (loss.layout(edges), self.first))
        path.fit(penalty, ridge, fully=True)
        edges = path.edges() if penalty else edges
        theta = loss.layout(edges).carry(path.solution.theta, path.solution.layout)
        return theta, self._graph(rows, edges, ridge)

    def of_all(self) -> GraphLikelihood:
        """Return the model's graph over all rows."""
        return self._graph(self._rows, self._model.edges, self._ridge)

    def _graph(self, rows: TableRows, edges: Edges, ridge: float) -> GraphLikelihood:
        return GraphLikelihood(rows, edges, self._features, ridge, self._chains, self._n_steps)
