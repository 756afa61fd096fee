"""Gradients of all pairs with respect to their weights: products of features and residuals.

    G = F' R,   F(r, x) = phi_x(state of row r),   R(r, x) = weight_r (F(r, x) - E[phi_x | rest])

The gradient of pair ``(i, j)`` is ``-(G_ij + G_ji') / N``: one matrix product for all pairs, whose
cost follows the number of features, not of states.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import ThreadpoolController

from edgegraft.core import Layout
from edgegraft.core.tables import PairTables, table_offsets
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.kernels.conditionals.pseudolikelihood import Columns, Kept
from edgegraft.objective.block_sums import Job, columns_of, do_jobs
from edgegraft.objective.bundles import alternatives_of, bundle, wire
from edgegraft.objective.features import Features
from edgegraft.table.blocks import Rows, TableRows

_MAX_PRODUCTS = 1 << 24  # numbers in the matrix of all products
_MAX_BYTES = 1 << 29  # of the residuals of a block
_STATE_BYTES = 1 << 26  # of residuals by state, before they are folded
_ROWS = 4096


def affordable_products(features: Features, rows: Rows) -> bool:
    """Return whether the products of all columns fit."""
    n_features = int(features.widths.sum())
    per_block = -(-rows.n_rows // rows.n_blocks)
    return n_features**2 <= _MAX_PRODUCTS and 8 * n_features * per_block <= _MAX_BYTES


def block_products(
    block: TableRows,
    theta: Floats,
    layout: Layout,
    features: Features,
    chosen: Integers,
    dtype: type[np.floating],
) -> Floats:
    """Return the products of a block's features and residuals, of the chosen columns."""
    columns = columns_of(block, dtype)
    residuals = _residuals(columns, theta, layout, features, chosen, block.n_jobs)
    out = np.zeros((residuals.shape[0], residuals.shape[0]))
    n_rows = columns.codes.shape[1]
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        for first in range(0, n_rows, _ROWS):
            rows = slice(first, min(first + _ROWS, n_rows))
            out += feature_rows(columns.codes, features, chosen, rows) @ residuals[:, rows].T
    return out


def feature_rows(codes: np.ndarray, features: Features, chosen: Integers, rows: slice) -> Floats:
    """Return the features of some rows, one row per feature; zero where a cell is missing."""
    out = np.empty((int(features.widths[chosen].sum()), rows.stop - rows.start))
    first = 0
    for i in chosen.tolist():
        matrix = features.matrix(i)
        padded = np.vstack((matrix, np.zeros((1, matrix.shape[1]))))
        out[first : first + matrix.shape[1]] = padded.T[:, codes[i, rows]]
        first += matrix.shape[1]
    return out


def _residuals(
    columns: Columns,
    theta: Floats,
    layout: Layout,
    features: Features,
    chosen: Integers,
    n_jobs: int,
) -> Floats:
    """Return the residuals of the chosen columns' features, one row per feature."""
    widths = features.widths[chosen]
    first = np.cumsum(widths) - widths
    n_rows = columns.codes.shape[1]
    out = np.empty((int(widths.sum()), n_rows))
    alternatives = alternatives_of(layout.states[chosen])
    empty = Layout(layout.states)
    for wide in np.unique(alternatives):
        length = n_rows * int(wide)
        at_once = max(1, _STATE_BYTES // (length * columns.weights.dtype.itemsize))
        places = np.flatnonzero(alternatives == wide)
        for part in (places[k : k + at_once] for k in range(0, len(places), at_once)):
            bundles = bundle(chosen[part], int(wide), 1)
            values = np.empty(len(part) * length, columns.weights.dtype)
            kept = Kept(values, np.arange(len(part)) * length, np.zeros(len(part), bool))
            forward, nothing = (wire(graph, bundles, columns) for graph in (layout, empty))
            job = Job(forward, nothing, np.arange(len(part)), kept)
            do_jobs(columns, layout, theta, [job], n_jobs)
            by_state = values.reshape(len(part), n_rows, int(wide))
            for k, place in enumerate(part.tolist()):
                matrix = features.matrix(int(chosen[place]))
                # The residual of the first state is minus the sum of the others.
                contrast = matrix[1:] - matrix[:1]
                rows = slice(first[place], first[place] + widths[place])
                out[rows] = contrast.T @ by_state[k, :, : len(contrast)].T
    return out


def take_pairs(products: Floats, features: Features, chosen: Integers, edges: Edges) -> PairTables:
    """Return the gradients of pairs of the chosen columns, in their order and orientation."""
    shapes = features.widths[edges]
    offsets = table_offsets(shapes)
    widths = features.widths[chosen]
    start = np.zeros(len(features.widths), np.int64)
    start[chosen] = np.cumsum(widths) - widths
    sizes = np.diff(offsets)
    cell = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], sizes)
    x, y = np.divmod(cell, np.repeat(shapes[:, 1], sizes))
    x += np.repeat(start[edges[:, 0]], sizes)
    y += np.repeat(start[edges[:, 1]], sizes)
    return PairTables(edges, shapes, products[x, y] + products[y, x], offsets)
