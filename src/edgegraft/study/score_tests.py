"""Tests of scores that are sums over rows, such as differences of groups.

As the judge of edges does (:mod:`~edgegraft.conditional.judge`), they divide by the design effect,
the variance over the rows in units of the model's, and test linear and further scores apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from edgegraft.conditional.judge import Verdict, combine, shares
from edgegraft.core.types import Floats, Mask

MIN_VARIANCE = 10.0
"""Minimum variance of a direction, in rows; below it, noise is not Gaussian.

The scores of two ends are added; if they agree, the variance is four times the expected count of a
cell, so 10 corresponds to 2.5 to 5 expected rows.
"""


class Part(NamedTuple):
    """Some directions of a score, white under the model's variance."""

    turn: Floats  # (size, dof) from the score to its directions
    scale: float  # the design effect, at least 1
    share: float  # of the level

    @property
    def dof(self) -> int:
        """Number of directions."""
        return int(self.turn.shape[1])


def parts_of(
    by_model: Floats, by_rows: Floats, linear: Mask, information: Floats | None = None
) -> list[Part]:
    """Return the linear weights and the rest, or all in one part.

    The score is information times weights: what linear weights add to the rest is removed by it,
    by default the model's variance.
    """
    every = np.eye(len(linear))
    turns = [every]
    if linear.any() and not linear.all():
        rest, slopes = every[~linear], by_model if information is None else information
        lead = np.linalg.pinv(slopes[np.ix_(linear, linear)])
        rest[:, linear] = -slopes[np.ix_(~linear, linear)] @ lead
        turns = [every[linear], rest]
    found = []
    for turn, share in zip(turns, shares(len(turns)), strict=True):
        spread, axes = np.linalg.eigh(turn @ by_model @ turn.T)
        able = spread >= MIN_VARIANCE
        white = turn.T @ (axes[:, able] / np.sqrt(spread[able]))
        ratio = np.einsum("ai,ab,bi->i", white, by_rows, white)
        found.append(Part(white, max(1.0, float(ratio.mean())) if len(ratio) else 1.0, share))
    return found


def judge_score(
    score: Floats,
    by_model: Floats,
    by_rows: Floats,
    linear: Mask,
    information: Floats | None = None,
) -> Verdict:
    """Return the verdict on a score with its variance by the model and over the rows."""
    parts = parts_of(by_model, by_rows, linear, information)
    statistics = [float(np.square(score @ part.turn).sum()) / part.scale for part in parts]
    dof = [part.dof for part in parts]
    p = [float(chdtrc(size, t)) if size else 1.0 for size, t in zip(dof, statistics, strict=True)]
    return combine(statistics, dof, p)
