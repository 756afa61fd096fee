"""Networks of levels, numbers and mixed columns with their rows, for the benchmarks of kinds."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from edgegraft.conditional.features import Features
from edgegraft.core.pairs import all_pairs
from edgegraft.ingest import pack
from edgegraft.model import PairwiseMRF


def draw_edges(n, n_edges, rng):
    """Return some pairs of columns."""
    pairs = all_pairs(n)
    return pairs[rng.choice(len(pairs), n_edges, replace=False)]


def gaussian(n, n_rows, n_levels, seed):
    """Return the edges of a network, and its rows as levels or numbers.

    One edge per column (1.5 if there are more than 25), couplings .2 to .4 of either sign, cut at
    random places.
    """
    rng = np.random.default_rng(seed)
    edges = draw_edges(n, n if n == 25 else int(1.5 * n), rng)
    precision = np.eye(n)
    for i, j in edges:
        precision[i, j] = precision[j, i] = rng.choice([-1, 1]) * rng.uniform(0.2, 0.4)
    precision += max(0.0, 0.1 - np.linalg.eigvalsh(precision)[0]) * np.eye(n)
    rows = rng.multivariate_normal(np.zeros(n), np.linalg.inv(precision), n_rows)
    rows /= rows.std(axis=0)
    if n_levels is not None:
        for i in range(n):
            shares = np.cumsum(rng.dirichlet(np.full(n_levels, 5.0)))[:-1]
            rows[:, i] = np.searchsorted(norm.ppf(np.clip(shares, 0.02, 0.98)), rows[:, i])
        rows = rows.astype(np.int64)
    return set(map(tuple, edges.tolist())), rows


def leveled(n, n_rows, n_levels, seed, checkers=0.0):
    """Return the edges of a network of levels, and its rows.

    One edge per column, linear in the middle ranks, weights .25 to .5; a checkerboard may be added
    to every table. Cut Gaussians are not such networks: a cut neighbour does not separate columns.
    """
    rng = np.random.default_rng(seed)
    edges = np.array(sorted(map(tuple, draw_edges(n, n, rng).tolist())))
    schema = pack(np.tile(np.arange(n_levels), (n, 20)).T, kinds="ordinal").schema
    margins = rng.dirichlet(np.full(n_levels, 8.0), n)
    features, board = Features.of(schema, margins.ravel()), (-1.0) ** np.arange(n_levels)
    layout, nodes = features.layout(edges), np.log(margins)
    theta = np.zeros(layout.n_parameters)
    theta[layout.edge_offset[:-1]] = rng.choice([-1, 1], n) * rng.uniform(0.25, 0.5, n)
    tables = features.expand(theta, layout)
    tables[nodes.size :] += checkers * np.tile(np.outer(board, board).ravel(), n)
    for _ in range(8):  # until the margins are those of the scores
        tables[: nodes.size] = nodes.ravel()
        model = PairwiseMRF(schema, edges, tables)
        codes = model.sample_codes(20_000, random_state=seed)
        shares = np.stack([np.bincount(column, minlength=n_levels) for column in codes.T]) + 0.5
        nodes = nodes + 0.8 * np.log(margins / shares * len(codes))
    return set(map(tuple, edges.tolist())), model.sample_codes(n_rows, random_state=seed + 100)


def mixed(n_rows, seed, n_sweeps=60):
    """Return the edges of a conditional Gaussian network, its rows and its unordered columns.

    Eight columns of numbers, eight of two states and eight of three unordered states, 24 edges,
    by Gibbs sampling. An edge of a number and a state moves the mean by up to one standard
    deviation; one of two discrete columns is a table of log-odds.
    """
    rng = np.random.default_rng(seed)
    states = np.repeat([0, 2, 3], 8)
    n = len(states)
    edges = draw_edges(n, n, rng)
    tables: dict[tuple[int, int], np.ndarray] = {}
    for i, j in edges.tolist():
        shape = tuple(max(int(s), 1) for s in states[[i, j]])
        table = rng.choice([-1, 1], shape) * rng.uniform(0.5, 1.0, shape)
        if shape == (1, 1):
            table *= 0.4
        for axis, size in enumerate(shape):
            if size > 1:
                table -= table.mean(axis=axis, keepdims=True)
        tables[i, j], tables[j, i] = table, table.T
    near = [[b for a, b in tables if a == i] for i in range(n)]
    rows = np.where(states > 0, rng.integers(0, np.maximum(states, 1), (n_rows, n)), 0.0)
    for _ in range(n_sweeps):
        for i in range(n):
            field = np.zeros((n_rows, max(int(states[i]), 1)))
            for j in near[i]:
                table = tables[i, j]
                field += table[:, rows[:, j].astype(int)].T if states[j] else rows[:, [j]] * table.T
            if states[i]:
                noise = rng.gumbel(size=field.shape)
                rows[:, i] = np.argmax(field + noise, axis=1)
            else:
                rows[:, i] = field[:, 0] + rng.normal(size=n_rows)
    return set(map(tuple, edges.tolist())), rows, tuple(np.flatnonzero(states == 3).tolist())


def curved(n_rows, n_levels, seed, n_pairs=8):
    """Return eight pairs of columns, the second of which is the square of the first and noise."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n_rows, n_pairs))
    second = (first**2 - 1) / np.sqrt(2) + rng.normal(size=(n_rows, n_pairs))
    rows = np.concatenate((first, second, rng.normal(size=(n_rows, n_pairs))), axis=1)
    if n_levels is not None:
        cuts = np.quantile(rows, np.linspace(0, 1, n_levels + 1)[1:-1], axis=0)
        columns = [np.searchsorted(cuts[:, i], rows[:, i]) for i in range(rows.shape[1])]
        rows = np.stack(columns, axis=1)
    return {(k, k + n_pairs) for k in range(n_pairs)}, rows


def null(seed):
    """Return no edges, and rows of independent columns of every kind."""
    rng = np.random.default_rng(seed)
    rows = {f"o{k}": rng.choice(5, 400, p=[0.4, 0.3, 0.15, 0.1, 0.05]) for k in range(8)}
    rows |= {f"n{k}": rng.lognormal(size=400) for k in range(8)}
    rows |= {f"c{k}": rng.poisson(2.0, 400) for k in range(4)}
    rows |= {f"b{k}": rng.choice(["no", "yes"], 400) for k in range(4)}
    return set(), rows, {f"o{k}": "ordinal" for k in range(8)}


def rare(seed):
    """Return no edges, and rows of 100 independent columns of rate .1 beside two of levels."""
    rng = np.random.default_rng(seed)
    rows = {f"b{k}": np.where(rng.random(1000) < 0.1, "yes", "no") for k in range(100)}
    rows |= {f"o{k}": rng.integers(0, 5, 1000) for k in range(2)}
    return set(), rows, {"o0": "ordinal", "o1": "ordinal"}
