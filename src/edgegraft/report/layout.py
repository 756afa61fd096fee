"""Positions of the variables of a network: stress layout, component by component.

    minimise  sum_ij  (|x_i - x_j| - d_ij)^2 / d_ij^2,      d_ij = length of the shortest path

The more neighbours the ends of an edge do not share, the longer the edge, which gives hubs the
space that their leaves need (Gansner, Koren and North 2005); edges between two groups are longer
still, which brings members of a group together. Positions start from pivot multidimensional scaling
and not from random positions, so that the picture is always the same, and each step moves every
node to the weighted mean of the positions that its distances imply. In a large component only the
distances to some pivots and along edges count (the sparse stress model of Ortmann, Klimenta and
Brandes 2016); nodes that coincide are pushed apart at the end. Components are packed in rows.

Names are placed beside dots without overlaps. For each name, the most important first, eight places
around its dot are tried. A place is free if it is inside the picture and covers neither a dot nor a
name placed earlier; of the free places, the one that covers the fewest lines is used. A name
without a free place is omitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from edgegraft.core.adjacency import link_matrix
from edgegraft.core.types import Edges, Floats


@dataclass(frozen=True)
class _Layout:
    """Measures of a layout, in lengths of an edge, and its budgets."""

    all_distances: int = 400  # nodes of a component; of more, distances to pivots: a second
    pivots: int = 120  # Ortmann and others: 50 to 200 are as good as all
    steps: int = 120  # of majorisation: positions move by less than a dot at the end
    pushes: int = 40
    between: float = 2.0  # factor on the length of edges between groups
    gap: float = 0.6  # nearer nodes are pushed apart: two dots and half a name
    aspect: float = 1.5  # width over height of the picture: a screen's
    clear: float = 0.16  # distance of an edge from dots that it does not join: a dot's radius
    bent: int = 2_000_000  # edges times nodes; in a larger picture edges are straight: a second


_LAYOUT = _Layout()
_BENDS = np.array([0.0, *(s * b for b in (0.12, 0.24, 0.36, 0.5) for s in (1, -1))])


def lay_out(n: int, edges: Edges, groups: NDArray[np.int64] | None = None, seed: int = 0) -> Floats:
    """Return positions of the nodes of a graph, shape (n, 2), with edges of length about 1.

    Nodes of one group are drawn near each other. `seed` is for the small random shifts that
    separate nodes with the same start.

    >>> spots = lay_out(3, np.array([[0, 1], [1, 2]]))
    >>> np.linalg.norm(spots[0] - spots[1]).round(1).item()
    1.0
    """
    if not n:
        return np.zeros((0, 2))
    rng = np.random.default_rng(seed)
    lengths = _edge_lengths(n, edges)
    if groups is not None:
        lengths[groups[edges[:, 0]] != groups[edges[:, 1]]] *= _LAYOUT.between
    graph = _symmetric(n, edges, lengths)
    _, label = connected_components(graph, directed=False)
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    members.sort(key=len, reverse=True)
    placed = [_upright(_component(graph[nodes][:, nodes], rng)) for nodes in members]
    out = np.zeros((n, 2))
    for nodes, spots, corner in zip(members, placed, _pack(placed), strict=True):
        out[nodes] = spots + corner
    return out


def bend_edges(spots: Floats, edges: Edges) -> Floats:
    """Return the middle control point of each edge, which then avoids dots that it does not join.

    An edge is a quadratic curve, straight if no dot is in its way; otherwise it is bent as little
    as possible. If no bend is free, the one that meets the fewest dots is used.

    >>> spots = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    >>> bend_edges(spots, np.array([[0, 1], [0, 2]]))
    array([[0.5 , 0.  ],
           [1.  , 0.48]])
    """
    ends = spots[edges]
    middle = np.asarray(ends.mean(axis=1))
    if len(edges) * len(spots) > _LAYOUT.bent:
        return middle
    across = (ends[:, 1] - ends[:, 0])[:, ::-1] * np.array([-1.0, 1.0])
    for k in range(len(edges)):
        controls = middle[k] + _BENDS[:, None] * across[k]
        curves = curve_points(np.repeat(ends[k][None], len(controls), 0), controls)
        gaps = cdist(curves.reshape(-1, 2), spots).reshape(*curves.shape[:2], -1).min(axis=1)
        gaps[:, edges[k]] = np.inf
        met = (gaps < _LAYOUT.clear).sum(axis=1)
        middle[k] = controls[int(np.argmin(met))]
    return middle


def curve_points(ends: Floats, controls: Floats, n_points: int = 17) -> Floats:
    """Return points along quadratic curves, shape (m, n_points, 2)."""
    t = np.linspace(0.0, 1.0, n_points)[None, :, None]
    first, second = ends[:, None, 0], ends[:, None, 1]
    return np.asarray((1 - t) ** 2 * first + 2 * t * (1 - t) * controls[:, None] + t**2 * second)


def _edge_lengths(n: int, edges: Edges) -> Floats:
    """Return the square root of the number of neighbours that the ends do not share."""
    graph = _symmetric(n, edges, np.ones(len(edges)))
    degree = np.bincount(edges.ravel(), minlength=n)
    shared = np.asarray(graph[edges[:, 0]].multiply(graph[edges[:, 1]]).sum(axis=1)).ravel()
    lengths = degree[edges].sum(axis=1) - 2 * shared - 1  # the two ends count as one
    return np.asarray(np.sqrt(np.maximum(lengths, 1.0)))


def _symmetric(n: int, edges: Edges, values: Floats) -> Any:
    both = np.concatenate((edges, edges[:, ::-1]))
    return link_matrix(np.tile(values, 2), both, n).tocsr()


def _component(graph: Any, rng: np.random.Generator) -> Floats:
    n = graph.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    if n <= _LAYOUT.all_distances:
        pivots, distances = np.arange(n), np.asarray(dijkstra(graph))
    else:
        pivots, distances = _spread(graph, _LAYOUT.pivots)
    spots = _scaling(distances)
    typical = float(graph.data.mean())
    spots += rng.normal(scale=1e-3 * typical, size=spots.shape)
    for _ in range(_LAYOUT.steps):
        spots = _step(spots, pivots, distances, graph if len(pivots) < n else None)
    spots /= typical
    for _ in range(_LAYOUT.pushes):
        if not _push_apart(spots):
            break
    return spots


def _spread(graph: Any, k: int) -> tuple[NDArray[np.int64], Floats]:
    """Return nodes far from each other, and the distances from each to all, shape (k, n)."""
    pivots = [int(np.argmax(np.diff(graph.indptr)))]
    rows = []
    nearest = np.full(graph.shape[0], np.inf)
    for _ in range(k):
        rows.append(dijkstra(graph, indices=pivots[-1]))
        nearest = np.minimum(nearest, rows[-1])
        pivots.append(int(np.argmax(nearest)))
    return np.array(pivots[:-1], np.int64), np.array(rows)


def _scaling(distances: Floats) -> Floats:
    """Return the first two coordinates of pivot multidimensional scaling."""
    square = distances.T**2
    centred = -0.5 * (
        square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    )
    spots = _along_main_axes(centred)
    spread = np.sqrt((spots**2).sum(axis=1).mean())
    wanted = np.sqrt((distances**2).mean() / 2)
    return np.asarray(spots * (wanted / spread if spread > 0 else 1.0))


def _step(spots: Floats, pivots: NDArray[np.int64], distances: Floats, graph: Any) -> Floats:
    """Move every node to the mean of the positions that its distances imply."""
    anchors = spots[pivots]
    weight = 1.0 / np.where(distances > 0, distances, np.inf) ** 2
    stretch = weight * distances / np.maximum(cdist(anchors, spots), 1e-9)
    target = weight.T @ anchors - stretch.T @ anchors + stretch.sum(axis=0)[:, None] * spots
    total = weight.sum(axis=0)
    if graph is not None:
        rows = np.repeat(np.arange(len(spots)), np.diff(graph.indptr))
        other, length = spots[graph.indices], graph.data
        away = spots[rows] - other
        now = np.sqrt((away**2).sum(axis=1))
        pull = other + (length / np.maximum(now, 1e-9))[:, None] * away
        weight = 1.0 / length**2
        for axis in range(2):
            target[:, axis] += np.bincount(rows, weight * pull[:, axis], len(spots))
        total = total + np.bincount(rows, weight, len(spots))
    return np.asarray(target / total[:, None])


def _push_apart(spots: Floats) -> bool:
    """Separate nodes that are too close, in place; return whether there were any."""
    pairs = cKDTree(spots).query_pairs(_LAYOUT.gap, output_type="ndarray")
    if not len(pairs):
        return False
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]  # a fixed order of sums
    away = spots[pairs[:, 0]] - spots[pairs[:, 1]]
    now = np.maximum(np.sqrt((away**2).sum(axis=1, keepdims=True)), 1e-9)
    move = 0.25 * (_LAYOUT.gap - now) * away / now
    np.add.at(spots, pairs[:, 0], move)
    np.subtract.at(spots, pairs[:, 1], move)
    return True


def _upright(spots: Floats) -> Floats:
    """Rotate a component so that it is widest horizontally, and move its corner to 0."""
    if len(spots) > 1:
        spots = _along_main_axes(spots - spots.mean(axis=0))
    return np.asarray(spots - spots.min(axis=0))


def _along_main_axes(centred: Floats) -> Floats:
    """Return the coordinates of points along the two directions in which they differ most."""
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, -1:-3:-1]
    # The sign of an eigenvector is arbitrary: it is fixed here, so that pictures can be compared.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(centred @ (axes * signs))


def _pack(parts: list[Floats]) -> list[Floats]:
    """Return the corners of components, placed in rows from the top, the largest first."""
    margin = np.array([1.0, 0.5])  # names are wide and low
    sizes = [part.max(axis=0) + margin for part in parts]
    area = sum(float(size.prod()) for size in sizes)
    width = max(float(sizes[0][0]), np.sqrt(_LAYOUT.aspect * area)) if sizes else 0.0
    corners, x, top, height = [], 0.0, 0.0, 0.0
    for size in sizes:
        if x > 0 and x + size[0] > width:
            x, top, height = 0.0, top - height, 0.0
        corners.append(np.array([x, top - size[1]]))
        x, height = x + float(size[0]), max(height, float(size[1]))
    return corners


# Offsets of the centre of a name, in half widths and half heights of the name.
_PLACES = np.array(
    [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)], np.float64
)


def place_labels(
    dots: Floats,
    radii: Floats,
    sizes: Floats,
    frame: Floats,
    lines: Floats | None = None,
    *,
    keep_all: bool = False,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the centres of the names, and which of them have a place.

    `dots` are centres, the most important first; `sizes` widths and heights of the names; `frame`
    the lower left and the upper right corner of the picture; `lines` points along its lines. With
    `keep_all`, a name without a free place gets the one that covers the least.

    >>> dots = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> frame = np.array([[-20.0, -5.0], [20.0, 5.0]])
    >>> middles, kept = place_labels(dots, np.full(2, 1.0), np.full((2, 2), 8.0), frame)
    >>> kept.tolist(), (middles[0, 0] < middles[1, 0]).item()
    ([True, True], True)
    """
    n = len(dots)
    middles, kept = np.zeros((n, 2)), np.zeros(n, np.bool_)
    half = sizes / 2
    points = np.zeros((0, 2)) if lines is None else lines
    for k in range(n):
        tries = dots[k] + _PLACES * (half[k] + radii[k])
        inside = (tries - half[k] >= frame[0]).all(axis=1) & (tries + half[k] <= frame[1]).all(1)
        over_names = _overlaps(tries, half[k], middles[kept], half[kept])
        over_dots = _overlaps(tries, half[k], dots, np.repeat(radii[:, None], 2, axis=1))
        free = inside & (over_names == 0) & (over_dots == 0)
        if not free.any() and not keep_all:
            continue
        over_lines = _overlaps(tries, half[k], points, np.zeros_like(points))
        cost = (
            over_lines / (1.0 + len(points)) + over_dots + 1000.0 * over_names + 100_000.0 * ~inside
        )
        best = int(np.argmin(cost))
        middles[k], kept[k] = tries[best], True
    return middles, kept


def _overlaps(middles: Floats, half: Floats, others: Floats, other_halves: Floats) -> Floats:
    """Return, for each of some boxes of equal size, how many of the other boxes it overlaps."""
    distance = np.abs(middles[:, None, :] - others[None, :, :])
    # Boxes that only touch do not overlap; the tolerance is for rounding.
    meets = (distance < (half + other_halves)[None, :, :] - 1e-6).all(axis=2)
    return np.asarray(meets.sum(axis=1), np.float64)
