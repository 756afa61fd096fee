"""Rows from random models, by the name of their graph."""

from __future__ import annotations

import math

from edgegraft.cli.tasks import Graph
from edgegraft.datasets import (
    SyntheticData,
    make_chain,
    make_erdos_renyi,
    make_grid,
    make_regular,
    make_scale_free,
    make_star,
)
from edgegraft.datasets.synthetic import Options


def draw(
    graph: Graph,
    variables: int,
    states: int,
    rows: int,
    degree: int,
    strength: float,
    seed: int,
    n_jobs: int,
) -> SyntheticData:
    """Return rows of a random model; a grid is as near to a square as `variables` allows."""
    options: Options = {"edge_scale": strength, "random_state": seed, "n_jobs": n_jobs}
    if graph is Graph.GRID:
        side = next(k for k in range(math.isqrt(variables), 0, -1) if variables % k == 0)
        return make_grid(side, variables // side, states, rows, **options)
    if graph is Graph.RANDOM:
        n_edges = min(round(variables * degree / 2), variables * (variables - 1) // 2)
        return make_erdos_renyi(variables, states, rows, n_edges=n_edges, **options)
    if graph is Graph.REGULAR:
        return make_regular(variables, degree, states, rows, **options)
    make = {Graph.SCALE_FREE: make_scale_free, Graph.CHAIN: make_chain, Graph.STAR: make_star}
    return make[graph](variables, states, rows, **options)
