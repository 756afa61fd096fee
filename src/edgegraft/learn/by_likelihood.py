"""A learned model fitted again by likelihood, as far as rows that it has not seen gain by it.

    L(theta) + penalty * sum_e d_e ||w_e||_2 + ridge * ||w||_2^2

A pseudolikelihood sees the model around the rows alone. Of baskets, most of whose cells are empty,
its model may have nearly all of its probability where no row is. So the likelihood is not climbed
from there but from the independent model, along a path of falling penalties on which the chains can
follow: each fit starts from the one before. A share of the rows is held out, and the path ends when
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
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional.features import Features
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.errors import ConvergenceWarning, DataError, SettingError
from edgegraft.inference.sampling import PersistentChains
from edgegraft.ingest.rows import read_table
from edgegraft.learn.graph_likelihood import FittedGraph, GraphLikelihood
from edgegraft.learn.prediction import candidates, loss_of
from edgegraft.learn.prediction_path import Path
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.objective import Objective
from edgegraft.objective.penalty import Penalty
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.optimize.by_chains import make_chains
from edgegraft.optimize.solver import Stopping, minimize
from edgegraft.table import PackedTable
from edgegraft.table.blocks import TableRows

STEPS = 120
"""Steps of the chains at each penalty of the path: with fewer, weak penalties seem worse."""

_MIN_HELD_OUT = 20  # rows
_START_TOL, _START_STEPS = 1e-4, 200  # of the pseudolikelihood without held-out rows
_WEAKER, _MIN_PENALTY = 1 / 3, 1e-2  # from one penalty to the next, and the last, in rows
_PATIENCE = 2  # penalties that may gain nothing
_FINER = 8  # times as many annealing chains for penalties that noise does not tell apart
_DISAGREE = 3.0  # standard errors by which the last fit may be worse
_SAME = 1e-6  # largest difference of tables that are made of scores


class Gain(NamedTuple):
    """Log-likelihood per row of one model less that of another, on rows that neither has seen."""

    value: float
    error: float  # standard error


class Refit(NamedTuple):
    """How a model was fitted again by likelihood.

    Attributes
    ----------
    gain : Gain
        Log-likelihood per held-out row of the new fit less that of the old, both made without
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
    held_out: float = 0.2,
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
    held_out : float, default 0.2
        Share of the rows that are held out.
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
    table = read_table(X, model.schema)
    chains = make_chains(n_chains, n_jobs, device, random_state)
    checked = TableRows(table, weights).weights
    given = np.ones(table.n_rows) if checked is None else checked
    out, codes, own = _split(table, given, held_out, random_state)
    refitting = _Refitting(model, table, given, (penalty, ridge), chains, n_steps or STEPS)
    before, graph = refitting.without(given - out)
    judge = _Judge(codes, own, *graph.likelihoods(before, codes))
    tried = _follow_path(graph, judge, stop)
    if tried and not stop():
        tried = _judge_again(graph, judge, tried)
    said = [(each.penalty, each.gain) for each in tried]
    if not tried or stop():
        return model, Refit(Gain(0.0, 0.0), np.inf, said, 0.0)
    best = max(tried, key=lambda each: each.gain.value)
    unchanged = model, Refit(best.gain, np.inf, said, 0.0)
    if best.gain.value <= best.gain.error:
        return unchanged
    share = graph.loss.n_rows / float(given.sum())  # strengths fall with the rows as noise does
    penalty, last = best.penalty * share**0.5, refitting.of_all(given)
    start = last.layout.carry(best.fitted.theta, graph.layout)
    found = last.fit(penalty, start, codes=best.fitted.codes, last=True)
    # Rows that are fitted now should be likelier than they were as held-out ones.
    if judge.judge(last, found.theta)[0].value < best.gain.value - _DISAGREE * best.gain.error:
        warnings.warn(
            "the fit to all rows is worse than that without the held-out ones, and is not used: "
            "take more steps (n_steps=) or chains (n_chains=)",
            ConvergenceWarning,
            stacklevel=2,
        )
        return unchanged
    answer = PairwiseMRF(model.schema, model.edges, last.tables(found.theta), model.edge_columns)
    return answer, Refit(best.gain, penalty, said, found.residual)


def _split(
    table: PackedTable, weights: Floats, held_out: float, seed: int
) -> tuple[Floats, Integers, Floats]:
    """Return the weights of rows held out, and codes and weights of the complete ones among them.

    A row whose weight is a whole number counts as that many rows, each held out or not.
    """
    if not 0.0 < held_out < 1.0:
        raise SettingError("held_out", f"must be between 0 and 1, found {held_out}")
    rng = np.random.default_rng(seed)
    if (weights == np.floor(weights)).all():
        out = rng.binomial(weights.astype(np.int64), held_out).astype(np.float64)
    else:
        out = np.where(rng.random(table.n_rows) < held_out, weights, 0.0)
    chosen = np.flatnonzero(out)
    codes = table.take(chosen).codes().astype(np.int64)
    known = (codes >= 0).all(axis=1)
    n_rows = round(float(np.ceil(out[chosen][known]).sum()))
    if n_rows < _MIN_HELD_OUT:
        raise DataError(
            f"only {n_rows} complete rows can be held out, and {_MIN_HELD_OUT} are needed to "
            "see whether a fit by likelihood is better: raise held_out, or impute missing cells"
        )
    return out, codes[known], out[chosen][known]


class _Trial(NamedTuple):
    """What held-out rows say of one penalty."""

    penalty: float
    fitted: FittedGraph
    gain: Gain
    noise: float  # error of log Z, which penalties do not share


class _Judge(NamedTuple):
    """Complete held-out rows, and their log-likelihoods before."""

    codes: Integers  # (n_rows, n_variables)
    weights: Floats
    before: Floats
    error: float  # of all of them together

    def judge(self, graph: GraphLikelihood, theta: Floats, finer: int = 1) -> tuple[Gain, float]:
        """Return what the rows gain by other parameters, and the error of their log Z."""
        after, error = graph.likelihoods(theta, self.codes, finer)
        if not np.isfinite(error):  # log Z is too small if modes are missed
            return Gain(-np.inf, np.inf), error
        share, change = self.weights / self.weights.sum(), after - self.before
        mean = float(share @ change)
        # If log Z was too small before, more is gained than it seems.
        errors = [error, *share * (change - mean), self.error if np.isfinite(self.error) else 0.0]
        return Gain(mean, float(np.linalg.norm(errors))), error


def _follow_path(graph: GraphLikelihood, judge: _Judge, stop: Callable[[], bool]) -> list[_Trial]:
    """Return fits at ever weaker penalties, until held-out rows gain no more."""
    fitted, penalty = graph.begin()
    tried: list[_Trial] = []
    best = 0
    while penalty * graph.loss.n_rows > _MIN_PENALTY and len(tried) - best <= _PATIENCE:
        if stop():
            break
        penalty *= _WEAKER
        fitted = graph.fit(penalty, fitted.theta, fitted.state)
        tried.append(_Trial(penalty, fitted, *judge.judge(graph, fitted.theta)))
        if tried[-1].gain.value > tried[best].gain.value:
            best = len(tried) - 1
    return tried


def _judge_again(graph: GraphLikelihood, judge: _Judge, tried: list[_Trial]) -> list[_Trial]:
    """Return the trials; those that noise does not tell from the best are judged by more chains."""
    best = max(tried, key=lambda each: each.gain.value)
    near = [
        0.0 < each.noise < np.inf
        and best.gain.value - each.gain.value <= 2.0 * np.hypot(best.noise, each.noise)
        for each in tried
    ]
    if sum(near) < 2:
        return tried
    return [
        _Trial(each.penalty, each.fitted, *judge.judge(graph, each.fitted.theta, _FINER))
        if again
        else each
        for each, again in zip(tried, near, strict=True)
    ]


class _Refitting:
    """A model and its rows, of which some may be left out."""

    def __init__(
        self,
        model: PairwiseMRF,
        table: PackedTable,
        weights: Floats,
        strengths: tuple[float, float],
        chains: PersistentChains,
        n_steps: int,
    ) -> None:
        self._model, self._rows = model, TableRows(table, None, chains.n_jobs)
        self._weights, self._chains, self._n_steps = weights, chains, n_steps
        self._penalty, self._ridge = strengths
        self.features: Features | None = None
        self.first = model.theta
        scored = featured(Pseudolikelihood(self._weigh(weights)))
        if scored.features is not None:
            first = scored.features.weights_of(model.theta, model.edges)
            # Tables that are not made of scores alone are fitted as tables.
            if np.allclose(
                scored.expand(first, scored.layout(model.edges)), model.theta, atol=_SAME
            ):
                self.features, self.first = scored.features, first

    def without(self, weights: Floats) -> tuple[Floats, GraphLikelihood]:
        """Return the first fit again, to fewer rows, and its graph over these."""
        fewer = float(self._weights.sum() / weights.sum())  # whose noise is penalised more
        penalty, ridge = self._penalty * fewer**0.5, self._ridge * fewer
        rows = self._weigh(weights)
        if penalty > 0.0:
            edges, theta = self._search(rows, penalty, ridge)
        else:
            edges, theta = self._model.edges, self._fit_again(rows, ridge)
        return theta, self._graph(rows, edges, ridge)

    def of_all(self, weights: Floats) -> GraphLikelihood:
        """Return the model's graph over all rows."""
        return self._graph(self._weigh(weights), self._model.edges, self._ridge)

    def _graph(self, rows: TableRows, edges: Edges, ridge: float) -> GraphLikelihood:
        return GraphLikelihood(rows, edges, self.features, ridge, self._chains, self._n_steps)

    def _search(self, rows: TableRows, penalty: float, ridge: float) -> tuple[Edges, Floats]:
        """Return the edges of the penalised pseudolikelihood of rows, and its parameters."""
        loss = self._loss(rows)
        path = Path(loss, candidates(rows, self._chains.random_state or 0), _START_TOL)
        path.begin(self._model.edges, (loss.layout(self._model.edges), self.first))
        path.fit(penalty, ridge, _START_STEPS)
        edges = path.edges()
        return edges, loss.layout(edges).carry(path.solution.theta, path.solution.layout)

    def _fit_again(self, rows: TableRows, ridge: float) -> Floats:
        """Return the pseudolikelihood's parameters of the model's graph."""
        loss, stopping = self._loss(rows), Stopping(_START_TOL, _START_STEPS)
        rule, layout = Penalty(0.0, ridge), loss.layout(self._model.edges)
        return minimize(loss, rule, layout, self.first, stopping, quiet=True).theta

    def _loss(self, rows: TableRows) -> Objective:
        return (
            Pseudolikelihood(rows, precision="single")
            if self.features is None
            else loss_of(rows, self.features)
        )

    def _weigh(self, weights: Floats) -> TableRows:
        same = weights[0] > 0 and bool((weights == weights[0]).all())
        return self._rows if same else self._rows.reweighted(weights, self._chains.n_jobs)
