"""Parameters that message passing can work with: checked, and without infinities.

Impossible configurations (entries of ``-inf``) are given a finite weight so small that all of
them together weigh nothing beside one possible configuration,

    floor = -(sum of the spans of all finite potentials + sum_i log s_i + 800),

so no loop ever meets an infinity, beliefs of impossible states underflow to zeros, and a model in
which nothing is possible shows itself by a log Z near the floor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.checks import check_theta, owner_of
from edgegraft.core.types import Floats
from edgegraft.errors import ModelError

#: Exponentials of less than minus this are zero in double precision.
UNDERFLOW = 800.0


class Floored(NamedTuple):
    """Finite parameters and what they stand for."""

    theta: Floats
    least: float  # a possible configuration scores no less; -inf if everything is possible
    negligible: float  # a log message below this means "impossible"; -inf likewise


def floored(theta: Floats, layout: Layout, weight: Floats) -> Floored:
    """Return `theta` with every ``-inf`` replaced by a floor, or refuse it.

    Examples
    --------
    >>> layout = Layout([2], [])
    >>> floored(np.array([0.0, -np.inf]), layout, np.empty(0)).theta
    array([    0., -1024.])
    >>> floored(np.array([0.0, np.nan]), layout, np.empty(0))
    Traceback (most recent call last):
    edgegraft.errors.ModelError: a log-potential of variable 0 is nan: it must be finite or -inf
    """
    theta = check_theta(theta, layout).copy()  # states remember it, callers may write to theirs
    if np.isfinite(theta).all():
        return Floored(theta, -np.inf, -np.inf)
    return _replace_zeros(theta, layout, weight)


def _replace_zeros(theta: Floats, layout: Layout, weight: Floats) -> Floored:
    n, states = layout.n_variables, layout.states
    starts = np.concatenate((layout.node_offset[:-1], layout.edge_offset[:-1]))
    zero = np.isneginf(theta)
    top = np.maximum.reduceat(theta, starts)
    if np.isneginf(top).any():
        at = int(starts[int(np.argmax(np.isneginf(top)))])
        raise ModelError(
            f"every entry of {owner_of(layout, at)} is -inf: the model allows no configuration"
        )
    least = np.minimum.reduceat(np.where(zero, np.inf, theta), starts)
    span = top - least
    needed = float(span.sum() + np.log(states).sum() + UNDERFLOW)
    # A power of two, so that small changes of the parameters leave the floor where it was.
    depth = 2.0 ** np.ceil(np.log2(needed))
    deep = np.concatenate((top[:n].repeat(states), _edge_tops(top[n:], layout))) - depth
    around = span[:n].copy()
    for side in (0, 1):
        np.add.at(around, layout.edges[:, side], span[n:] / weight)
    return Floored(
        theta=np.where(zero, deep, theta),
        least=float(least.sum()),
        negligible=-float(around.max()) - 50.0,
    )


def _edge_tops(top: Floats, layout: Layout) -> Floats:
    return np.repeat(top, np.diff(layout.edge_offset))
