"""Data drawn from random models, with their true networks.

The scale-free model is from the synthetic experiments of the edge-grafting paper: five states,
two edges per new variable, node potentials ``N(0, 0.5)`` and edge tables ``N(0, 1)``. The
paper draws them around a mean of 100; adding a constant to a potential does not change the
distribution, so the mean is zero here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core import Layout
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.datasets import graphs
from edgegraft.inference.chains import RandomState
from edgegraft.inference.sampling import Codes, GibbsInfo, gibbs_sample
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema

States = int | Sequence[int] | Integers


@dataclass(frozen=True, eq=False)
class SyntheticData:
    """Rows and the model from which they were drawn.

    Attributes
    ----------
    X : array of uint8 or uint16, shape (n_rows, n)
        States, counted from 0.
    edges : array of int, shape (m, 2)
        True edges ``(i, j)``, ``i < j``, sorted.
    layout : Layout
        Positions of the log-potentials in `theta`.
    theta : array of float, read-only
        True log-potentials.
    schema : Schema
        Variables ``x0``, ``x1``, ...
    sampler_info : GibbsInfo
        How the rows were drawn.
    """

    X: Codes
    edges: Edges
    layout: Layout
    theta: Floats
    schema: Schema
    sampler_info: GibbsInfo

    @property
    def model(self) -> PairwiseMRF:
        """The true model, which can be queried like a learned one."""
        return PairwiseMRF(self.schema, self.edges, self.theta)

    def __repr__(self) -> str:
        rows, n = self.X.shape
        return f"SyntheticData({rows} rows x {n} variables, {len(self.edges)} true edges)"


class Sampling(TypedDict, total=False):
    """Options of :func:`gibbs_sample`."""

    n_chains: int
    burn_in: int
    thinning: int
    n_jobs: int | None


class Options(Sampling, total=False):
    """Options that every generator takes; see `make_mrf`."""

    couplings: Literal["normal", "ising"]
    node_scale: float
    edge_scale: float
    coupling_range: tuple[float, float]
    random_state: RandomState


def make_mrf(
    edges: ArrayLike,
    n_states: States,
    n_rows: int = 10_000,
    *,
    couplings: Literal["normal", "ising"] = "normal",
    node_scale: float = 0.5,
    edge_scale: float = 1.0,
    coupling_range: tuple[float, float] = (0.3, 0.8),
    random_state: RandomState = None,
    **sampling: Unpack[Sampling],
) -> SyntheticData:
    """Draw random potentials on given edges, and rows from the resulting model.

    Parameters
    ----------
    edges : array of int, shape (m, 2)
        Distinct edges ``(i, j)`` with ``i < j``.
    n_states : sequence of int
        Number of states of each variable.
    n_rows : int, default 10000
        Number of rows.
    couplings : {"normal", "ising"}, default "normal"
        "normal": every entry of an edge table is ``N(0, edge_scale)``. "ising": binary variables;
        the table is ``[[J, -J], [-J, J]]``, as for spins of -1 and 1, with ``|J|`` uniform in
        `coupling_range` and a random sign.
    node_scale : float, default 0.5
        Node potentials are ``N(0, node_scale)``; with "ising", ``(-h, h)`` for such an ``h``.
    edge_scale : float, default 1.0
        Standard deviation of the entries of "normal" edge tables.
    coupling_range : (float, float), default (0.3, 0.8)
        Range of ``|J|`` with "ising".
    random_state : int, numpy.random.Generator or None, default None
        Seed. The same seed gives the same data on any number of threads.
    **sampling
        `n_chains`, `burn_in`, `thinning` and `n_jobs` of :func:`gibbs_sample`.

    Returns
    -------
    SyntheticData

    Examples
    --------
    >>> data = make_mrf([(0, 1), (1, 2)], [2, 3, 4], n_rows=100, random_state=0)
    >>> data
    SyntheticData(100 rows x 3 variables, 2 true edges)
    >>> data.layout.edge(data.theta, 0).shape
    (2, 3)
    """
    rng = np.random.default_rng(random_state)
    layout = Layout(np.asarray(n_states, np.int64), np.asarray(edges, np.int64))
    if couplings == "normal":
        theta = rng.standard_normal(layout.n_parameters)
        theta[: layout.node_offset[-1]] *= node_scale
        theta[layout.node_offset[-1] :] *= edge_scale
    elif couplings == "ising":
        theta = _ising(layout, node_scale, coupling_range, rng)
    else:
        raise ValueError(f"couplings must be 'normal' or 'ising', found {couplings!r}")
    theta.flags.writeable = False
    X, info = gibbs_sample(layout, theta, n_rows, random_state=rng, **sampling)
    return SyntheticData(X, layout.edges, layout, theta, Schema.from_states(layout.states), info)


def make_scale_free(
    n_variables: int, n_states: States = 5, n_rows: int = 20_000, **options: Unpack[Options]
) -> SyntheticData:
    """Generate the paper's synthetic data: preferential attachment, ``2 n - 4`` edges.

    Parameters
    ----------
    n_variables : int
        Number of variables; 200, 400 and 600 in the paper.
    n_states : int or sequence of int, default 5
        States of all variables, or of each.
    n_rows : int, default 20000
        Number of rows; the paper trains on 19,000 of 20,000.
    **options
        `couplings`, `node_scale`, `edge_scale`, `random_state` and others of :func:`make_mrf`.

    Returns
    -------
    SyntheticData

    Examples
    --------
    >>> data = make_scale_free(30, n_rows=500, random_state=0)
    >>> data.X.shape, data.X.dtype, len(data.edges)
    ((500, 30), dtype('uint8'), 56)
    """
    return _make(partial(graphs.scale_free, n_variables), n_variables, n_states, n_rows, options)


def make_chain(
    n_variables: int, n_states: States = 2, n_rows: int = 10_000, **options: Unpack[Options]
) -> SyntheticData:
    """Generate data from a chain; parameters as in :func:`make_scale_free`.

    Examples
    --------
    >>> make_chain(5, n_rows=10, couplings="ising", random_state=0)
    SyntheticData(10 rows x 5 variables, 4 true edges)
    """
    return _make(lambda _: graphs.chain(n_variables), n_variables, n_states, n_rows, options)


def make_star(
    n_variables: int, n_states: States = 2, n_rows: int = 10_000, **options: Unpack[Options]
) -> SyntheticData:
    """Generate data from a star around variable 0; parameters as in :func:`make_scale_free`.

    Examples
    --------
    >>> make_star(5, n_states=[4, 2, 2, 3, 3], n_rows=10, random_state=0)
    SyntheticData(10 rows x 5 variables, 4 true edges)
    """
    return _make(lambda _: graphs.star(n_variables), n_variables, n_states, n_rows, options)


def make_grid(
    rows: int, columns: int, n_states: States = 2, n_rows: int = 10_000, **options: Unpack[Options]
) -> SyntheticData:
    """Generate data from a `rows` x `columns` grid; others as in :func:`make_scale_free`.

    Examples
    --------
    >>> make_grid(3, 4, n_rows=10, couplings="ising", random_state=0)
    SyntheticData(10 rows x 12 variables, 17 true edges)
    """
    return _make(lambda _: graphs.grid(rows, columns), rows * columns, n_states, n_rows, options)


def make_erdos_renyi(
    n_variables: int,
    n_states: States = 2,
    n_rows: int = 10_000,
    *,
    p: float | None = None,
    n_edges: int | None = None,
    **options: Unpack[Options],
) -> SyntheticData:
    """Generate data from uniformly random edges: each with probability `p`, or `n_edges` in total.

    Other parameters as in :func:`make_scale_free`.

    Examples
    --------
    >>> make_erdos_renyi(20, n_rows=10, n_edges=30, random_state=0)
    SyntheticData(10 rows x 20 variables, 30 true edges)
    """
    graph = partial(graphs.erdos_renyi, n_variables, p=p, n_edges=n_edges)
    return _make(graph, n_variables, n_states, n_rows, options)


def make_regular(
    n_variables: int,
    degree: int,
    n_states: States = 2,
    n_rows: int = 10_000,
    **options: Unpack[Options],
) -> SyntheticData:
    """Generate data from a random graph in which every variable has `degree` neighbours.

    Other parameters as in :func:`make_scale_free`.

    Examples
    --------
    >>> make_regular(20, 4, n_rows=10, couplings="ising", random_state=0)
    SyntheticData(10 rows x 20 variables, 40 true edges)
    """
    graph = partial(graphs.regular, n_variables, degree)
    return _make(graph, n_variables, n_states, n_rows, options)


def _make(
    graph: Callable[[np.random.Generator], Edges],
    n_variables: int,
    n_states: States,
    n_rows: int,
    options: Options,
) -> SyntheticData:
    """Draw a graph, then everything else by the same generator."""
    rng = np.random.default_rng(options.get("random_state"))
    edges, states = graph(rng), np.asarray(n_states, np.int64)
    if states.ndim and states.shape != (n_variables,):
        raise ValueError(f"{states.size} numbers of states were given for {n_variables} variables")
    if (states < 1).any():
        raise ValueError("a variable needs at least 1 state")
    states = np.broadcast_to(states, n_variables)
    options = {**options, "random_state": rng}
    return make_mrf(edges, states, n_rows, **options)


def _ising(
    layout: Layout, scale: float, limits: tuple[float, float], rng: np.random.Generator
) -> Floats:
    other = np.flatnonzero(layout.states != 2)
    if other.size:
        i = int(other[0])
        raise ValueError(f"couplings='ising' needs 2 states, variable {i} has {layout.states[i]}")
    field = rng.normal(0.0, scale, layout.n_variables)
    strength = rng.uniform(*limits, layout.n_edges) * rng.choice((-1.0, 1.0), layout.n_edges)
    node = np.outer(field, (-1.0, 1.0))
    edge = np.outer(strength, (1.0, -1.0, -1.0, 1.0))
    return np.concatenate((node.ravel(), edge.ravel()))
