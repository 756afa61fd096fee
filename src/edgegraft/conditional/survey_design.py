"""What rows stand for: weights, and the design of a sample, its strata and clusters.

Frequency weights add up to the number of rows. Sampling weights have no scale: they are scaled to
add up to the effective number of rows of Kish, ``(sum w)^2 / sum w^2``, and the variance of a sum
over rows is the sum of ``w^2`` times the squares, not of ``w`` times the squares.

Rows of a cluster (pupils of a school, days of a person) resemble each other, so a sum over rows
varies more than that of as many independent rows. Its variance is that of the sums of the clusters
within their strata,

    V = sum over strata h of  n_h / (n_h - 1)  sum over clusters c of  d_hc d_hc',
    d_hc = sum of the cluster's rows, less the mean of such sums in the stratum,

as if clusters were drawn with replacement. It has as many degrees of freedom as there are clusters,
less the strata, so tests compare with an F distribution (Rao and Scott 1984, second order).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array

from edgegraft.config import WeightMeaning
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import DataError, EncodingWarning
from edgegraft.table.blocks import Rows, StoredRows, TableRows


class SurveyDesign(NamedTuple):
    """Which rows were drawn together."""

    cluster: Integers  # number of each row's cluster, from 0
    stratum: Integers  # number of each cluster's stratum, from 0

    @classmethod
    def of(
        cls, n_rows: int, strata: ArrayLike | None = None, clusters: ArrayLike | None = None
    ) -> SurveyDesign | None:
        """Return the design of labels, one per row; None if there are none.

        Without clusters every row is one; equal labels in two strata are two clusters.

        >>> design = SurveyDesign.of(4, strata=["north", "north", "south", "south"])
        >>> design.stratum, design.freedom
        (array([0, 0, 1, 1]), 2.0)
        """
        if strata is None and clusters is None:
            return None
        of_row = (
            np.zeros(n_rows, np.int64) if strata is None else _numbers("strata", strata, n_rows)
        )
        own = np.arange(n_rows) if clusters is None else _numbers("clusters", clusters, n_rows)
        pairs, cluster = np.unique(np.column_stack((of_row, own)), axis=0, return_inverse=True)
        found = cls(cluster.ravel(), pairs[:, 0])
        if found.freedom < 1:
            raise DataError(
                f"the design has {len(found.stratum):,} clusters in as many strata: some stratum "
                "needs two clusters, or no variance can be estimated"
            )
        return found

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a variance: clusters less strata."""
        return float(len(self.stratum) - len(np.unique(self.stratum)))

    def sums(self, values: Floats, first: int) -> Floats:
        """Return the sums over clusters of values of the rows from `first` on."""
        n = len(values)
        where = self.cluster[first : first + n], np.arange(n)
        members = csc_array((np.ones(n), where), shape=(len(self.stratum), n))
        return np.asarray(members @ values)

    def variance(self, sums: Floats) -> Floats:
        """Return the variance of a total, given the sums of the clusters.

        The only cluster of a stratum is compared with the mean of all.
        """
        count = np.bincount(self.stratum).astype(float)
        totals = np.stack([np.bincount(self.stratum, column) for column in sums.T], axis=1)
        means = totals / np.maximum(count, 1.0)[:, None]
        means[count == 1] = sums.mean(axis=0)
        factor = np.where(count > 1, count / np.maximum(count - 1, 1.0), 1.0)[self.stratum]
        left = sums - means[self.stratum]
        return np.asarray(left.T @ (factor[:, None] * left))


def _numbers(name: str, labels: Any, n_rows: int) -> Integers:
    """Return labels as numbers from 0; refuse missing ones."""
    values = np.asarray(labels)
    if values.shape != (n_rows,):
        raise DataError(f"{name} must have one label per row ({n_rows:,}), found {values.shape}")
    lacking = [k for k, label in enumerate(values.tolist()) if label is None or label != label]
    if lacking:
        raise DataError(
            f"{name} lack a label in row {lacking[0]} (counted from 0): give every row one, or "
            "leave the row out"
        )
    return np.asarray(np.unique(values.astype(str), return_inverse=True)[1].ravel(), np.int64)


class Weighting(NamedTuple):
    """Row weights with their meaning."""

    weights: Floats
    sampling: bool


def weigh(weights: Floats, meaning: WeightMeaning = "auto") -> Weighting:
    """Return row weights that add up to a number of rows; whole numbers are frequencies.

    >>> weigh(np.array([2.0, 1.0]))
    Weighting(weights=array([2., 1.]), sampling=False)
    >>> weigh(np.array([0.5, 0.5]))
    Weighting(weights=array([1., 1.]), sampling=True)
    """
    whole = bool((weights == np.rint(weights)).all())
    if meaning == "frequency" or (meaning == "auto" and whole):
        if not whole:
            row = int(np.argmax(weights != np.rint(weights)))
            warnings.warn(
                f"sample_weight is fractional (row {row}: {weights[row]:g}) but "
                "weights_are='frequency'; use weights_are='sampling' for survey weights",
                EncodingWarning,
                stacklevel=2,
            )
        return Weighting(weights, False)
    return Weighting(weights * (weights.sum() / np.square(weights).sum()), True)


def weigh_rows(rows: Rows, meaning: WeightMeaning = "auto") -> tuple[Rows, bool]:
    """Return rows with weights that add up to their number, and whether they are a sample's.

    Rows on a cluster keep their weights, as frequencies.
    """
    if not isinstance(rows, TableRows | StoredRows) or rows.weights is None:
        return rows, False
    found = weigh(rows.weights, meaning)
    return (rows.changed(found.weights) if found.sampling else rows), found.sampling
