"""Graphs for generated data, as sorted ``(m, 2)`` arrays of edges ``(i, j)``, ``i < j``.

Time and memory are proportional to the edges, never to the ``n (n - 1) / 2`` pairs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from edgegraft.core.types import Edges, Integers


def chain(n: int) -> Edges:
    """Join each of `n` variables to the next.

    >>> chain(3).tolist()
    [[0, 1], [1, 2]]
    """
    _require(n >= 1, f"a chain needs at least 1 variable, not {n}")
    return np.column_stack((np.arange(n - 1), np.arange(1, n)))


def star(n: int) -> Edges:
    """Join variable 0 to each of the others.

    >>> star(3).tolist()
    [[0, 1], [0, 2]]
    """
    _require(n >= 1, f"a star needs at least 1 variable, not {n}")
    return np.column_stack((np.zeros(n - 1, np.int64), np.arange(1, n)))


def grid(rows: int, columns: int) -> Edges:
    """Join horizontal and vertical neighbours; cell ``(r, c)`` is variable ``r * columns + c``.

    >>> grid(2, 2).tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    _require(rows >= 1 and columns >= 1, f"a grid of {rows} x {columns} has no cells")
    cell = np.arange(rows * columns).reshape(rows, columns)
    across = np.column_stack((cell[:, :-1].ravel(), cell[:, 1:].ravel()))
    down = np.column_stack((cell[:-1].ravel(), cell[1:].ravel()))
    return _sorted(np.concatenate((across, down)))


def scale_free(n: int, rng: np.random.Generator) -> Edges:
    """Grow a graph by preferential attachment, two edges for each new variable.

    The graph starts with two variables without an edge. Each further variable is joined to two
    different variables, chosen with probability proportional to their degrees, which gives
    ``2 n - 4`` edges. Hubs therefore have small indices.
    """
    _require(n >= 2, f"a scale-free graph needs at least 2 variables, not {n}")
    if n == 2:
        return np.empty((0, 2), np.int64)
    # `ends` contains a variable once per edge: a uniform choice is preferential attachment.
    ends = [0, 2, 1, 2]
    edges = [(0, 2), (1, 2)]
    picks = rng.random((n - 3, 2)).tolist()
    for new, (first, second) in enumerate(picks, start=3):
        a = ends[int(first * len(ends))]
        b = ends[int(second * len(ends))]
        while a == b:
            b = ends[int(rng.random() * len(ends))]
        ends += (a, new, b, new)
        edges += ((a, new), (b, new))
    return _sorted(np.array(edges, np.int64))


def erdos_renyi(
    n: int, rng: np.random.Generator, *, p: float | None = None, n_edges: int | None = None
) -> Edges:
    """Choose edges uniformly among all pairs, each with probability `p` or `n_edges` in total.

    >>> erdos_renyi(1000, np.random.default_rng(0), n_edges=1500).shape
    (1500, 2)
    """
    _require(n >= 1, f"a graph needs at least 1 variable, not {n}")
    n_pairs = n * (n - 1) // 2
    if p is not None and n_edges is None:
        _require(0.0 <= p <= 1.0, f"p is a probability, not {p}")
        n_edges = int(rng.binomial(n_pairs, p))
    elif n_edges is None or p is not None:
        raise ValueError("give either p or n_edges")
    _require(0 <= n_edges <= n_pairs, f"{n} variables have {n_pairs} pairs, not {n_edges}")
    if 2 * n_edges > n_pairs:
        left_out = _distinct(n_pairs, n_pairs - n_edges, rng)
        return _pairs_of(np.setdiff1d(np.arange(n_pairs), left_out, assume_unique=True))
    return _pairs_of(_distinct(n_pairs, n_edges, rng))


def regular(n: int, degree: int, rng: np.random.Generator) -> Edges:
    """Draw a graph in which every variable has `degree` neighbours.

    Pairing model: half-edges are paired at random, and the few pairs that repeat an edge or join a
    variable to itself are switched with random others. The result is close to uniform over regular
    graphs, but not exactly uniform.
    """
    _require(0 <= degree < n, f"{n} variables cannot all have {degree} neighbours")
    _require(n * degree % 2 == 0, f"n * degree is a count of half-edges: even, not {n} * {degree}")
    if 2 * degree > n - 1:
        # Switches run out of partners in a dense graph; its complement is sparse and also regular.
        missing = regular(n, n - 1 - degree, rng)
        keys = missing[:, 1] * (missing[:, 1] - 1) // 2 + missing[:, 0]
        return _pairs_of(np.setdiff1d(np.arange(n * (n - 1) // 2), keys, assume_unique=True))
    while True:
        ends = rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2)
        if _switch_until_simple(ends, rng):
            return _sorted(ends)


def _switch_until_simple(ends: Edges, rng: np.random.Generator) -> bool:
    """Repair `ends` in place; return False after too many failed switches."""
    pairs = [(min(a, b), max(a, b)) for a, b in ends.tolist()]
    count = Counter(pairs)
    bad = [k for k, (a, b) in enumerate(pairs) if a == b or count[a, b] > 1]
    for _ in range(100 * len(bad) + 1000):
        while bad and pairs[bad[-1]][0] != pairs[bad[-1]][1] and count[pairs[bad[-1]]] == 1:
            bad.pop()
        if not bad:
            ends[:] = np.array(pairs, np.int64).reshape(-1, 2)
            return True
        k, other = bad[-1], int(rng.integers(len(pairs)))
        (a, b), (c, d) = pairs[k], pairs[other]
        if rng.random() < 0.5:
            c, d = d, c
        new = ((min(a, d), max(a, d)), (min(c, b), max(c, b)))
        fits = other != k and a != d and c != b and new[0] != new[1]
        if fits and not count[new[0]] and not count[new[1]]:
            count[pairs[k]] -= 1
            count[pairs[other]] -= 1
            count.update(new)
            pairs[k], pairs[other] = new
    return False


def _distinct(population: int, size: int, rng: np.random.Generator) -> Integers:
    """Draw `size` different numbers below `population`, at most half of it, in O(size)."""
    found = np.empty(0, np.int64)
    while len(found) < size:
        more = rng.integers(population, size=size - len(found) + 8)
        found = np.unique(np.concatenate((found, more)))
    # Which of the drawn numbers are kept must not depend on their order.
    return rng.permutation(found)[:size]


def _pairs_of(ids: Integers) -> Edges:
    """Return the pairs ``(i, j)`` of the numbers ``j (j - 1) / 2 + i``."""
    j = ((1 + np.sqrt(1.0 + 8.0 * ids)) / 2).astype(np.int64)
    # For large numbers the square root is off by at most one in either direction.
    j -= j * (j - 1) // 2 > ids
    j += j * (j + 1) // 2 <= ids
    return _sorted(np.column_stack((ids - j * (j - 1) // 2, j)))


def _sorted(edges: Edges) -> Edges:
    edges = np.sort(edges, axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
