"""Rows in groups, and one model of all groups: shared edges, and edges of each group.

    F = sum over groups of (W_g / W) L_g(u_g, w_shared, w_g) + ridge (||w||^2 + ||u - start||^2)

``L_g`` is the pseudolikelihood of the rows of a group; every group has node vectors for itself, so
that groups may differ in how common states are and still have the same network. Groups have one
schema and one set of features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize as minimize_smooth

from edgegraft.conditional.coordinates import state_weights
from edgegraft.conditional.features import Features
from edgegraft.conditional.survey_design import weigh
from edgegraft.core import Layout
from edgegraft.core.checks import check_weights
from edgegraft.core.types import Edges, Floats, Integers, Mask
from edgegraft.errors import Argument, DataError, EncodingWarning, listing
from edgegraft.grafting.problem import ridge_of
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.rows import read_labels, read_table
from edgegraft.model import PairwiseMRF
from edgegraft.objective.featured import featured
from edgegraft.objective.objective import Objective
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable

MIN_ROWS = 20  # of a group: with fewer, scores of ten expected rows in a cell are rare
_RIDGE_ROWS = 0.1  # as of the conditionals in which edges are tested
_OPTIONS = {"maxiter": 500, "gtol": 1e-6, "ftol": 1e-13}  # far below the noise of a row


@dataclass(frozen=True)
class GroupRows:
    """Rows of several groups."""

    table: PackedTable  # without the columns that name groups and clusters
    names: tuple[str, ...]  # of the groups
    groups: Integers  # the group of each row
    weights: Floats
    sampling: bool  # whether the weights are sampling weights
    clusters: Integers | None  # of each row; rows of a cluster are not independent

    def of(self, g: int) -> Integers:
        """Return the rows of a group."""
        return np.flatnonzero(self.groups == g)

    def by_cluster(self, values: Floats, rows: Integers | slice = slice(None)) -> Floats:
        """Return the sums of values of all or of some rows over the rows of each cluster."""
        assert self.clusters is not None
        sums = np.zeros((int(self.clusters.max()) + 1, values.shape[1]))
        np.add.at(sums, self.clusters[rows], values)
        return sums

    def part(self, g: int) -> tuple[PackedTable, Floats]:
        """Return the table of a group and the weights of its rows."""
        rows = self.of(g)
        return self.table.take(rows), self.weights[rows]


def read_groups(
    X: Any,
    groups: str | ArrayLike,
    *,
    weights: ArrayLike | None,
    clusters: str | ArrayLike | None,
    options: ReadOptions,
) -> GroupRows:
    """Read a table whose groups and clusters are columns of it, or separate arrays.

    Rows without a group, or without a cluster, are left out with a warning.
    """
    named = [name for name in (groups, clusters) if isinstance(name, str)]
    group = label_codes(X, groups, options)
    cluster = None if clusters is None else label_codes(X, clusters, options)
    table = _read(X, named, options)
    for what, codes in (("groups", group[0]), ("clusters", cluster and cluster[0])):
        if codes is not None and len(codes) != table.n_rows:
            raise DataError(
                Argument(what),
                f" has {len(codes):,} values where the table has {table.n_rows:,} rows",
            )
    weight = np.ones(table.n_rows) if weights is None else check_weights(weights, table.n_rows)
    kept = (weight > 0) & (group[0] >= 0)
    if cluster is not None:
        kept &= cluster[0] >= 0
    lost = int((weight > 0).sum() - kept.sum())
    if lost:
        warnings.warn(
            f"{lost:,} of {table.n_rows:,} rows have no group or no cluster: they are left out",
            EncodingWarning,
            stacklevel=3,
        )
    if len(table.schema) < 2:
        raise DataError(f"comparing needs two columns, found {len(table.schema)}")
    used, place = np.unique(group[0][kept], return_inverse=True)
    names = tuple(group[1][k] for k in used)
    _check_sizes(names, place)
    weighting = weigh(weight[kept])
    where = None if cluster is None else np.unique(cluster[0][kept], return_inverse=True)[1]
    whole = table if kept.all() else table.take(kept)
    return GroupRows(
        whole, names, place.astype(np.int64), weighting.weights, weighting.sampling, where
    )


def features_of(table: PackedTable, weights: Floats) -> Features:
    """Return the features of all rows together, so that a weight means the same in every group."""
    if not table.schema.scored:
        return Features.plain(table.schema)
    return Features.of(table.schema, np.concatenate(state_weights(table, weights)))


def _read(X: Any, named: list[str], options: ReadOptions) -> PackedTable:
    """Return the table without the columns that name groups and clusters."""
    if isinstance(X, PackedTable):
        columns = [name for name in X.schema.names if name not in named]
        at = [X.schema.index(name) for name in columns]
        cells = X.cells[at][:, : X.n_rows]
        return PackedTable.from_columns(X.schema.select(columns), cells, X.n_rows)
    return read_table(X, None, replace(options, drop=[*(options.drop or ()), *named]), stacklevel=4)


def label_codes(
    X: Any, labels: str | ArrayLike, options: ReadOptions
) -> tuple[Integers, list[str]]:
    """Return the codes of rows, -1 if they are missing, and the names of the codes."""
    if isinstance(labels, str):
        column = read_labels(X, labels, options)
        cells = np.empty(len(column), object)
        cells[:] = column
    else:
        cells = np.asarray(labels, object).ravel()
    missing = np.array([cell is None or cell != cell for cell in cells.tolist()], bool)
    known = sorted(set(cells[~missing].tolist()), key=lambda cell: (type(cell).__name__, cell))
    place = {label: k for k, label in enumerate(known)}
    codes = [-1 if out else place[cell] for cell, out in zip(cells, missing, strict=True)]
    return np.array(codes, np.int64), list(map(str, known))


def _check_sizes(names: tuple[str, ...], codes: Integers) -> None:
    if len(names) < 2:
        raise DataError(f"rows have {len(names)} groups: comparing needs two or more")
    sizes = np.bincount(codes, minlength=len(names))
    if sizes.min() < MIN_ROWS:
        small = [
            f"{name} ({size})" for name, size in zip(names, sizes, strict=True) if size < MIN_ROWS
        ]
        raise DataError(
            f"groups of fewer than {MIN_ROWS} rows cannot be compared: {listing(small)}; merge "
            "them with others or leave their rows out"
        )


class JointFit(NamedTuple):
    """Parameters of the groups on one layout, equal for shared edges."""

    layout: Layout
    thetas: list[Floats]


class JointModel:
    """The losses of all groups, ready to be fitted with any edges shared.

    `features` are of all rows together, so that a weight means the same in every group.
    """

    def __init__(self, data: GroupRows, features: Features, edges: Edges, n_jobs: int) -> None:
        self._features = features
        self._losses: list[Objective] = []
        for g in range(len(data.names)):
            table, weights = data.part(g)
            loss = Pseudolikelihood(table, weights=weights, n_jobs=n_jobs)
            self._losses.append(featured(loss, features))
        self.layout = features.layout(edges)
        total = sum(loss.n_rows for loss in self._losses)
        self._shares = [loss.n_rows / total for loss in self._losses]
        self._ridge = ridge_of(_RIDGE_ROWS, total)

    def fit(self, shared: Mask, start: JointFit | None = None) -> JointFit:
        """Return the fit with these edges shared and the others free in every group."""
        layout, n_nodes = self.layout, int(self.layout.node_offset[-1])
        sizes = np.diff(layout.edge_offset)
        common = np.concatenate((np.zeros(n_nodes, bool), np.repeat(shared, sizes)))
        first = [loss.start(layout) for loss in self._losses]
        states = [loss.init(layout) for loss in self._losses]
        origin = np.concatenate((np.zeros(common.sum()), *(theta[~common] for theta in first)))

        def spread(x: Floats) -> list[Floats]:
            own = np.split(x[common.sum() :], len(first))
            thetas = [np.empty(layout.n_parameters) for _ in first]
            for theta, free in zip(thetas, own, strict=True):
                theta[common], theta[~common] = x[: common.sum()], free
            return thetas

        def value(x: Floats) -> tuple[float, Floats]:
            total, slope = 0.0, np.zeros_like(x)
            parts = slope[common.sum() :].reshape(len(first), -1)
            for g, theta in enumerate(spread(x)):
                found = self._losses[g].evaluate(theta, states[g])
                states[g] = found.state
                total += self._shares[g] * found.value
                slope[: common.sum()] += self._shares[g] * found.gradient[common]
                parts[g] = self._shares[g] * found.gradient[~common]
            away = x - origin
            total += self._ridge * float(away @ away)
            return total, slope + 2.0 * self._ridge * away

        at = origin
        if start is not None:
            shared_parts = [theta[common] for theta in start.thetas]
            mean = np.average(shared_parts, axis=0, weights=self._shares)
            at = np.concatenate((mean, *(theta[~common] for theta in start.thetas)))
        scale = self._scale(common)

        def scaled(z: Floats) -> tuple[float, Floats]:
            found, slope = value(z * scale)
            return found, slope * scale

        found = minimize_smooth(
            scaled,
            at / scale,
            jac=True,
            method="L-BFGS-B",
            options=_OPTIONS,
        )
        return JointFit(layout, spread(found.x * scale))

    def _scale(self, common: Mask) -> Floats:
        """Return the units in which parameters have about the same curvature."""
        each = [
            share * loss.curvature(self.layout)
            for share, loss in zip(self._shares, self._losses, strict=True)
        ]
        whole = np.concatenate((np.sum(each, axis=0)[common], *(own[~common] for own in each)))
        return np.asarray(1.0 / np.sqrt(np.maximum(whole, self._ridge)))

    def models(self, found: JointFit) -> list[PairwiseMRF]:
        """Return the model of each group."""
        schema = self._losses[0].schema
        edges = found.layout.edges
        return [
            PairwiseMRF(schema, edges, self._losses[0].expand(theta, found.layout))
            for theta in found.thetas
        ]
