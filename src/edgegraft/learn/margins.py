"""A model whose shares are the data's.

A pseudolikelihood fits every column given the others, and the shares that follow from the whole
model may be off, the more the further the network is from the truth. So the last fit of a network
is by likelihood, from the pseudolikelihood's answer, if exact inference takes milliseconds: shares
of columns and of edges are then the data's but for the ridge. Otherwise, and for edges that are
made of scores, the node vectors alone are moved until the shares of the columns agree,

    u += step * C^-1 (p - q),

with ``p`` the data's shares, ``q`` the model's and ``C`` the covariance of all indicators under the
model, from Gibbs chains that continue from step to step. For many states ``C`` would take longer
than the fit: there every variable is moved as if it were alone, by ``log p - log q``.

A pseudolikelihood sees the model around the rows alone, and a dense network may have a second mode
that has none of them and most of the probability. No node vectors cure that. If shares still differ
after they have been moved, the tables are fitted by likelihood with persistent chains, which go
where the model goes (:mod:`~edgegraft.optimize.by_chains`), and pulled to those that they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.features import Features
from edgegraft.core import Layout
from edgegraft.core.types import Floats
from edgegraft.counts import PairCounts
from edgegraft.device import Device
from edgegraft.grafting.journal import Journal
from edgegraft.inference import ExactBudget, affordable
from edgegraft.inference.exact import ExactEngine
from edgegraft.inference.gibbs import GibbsEngine
from edgegraft.inference.persistent import PersistentChains
from edgegraft.model import PairwiseMRF
from edgegraft.objective.likelihood import Likelihood
from edgegraft.objective.penalty import Penalty
from edgegraft.optimize.by_chains import Fit, climb, pull_to
from edgegraft.optimize.solver import Stopping, minimize

_EXACT = ExactBudget(seconds=0.01, nbytes=1 << 26)  # a fit takes some dozen runs
_TOL = 3e-4  # largest error of shares after a fit
_ITERATIONS = 60
_CHAINS, _ROUNDS, _BURN_IN, _RECORDS = 256, 12, 100, 8
_LATE = slice(_ROUNDS // 2, None)  # rounds that are averaged
_CHEAP = 1000  # cells that chains read in a sweep
_CHEAP_ROUND = 4, 80  # times as many sweeps, and records, of so small a model
_FEW, _FEW_ROUND = 30, (8, 160)  # columns of such a model whose shares are to be within .001
_LOOK_UPS = 4e8  # of cells and their neighbours by all chains: some tenths of a second
_DEVICE_LOOK_UPS = 2e10
_MIN_SWEEPS, _MAX_SWEEPS = 8, 80  # per round: with fewer, chance outweighs what is corrected
_ENOUGH = 0.005  # difference that is not worth correcting by chains
_FARTHEST = 1.0  # step of a log-potential
_MAX_STATES = 1000  # whose covariance takes a tenth of a second to solve for
_DAMPING, _MIN_VARIANCE = 0.05, 1e-6  # added to the variances of the draws
_ALIKE, _EDGES_ALIKE = 0.01, 0.03  # differences up to which tables stay the pseudolikelihood's
_PULL_ROWS, _STEPS = 30.0, 100  # of a fit of the tables by chains
_LONGER = 4  # chains of a model with several modes mix slowly

Match = tuple[Floats, "Agreement"]
Round = Callable[[Floats], tuple[Floats, NDArray[Any]]]
"""From parameters to the shares of chains that follow them, and states of the chains."""


class Agreement(NamedTuple):
    """How far the shares of a model are from those of the data."""

    columns: float  # largest difference of a share of a column's category
    edges: float  # the same of a pair of categories of an edge
    engine: str  # what the model's shares were computed by: "exact" or "gibbs"
    error: float = 0.0  # largest standard error of such a difference; zero if exact

    def __str__(self) -> str:
        return self.describe()

    def describe(self, model: str = "the network's model") -> str:
        """Return the difference in words."""
        noise = "" if self.engine == "exact" else f" (by {self.engine}, +- {self.error:.4f})"
        return (
            f"The shares of {model} differ from the data's by at most {self.columns:.4f} for "
            f"categories of columns and {self.edges:.4f} for pairs of categories of edges{noise}."
        )


def match_margins(
    model: PairwiseMRF,
    counts: PairCounts,
    ridge: float,
    journal: Journal | None = None,
    *,
    features: Features | None = None,
    seed: int = 0,
) -> tuple[PairwiseMRF, Agreement | None]:
    """Return the model with the shares of the data, and how well they agree, None if too large.

    The model was fitted by pseudolikelihood to the rows of `counts`; `ridge` is that of edge
    tables, `features` those that its tables are made of if columns are ordered. The journal keeps
    the answer, so that a resumed run does not repeat the work. `seed` is that of chains, for which
    the model must not be too large.

    >>> from edgegraft.table import PackedTable
    >>> counts = PairCounts(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> start = PairwiseMRF(counts.schema, np.array([(0, 1)]), np.zeros(8))
    >>> found, agreement = match_margins(start, counts, 1e-3)
    >>> agreement.columns < 0.001, agreement.engine
    (True, 'exact')
    """

    def match() -> Floats:
        found = _match(model, counts, ridge, features, seed)
        if found is None:
            return np.empty(0)
        theta, (columns, edges, engine, error) = found
        return np.concatenate(([columns, edges, error, engine == "exact"], theta))

    row = (journal or Journal()).keep("margins", match)
    if not len(row):
        return model, None
    engine = "exact" if row[3] else "gibbs"
    agreement = Agreement(float(row[0]), float(row[1]), engine, float(row[2]))
    return PairwiseMRF(model.schema, model.edges, row[4:], model.edge_columns), agreement


def compare_margins(
    model: PairwiseMRF, counts: PairCounts, journal: Journal | None = None, *, seed: int = 0
) -> Agreement | None:
    """Return how well the shares of a model agree with the data's, None if it is too large.

    >>> from edgegraft.table import PackedTable
    >>> counts = PairCounts(PackedTable.from_codes([[0, 0], [1, 1], [1, 1], [0, 1]]))
    >>> round(compare_margins(PairwiseMRF(counts.schema, [(0, 1)], np.zeros(8)), counts).columns, 3)
    0.25
    """

    def compare() -> Floats:
        layout = model.layout
        loss = Likelihood(counts, ExactEngine())
        if affordable(layout, _EXACT) is not None:
            found = loss.evaluate(model.theta, loss.init(layout))
            return np.array((*_agreement(found.gradient, layout, "exact")[:2], 0.0, True))
        device = counts.rows.device
        length = _chain_length(layout, device)
        if length is None:
            return np.empty(0)
        chains = _chains(layout, length.sweeps, length.records, seed, device)
        values, draws = chains(model.theta)
        differs = _agreement(values - _shares(loss, layout), layout, "gibbs")
        return np.array((*differs[:2], _noise(draws), False))

    row = (journal or Journal()).keep("prediction.margins", compare)
    if not len(row):
        return None
    columns, edges, error, exact = row.tolist()
    return Agreement(columns, edges, "exact" if exact else "gibbs", error)


def _match(
    model: PairwiseMRF, counts: PairCounts, ridge: float, features: Features | None, seed: int
) -> Match | None:
    """Return the parameters of a model with the shares of the data; None if it is too large."""
    layout = model.layout
    if not layout.n_variables:
        return None
    if affordable(layout, _EXACT) is not None:
        loss = Likelihood(counts, ExactEngine())
        if features is None:
            stopping = Stopping(_TOL, _ITERATIONS)
            found = minimize(loss, Penalty(0.0, ridge), layout, model.theta, stopping, quiet=True)
            if found.info.converged:
                return found.theta, _agreement(found.gradient, layout, "exact")
        state = loss.init(layout)
        theta = _move_nodes(loss, state, model.theta)
        gradient = loss.evaluate(theta, state).gradient
        return theta, _agreement(gradient, layout, "exact")
    return _match_by_chains(model, counts, features, seed)


def _match_by_chains(
    model: PairwiseMRF, counts: PairCounts, features: Features | None, seed: int
) -> Match | None:
    """Move node vectors, and fit the tables if that is not enough; None if the model is large."""
    layout, device = model.layout, counts.rows.device
    length = _chain_length(layout, device)
    if length is None:
        return None
    data = Likelihood(counts, ExactEngine())

    def follow(theta: Floats, sweeps: int) -> Match:
        chains = _chains(layout, sweeps, length.records, seed, device)
        return _follow_chains(layout, theta, data, chains, length.enough)

    found = follow(model.theta, length.sweeps)
    if found[1].columns <= _ALIKE and found[1].edges <= _EDGES_ALIKE:
        return found
    again = follow(_fit_tables(model, counts, features, seed), _LONGER * length.sweeps)
    return min(again, found, key=lambda each: each[1].columns + each[1].edges)


class _Length(NamedTuple):
    """How long chains run."""

    sweeps: int  # per round
    records: int
    enough: float  # difference of a share that is not worth correcting


def _chain_length(layout: Layout, device: Device | None) -> _Length | None:
    """Return the length of a round; None if too few sweeps are affordable."""
    work = (layout.n_variables + 2 * layout.n_edges) * layout.states.mean() / 2
    look_ups = _LOOK_UPS if device is None else _DEVICE_LOOK_UPS
    sweeps = min(_MAX_SWEEPS, int((look_ups / (_CHAINS * work) - _BURN_IN) / _ROUNDS))
    if sweeps < _MIN_SWEEPS:
        return None
    if work > _CHEAP:
        return _Length(sweeps, _RECORDS, _ENOUGH)
    few = layout.n_variables <= _FEW
    # A device has more chains.
    more, records = _FEW_ROUND if few and device is None else _CHEAP_ROUND
    return _Length(more * sweeps, records, 0.0 if few else _ENOUGH)


def _shares(data: Likelihood, layout: Layout) -> Floats:
    return np.concatenate((data.margins(), data.pair_frequencies(layout)))


def _fit_tables(
    model: PairwiseMRF, counts: PairCounts, features: Features | None, seed: int
) -> Floats:
    """Return the parameters of a fit by likelihood with chains, pulled to the tables as given."""
    device, layout, first = counts.rows.device, model.layout, model.theta
    if features is not None:
        layout = features.layout(model.edges)
        first = features.weights_of(first, model.edges)
    fit = Fit.of(counts, layout, features)
    chains = PersistentChains(_CHAINS, random_state=seed, device=device)
    # The norm is that of the tables, whatever they are made of.
    norm = fit.features.squared.fold(np.ones(model.layout.n_parameters), layout)
    pull = pull_to(first, layout, _PULL_ROWS / counts.rows.weight * norm)
    return fit.features.expand(climb(fit, chains, first, pull, _STEPS).theta, layout)


def _move_nodes(loss: Likelihood, state: Any, theta: Floats) -> Floats:
    """Return parameters whose node vectors maximise the likelihood, with the tables as given."""
    from scipy.optimize import minimize as lbfgs

    n_nodes = int(state.layout.node_offset[-1])

    def fall(nodes: Floats) -> tuple[float, Floats]:
        found = loss.evaluate(np.concatenate((nodes, theta[n_nodes:])), state)
        return found.value, found.gradient[:n_nodes]

    options = {"maxiter": _ITERATIONS, "ftol": 0.0, "gtol": _TOL}
    best = lbfgs(fall, theta[:n_nodes], jac=True, method="L-BFGS-B", options=options)
    return np.concatenate((best.x, theta[n_nodes:]))


def _chains(layout: Layout, sweeps: int, records: int, seed: int, device: Device | None) -> Round:
    """Return chains that continue from round to round, and are recorded as often; on a device many.

    A round has about as many sweeps as asked for.
    """
    thinning = max(1, sweeps // records)
    state: Any
    if device is not None:
        there = PersistentChains(_RECORDS * _CHAINS, thinning, _BURN_IN, 1, seed, device)
        state = there.init(layout)

        def look(theta: Floats) -> tuple[Floats, NDArray[Any]]:
            nonlocal state
            values = np.zeros(layout.n_parameters)
            for _ in range(records):
                found, state, _ = there.run(theta, state)
                values += found.values / records
            return values, state.codes()

        return look
    engine = GibbsEngine(_CHAINS, thinning * records, _BURN_IN, thinning, random_state=seed)
    state = engine.init(layout)

    def run(theta: Floats) -> tuple[Floats, NDArray[Any]]:
        nonlocal state
        found, state, _ = engine.run(theta, state)
        return found.values, state.draws

    return run


def _follow_chains(
    layout: Layout, start: Floats, data: Likelihood, look: Round, enough: float
) -> Match:
    """Move node vectors against chains, in shorter and shorter steps; keep what agrees better.

    The last move is by the mean of the later rounds, which has the least noise. That mean is
    stated as what is left.
    """
    n_nodes = int(layout.node_offset[-1])
    shares = data.margins()
    frequencies = _shares(data, layout)
    theta, path, differences = start.copy(), [], []

    def move(draws: NDArray[Any], difference: Floats, step: float) -> None:
        found = _newton(layout, draws, -difference[:n_nodes], shares)
        theta[:n_nodes] += np.clip(found, -_FARTHEST, _FARTHEST) * step

    for k in range(_ROUNDS):
        values, draws = look(theta)
        differences.append(values - frequencies)
        path.append(theta[:n_nodes].copy())
        if k == 0 and np.abs(differences[0][:n_nodes]).max() < enough:
            return theta, _agreement(differences[0], layout, "gibbs", _noise(draws))
        move(draws, differences[-1], min(1.0, 3.0 / (k + 1)))
    late = differences[_LATE]
    after = np.mean(late, axis=0)
    error = float(np.std(late, axis=0)[:n_nodes].max() / len(late) ** 0.5)
    if np.abs(after[:n_nodes]).max() >= np.abs(differences[0][:n_nodes]).max():
        return start, _agreement(differences[0], layout, "gibbs", error)
    theta[:n_nodes] = np.mean(path[_LATE], axis=0)
    move(draws, after, 1.0)
    return theta, _agreement(after, layout, "gibbs", error)


def _newton(layout: Layout, draws: NDArray[Any], wanted: Floats, shares: Floats) -> Floats:
    """Return the step of the node vectors that would change the shares as wanted.

    Shares change with node vectors by the covariance of all indicators, here that of the draws; of
    many states, by that of a variable's own.
    """
    if len(shares) > _MAX_STATES:
        return np.asarray(np.log(shares) - np.log(np.maximum(shares - wanted, _MIN_VARIANCE)))
    owner = np.repeat(np.arange(layout.n_variables), layout.states)
    level = np.arange(len(owner)) - layout.node_offset[owner]
    flat = draws.reshape(layout.n_variables, -1)
    shown = (flat[owner] == level[:, None]).astype(np.float32)
    shown -= shown.mean(axis=1, keepdims=True)
    covariance = (shown @ shown.T).astype(np.float64) / shown.shape[1]
    variance = shares * (1.0 - shares)
    covariance[np.diag_indices_from(covariance)] += _DAMPING * variance + _MIN_VARIANCE
    return np.asarray(np.linalg.solve(covariance, wanted))


def _noise(draws: NDArray[Any]) -> float:
    """Return the largest standard error of a share, from how much chains differ."""
    apart = draws.reshape(len(draws), -1, draws.shape[-1])
    spread = [(apart == a).mean(axis=1).std(axis=1).max() for a in range(int(draws.max()) + 1)]
    return float(max(spread) / draws.shape[-1] ** 0.5)


def _agreement(difference: Floats, layout: Layout, engine: str, error: float = 0.0) -> Agreement:
    n_nodes = int(layout.node_offset[-1])
    size = np.abs(difference)
    columns, edges = (float(part.max(initial=0.0)) for part in (size[:n_nodes], size[n_nodes:]))
    return Agreement(columns, edges, engine, error)
