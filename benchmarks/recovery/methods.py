"""The methods that recover graphs, each from a sample to a set of edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.recovery.models import Sample
from benchmarks.recovery.screening import Loss, couplings, minimise, penalty_of

Found = set[tuple[int, int]]
Floats = NDArray[np.float64]
_EBIC_GAMMA = 0.25  # as IsingFit has it
_MAX_SUBSET = 14
_PATH = np.geomspace(1.0, 1e-3, 40)  # penalties, in units of the one that leaves nothing


class Method(NamedTuple):
    """A way to recover a graph.

    Attributes
    ----------
    told : str
        What the method knows of the model besides the rows.
    needs : str
        The module that it needs, if any.
    states : tuple of int
        Smallest and largest number of states that it is run with.
    max_columns : int
        Columns up to which it is run.
    """

    name: str
    recover: Callable[[Sample], Found]
    about: str
    told: str = ""
    needs: str = ""
    states: tuple[int, int] = (2, 2)
    max_columns: int = 100

    def suits(self, n_states: int, n_columns: int) -> bool:
        """Return whether it is run on models of so many states and columns."""
        return self.states[0] <= n_states <= self.states[1] and n_columns <= self.max_columns


def edgegraft(**options: Any) -> Callable[[Sample], Found]:
    """Return the network of our estimator."""

    def recover(sample: Sample) -> Found:
        from edgegraft import GraftedMRF

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GraftedMRF(kinds="nominal", random_state=0, **options)
            found = model.fit(sample.codes, sample_weight=sample.counts)
        return {(min(i, j), max(i, j)) for i, j in found.edges_.tolist()}

    return recover


def screening(loss: Loss) -> Callable[[Sample], Found]:
    """Return the couplings above half of the smallest true one."""

    def recover(sample: Sample) -> Found:
        penalty = penalty_of(loss, sample.codes.shape[1], sample.n_rows)
        return _above(couplings(_spins(sample), sample.counts, loss, penalty), sample.coupling / 2)

    return recover


def slide(
    threshold: float, *, know_degree: bool = False, ridge: float = 0.0
) -> Callable[[Sample], Found]:
    """Return best subsets of every column's logistic regression, their size by GIC.

    The recipe of `slide` in R's abess: coefficients of {-1, 1}, averaged over both directions;
    `threshold` is a share of the smallest coupling. Newton steps are whole ones: the approximate
    ones of the recipe find the same subsets in fifteen times the time.
    """

    def recover(sample: Sample) -> Found:
        from abess import LogisticRegression

        n = sample.codes.shape[1]
        spins, theta = _spins(sample), np.zeros((n, n))
        most = _degree(sample) if know_degree else min(n - 2, _MAX_SUBSET)
        for u in range(n):
            others = np.delete(np.arange(n), u)
            model = LogisticRegression(
                support_size=range(most + 1),
                ic_type="gic",
                alpha=[ridge / sample.n_rows],
                exchange_num=max(1, min(round(most / 2), 8)),
                max_iter=100,
                primary_model_fit_max_iter=100,
                primary_model_fit_epsilon=1e-10,
            )
            model.fit(
                spins[:, others], sample.codes[:, u], is_normal=False, sample_weight=sample.counts
            )
            theta[u, others] = model.coef_ / 2
        return _above((theta + theta.T) / 2, threshold * sample.coupling)

    return recover


def nodewise_l1(sample: Sample) -> Found:
    """Return l1 regressions by the extended BIC, pairs of which both directions agree."""
    spins, n = _spins(sample), sample.codes.shape[1]
    share, total = sample.counts / sample.n_rows, sample.n_rows
    chosen = np.zeros((n, n), bool)
    for u in range(n):
        products = spins * spins[:, u : u + 1]
        products[:, u] = spins[:, u]
        free = np.arange(n) == u
        most = float(np.abs(np.delete(share @ products, u)).max())
        theta, best = np.zeros(n), np.inf
        for level in most * _PATH:
            theta = minimise(products, share, "RPLE", np.where(free, 0.0, level), theta)
            used = (theta != 0) & ~free
            loss = float(share @ np.logaddexp(0.0, -2.0 * (products @ theta)))
            cost = np.log(total) + 4 * _EBIC_GAMMA * np.log(n - 1)
            value = 2 * total * loss + used.sum() * cost
            if value < best:
                best, chosen[u] = value, used
    return _pairs(chosen & chosen.T)


def one_against_rest(sample: Sample) -> Found:
    """Return l1 regressions of every state by the extended BIC, of which both directions agree."""
    from benchmarks.rivals.tools.nodewise import fit_l1

    states = np.full(sample.codes.shape[1], sample.n_states)
    both = fit_l1(sample.codes, states, 0, 1)[0].edges
    assert both is not None
    return {(min(i, j), max(i, j)) for i, j in both}


def skein_mcp(sample: Sample) -> Found:
    """Return logistic regressions under MCP by the extended BIC, pairs of which both agree."""
    from skein_glm import LogisticMCPPathRegressor, select_by_ic

    rows = np.repeat(np.arange(len(sample.codes)), sample.counts.astype(int))
    spins, codes, n = _spins(sample)[rows], sample.codes[rows], sample.codes.shape[1]
    chosen = np.zeros((n, n), bool)
    for u in range(n):
        others = np.delete(np.arange(n), u)
        target = codes[:, u].astype(float)
        if len(np.unique(target)) < 2:
            continue
        path = LogisticMCPPathRegressor(n_lambdas=50).fit(spins[:, others], target)
        best, _ = select_by_ic(path, spins[:, others], target, criterion="ebic")
        chosen[u, others] = np.abs(path.coefs_[best]) > 0
    return _pairs(chosen & chosen.T)


def group_subsets(sample: Sample) -> Found:
    """Return best subsets of neighbours in every column's multinomial regression, by GIC."""
    from abess import MultinomialRegression

    n, s = sample.codes.shape[1], sample.n_states
    chosen = np.zeros((n, n), bool)
    hot = (sample.codes[:, :, None] == np.arange(1, s)).astype(float).reshape(len(sample.codes), -1)
    group = np.repeat(np.arange(n), s - 1)
    for u in range(n):
        others = group != u
        y = (sample.codes[:, u, None] == np.arange(s)).astype(float)
        model = MultinomialRegression(
            support_size=range(n - 1), ic_type="gic", group=group[others] - (group[others] > u)
        )
        model.fit(hot[:, others], y, is_normal=False, sample_weight=sample.counts)
        used = np.abs(model.coef_).sum(axis=1).reshape(n - 1, s - 1).any(axis=1)
        chosen[u, np.delete(np.arange(n), u)] = used
    return _pairs(chosen & chosen.T)


def _spins(sample: Sample) -> Floats:
    return np.asarray(2.0 * sample.codes - 1.0)


def _degree(sample: Sample) -> int:
    """Return the largest true number of neighbours."""
    return int(np.bincount(np.array(sorted(sample.edges)).ravel()).max())


def _above(couplings: Floats, threshold: float) -> Found:
    return _pairs(np.abs(couplings) > threshold)


def _pairs(adjacent: NDArray[np.bool_]) -> Found:
    first, second = np.nonzero(np.triu(adjacent, 1))
    return set(zip(first.tolist(), second.tolist(), strict=True))


METHODS = (
    Method("edgegraft", edgegraft(fwer="auto"), '`GraftedMRF(fwer="auto")`', states=(2, 21)),
    Method("RISE", screening("RISE"), "authors' constant .4", "smallest coupling"),
    Method("SLIDE", slide(0.0), "best subsets by GIC", "", "abess"),
    Method("SLIDE, cut", slide(0.5), "the same, cut", "smallest coupling", "abess"),
    Method("logRISE", screening("logRISE"), "authors' constant .8", "smallest coupling"),
    Method("RPLE", screening("RPLE"), "authors' constant .2", "smallest coupling"),
    Method(
        "L0-L2",
        slide(0.5, know_degree=True, ridge=1.0),
        "best subsets by GIC with a ridge of one row, cut",
        "smallest coupling, largest degree",
        "abess",
        max_columns=16,
    ),
    Method("l1, EBIC", nodewise_l1, "nodewise l1, EBIC with gamma .25, both ends", max_columns=16),
    Method(
        "MCP, EBIC",
        skein_mcp,
        "nodewise MCP of skein-glm, EBIC, both ends",
        needs="skein_glm",
        max_columns=16,
    ),
    Method(
        "group subsets",
        group_subsets,
        "best subsets of columns in multinomial regressions, by GIC, both ends",
        needs="abess",
        states=(3, 5),
    ),
    Method(
        "l1 per state",
        one_against_rest,
        "nodewise l1 of every state against the rest, EBIC with gamma .5, both ends",
        states=(3, 21),
    ),
)
