"""Exact samplers of the hard cases, written apart from the library that they judge.

Trees are sampled from the root. Grids are sampled exactly by transfer: sites are visited row by
row, the message over the last ``width`` sites is summed forward, and states are drawn backwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Edges = NDArray[np.int64]


def grid_edges(height: int, width: int) -> Edges:
    """Return the edges of a grid whose sites are numbered row by row."""
    site = np.arange(height * width).reshape(height, width)
    across = np.column_stack((site[:, :-1].ravel(), site[:, 1:].ravel()))
    down = np.column_stack((site[:-1].ravel(), site[1:].ravel()))
    return np.concatenate((across, down))


def sample_grid(
    height: int,
    width: int,
    n_states: int,
    couplings: NDArray[np.float64],
    n_rows: int,
    rng: np.random.Generator,
) -> Codes:
    """Draw rows of a Potts grid: the log-weight of an edge is its coupling if both ends agree.

    Parameters
    ----------
    couplings : array of float, shape (n_edges,)
        In the order of :func:`grid_edges`. An Ising coupling J is a Potts coupling 2 J.
    """
    n = height * width
    weight = dict(zip(map(tuple, grid_edges(height, width).tolist()), couplings, strict=True))
    same = np.eye(n_states)
    # messages[v] has one axis for each of the `width` sites v - width .. v - 1, oldest first,
    # and holds the weight of all sites before them, summed out.
    message = np.ones((n_states,) * width)
    messages = []
    for v in range(n):
        messages.append(message)
        whole = _join(message, v, width, weight, same)
        message = whole.sum(axis=0)
        message /= message.max()
    out = np.empty((n_rows, n), np.int64)
    # The last `width` sites from the last message, then one site at a time, backwards.
    flat = message.ravel() / message.sum()
    drawn = np.unravel_index(rng.choice(flat.size, n_rows, p=flat), message.shape)
    for k in range(width):
        out[:, n - width + k] = drawn[k]
    for v in range(n - 1, width - 1, -1):
        _draw_backwards(out, v, width, _join(messages[v], v, width, weight, same), rng)
    return out


def _join(
    message: NDArray[np.float64],
    v: int,
    width: int,
    weight: dict[tuple[int, int], float],
    same: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the message times the factors that join site `v` to the sites before it.

    The last axis is site `v`. Axes of sites before the first one have one state that counts.
    """
    whole = np.repeat(message[..., None], len(same), axis=-1)
    up, left = (v - width, v), (v - 1, v)
    if up in weight:
        table = np.exp(weight[up] * same)
        whole *= table.reshape(len(same), *[1] * (width - 1), len(same))
    if left in weight and v % width:
        table = np.exp(weight[left] * same)
        whole *= table.reshape(*[1] * (width - 1), len(same), len(same))
    return whole


def _draw_backwards(
    out: Codes, v: int, width: int, whole: NDArray[np.float64], rng: np.random.Generator
) -> None:
    """Draw site ``v - width`` given the sites after it, up to `v`."""
    after = tuple(out[:, v - width + 1 + k] for k in range(width))
    chance = whole[(slice(None), *after)].T
    total = chance.cumsum(axis=1)
    at = rng.random(len(out)) * total[:, -1]
    out[:, v - width] = (total < at[:, None]).sum(axis=1)


def sample_ising_tree(
    parents: list[int], couplings: NDArray[np.float64], n_rows: int, rng: np.random.Generator
) -> Codes:
    """Draw rows of an Ising tree without fields; ``parents[v] < v`` and -1 is a root."""
    out = np.empty((n_rows, len(parents)), np.int64)
    for v, parent in enumerate(parents):
        if parent < 0:
            out[:, v] = rng.random(n_rows) < 0.5
        else:
            agree = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-2.0 * couplings[v]))
            out[:, v] = np.where(agree, out[:, parent], 1 - out[:, parent])
    return out


def independent(rates: NDArray[np.float64], n_rows: int, rng: np.random.Generator) -> Codes:
    """Draw independent binary columns of given rates."""
    return (rng.random((n_rows, len(rates))) < rates).astype(np.int64)
