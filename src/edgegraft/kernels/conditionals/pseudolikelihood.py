"""Losses and residuals of conditionals, and what residuals sum to for each state of a source.

    z_i(r, a) = u_i(a) - u_i(0) + sum over neighbours j of  w_ij(a, x_rj) - w_ij(0, x_rj)
    R_i(r, a) = weight_r * (1[x_ri = a] - p_i(r, a)),        p_i(r, .) = softmax of z_i(r, .)
    sums_ij(b, a) = sum over rows with x_rj = b of R_i(r, a)

Only states ``a >= 1`` are worked with: the logit of state 0 is zero and its residual is minus
the sum of the others. A *bundle* is one target, whose states lie side by side, or sixteen
targets, whose sixteen logits of one state lie side by side: the first touches only a target's
own neighbours (sparse graphs), the second moves sixteen targets with one look-up (dense ones).
A bundle's rows are worked through in blocks that stay in the first-level cache; every bundle is
worked on by one thread in the order of the rows, so results do not depend on the threads.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from edgegraft.kernels.compiler import helper, kernel

from .lanes import LANES, add_row, sum_rows
from .lookup import Groups, fill_joint, find_rows, sum_out
from .softmax import softmax_block

BLOCK = 4096  # logits of a block
MAX_BLOCK = 512  # rows of a block
FLUSH = 2048  # rows whose residuals are summed in the precision of the residuals
FOLD = 32  # totals multiplied before one logarithm: 65,535 ** 32 is a finite number

WEIGHT, SHOWN, OBSERVED, TOP = range(4)  # rows of `Notes.seen`


class Columns(NamedTuple):
    """The table by columns. Rows are padded to a multiple of sixteen with rows of weight 0."""

    codes: np.ndarray  # uint8 or uint16 (n, rows); a missing cell holds the number of states
    weights: np.ndarray  # float32 or float64 (rows,): the precision of logits and residuals
    states: np.ndarray  # int64 (n,)
    radix: np.ndarray  # int64 (n,) states, and one more if cells are missing
    plain: np.ndarray  # bool (1,): every weight is 0 or 1


class Bundles(NamedTuple):
    """Targets that are worked on together."""

    member: np.ndarray  # int64 (bundles, 1 or 16), -1 for none
    alternatives: np.ndarray  # int64 (bundles,) logits of a target: 1, 2, 4, 8 or a multiple of 16


class Results(NamedTuple):
    """What is written; defined here because caches of kernels name the modules of arguments."""

    sums: np.ndarray  # float64, laid out by the groups of the scatter
    node_sums: np.ndarray  # float64 (bundles, widest)
    losses: np.ndarray  # float64 (n,)


class Scratch(NamedTuple):
    """What one bundle after another is worked on in; a column is a target in a row of a block.

    Allocated outside: every kind of allocation in a kernel is one more function to compile.
    """

    joint: np.ndarray  # float64 (largest buffer of a bundle,)
    lookup: np.ndarray  # the same, in the precision of the weights
    recent: np.ndarray  # the same, zero
    values: np.ndarray  # (block * width,) logits, then residuals
    seen: np.ndarray  # (4, columns) weight, weight unless in state 0, logit of the state, m
    totals: np.ndarray  # float64 t of the softmax
    places: np.ndarray  # int32 where the logit of the observed state is
    losses: np.ndarray  # float64 so far: zero
    products: np.ndarray  # float64 totals whose logarithms are still to be added: one
    offsets: np.ndarray  # int32 (most groups, rows and a little more) rows of the look-up tables


def scratch_for(columns: Columns, bundles: Bundles, forward: Groups, scatter: Groups) -> Scratch:
    """Return what the bundles, all of one width, are worked on in by one thread."""
    precision, lanes = columns.weights.dtype, bundles.member.shape[1]
    width = int(bundles.alternatives.max(initial=1)) * lanes
    block = max(LANES, min(MAX_BLOCK, BLOCK // width // LANES * LANES))
    block = min(columns.codes.shape[1], block)
    size = int(max(forward.size.max(initial=0), scatter.size.max(initial=0)))
    n_groups = int(np.diff(forward.start).max(initial=1))
    return Scratch(
        np.empty(size),
        np.empty(size, precision),
        np.zeros(size, precision),
        np.empty(block * width, precision),
        np.empty((4, block * lanes), precision),
        np.empty(block * lanes),
        np.empty(block * lanes, np.int32),
        np.zeros(block * lanes),
        np.ones(block * lanes),
        # Longer than a block: rows a power of two apart would share cache sets.
        np.empty((n_groups, block + LANES), np.int32),
    )


@kernel
def work_bundles(
    columns, bundles, chosen, forward, tables, nodes, scatter, shared, kept, scratch, out
):
    """Work out losses and sums of residuals of the `chosen` bundles.

    The groups `forward` are the sources of the logits, with their `tables` and the node logits
    `nodes` (bundles, widest); those of `scatter` are the sources of the sums, and the same if
    `shared`. Residuals are written to `kept`, bundle by bundle, unless it is empty.
    """
    for t in chosen:
        _work_bundle(
            columns, bundles, t, forward, tables, nodes, scatter, shared, kept, scratch, out
        )


# Inlined as source: compiled as functions of their own, each level of calls would be optimised
# again within the one above, which doubles the time of a first call.


@njit(inline="always")
def _work_bundle(columns, bundles, t, forward, tables, nodes, scatter, shared, kept, scratch, out):
    sums, node_sums, losses = out
    joint, recent, values = scratch.joint, scratch.recent, scratch.values
    n_rows, block = columns.codes.shape[1], scratch.totals.shape[0] // bundles.member.shape[1]
    width = bundles.alternatives[t] * bundles.member.shape[1]
    fill_joint(forward, t, columns.radix, width, tables, nodes[t], joint, scratch.lookup)
    for c in range(scatter.size[t]):
        joint[c] = 0.0
    for first in range(0, n_rows, block):
        n = n_rows - first
        if n > block:
            n = block
        if kept.shape[0]:
            at = (t * n_rows + first) * width
            values = kept[at : at + n * width]
        _find_residuals(columns, bundles, t, forward, first, n, scratch, values)
        if first // block % FOLD == FOLD - 1:
            _fold(scratch.losses, scratch.products)
        for g in range(scatter.start[t + 1] - scatter.start[t]):
            row = scratch.offsets[g if shared else 0, :n]
            if not shared:
                find_rows(scatter, scatter.start[t] + g, columns.codes, first, width, row)
            _scatter_block(values, row, n, width, recent)
        if first // FLUSH != (first + block) // FLUSH or first + block >= n_rows:
            for c in range(scatter.size[t]):
                joint[c] += recent[c]
                recent[c] = 0.0
    _share_losses(bundles.member[t], scratch, losses)
    sum_out(scatter, t, columns.radix, width, joint, sums, node_sums[t])


@njit(inline="always")
def _find_residuals(columns, bundles, t, forward, first, n, notes, values):
    """Write the residuals of a block of rows to `values`, and note their losses."""
    lanes = bundles.member.shape[1]
    alternatives = bundles.alternatives[t]
    width = alternatives * lanes
    seen, n_columns = notes.seen, n * lanes
    n_groups = forward.start[t + 1] - forward.start[t]
    for g in range(n_groups):
        row = notes.offsets[g, :n]
        find_rows(forward, forward.start[t] + g, columns.codes, first, width, row)
    _sum_block(notes.lookup, notes.offsets[:n_groups], n, width, values)
    _place(columns, bundles, t, first, n, seen, notes.places)
    observed, shown = seen[OBSERVED], seen[SHOWN]
    for c in range(n_columns):
        observed[c] = values[notes.places[c]]
    softmax_block(
        values, seen[WEIGHT], seen[TOP], notes.totals, n_columns, alternatives, lanes == 1
    )
    _add_losses(notes, n_columns, columns.plain[0])
    for c in range(n_columns):  # the residual of the observed state is then complete
        values[notes.places[c]] += shown[c]


@njit(inline="always")
def _share_losses(member, notes, losses):
    """Add what the columns noted to the losses of their variables."""
    _fold(notes.losses, notes.products)
    lanes = member.shape[0]
    for c in range(notes.losses.shape[0]):
        if member[c % lanes] >= 0:
            losses[member[c % lanes]] += notes.losses[c]
        notes.losses[c] = 0.0


# Whether a cell is in state 0 cannot be predicted, so nothing below branches on it. A missing
# target is a state beyond the last: its place is another's, but its weight is zero.


@helper
def _place(columns, bundles, t, first, n, seen, places):
    """Write each target's weight, its weight if not in state 0, and where its state's logit is."""
    lanes = bundles.member.shape[1]
    last = np.int32(bundles.alternatives[t] - 1)
    weights, shown = seen[WEIGHT], seen[SHOWN]
    for v in range(lanes):
        i = bundles.member[t, v]
        if i < 0:
            weights[v : n * lanes : lanes] = 0.0
            shown[v : n * lanes : lanes] = 0.0
            places[v : n * lanes : lanes] = 0
            continue
        states = columns.codes[i, first : first + n]
        known = columns.states[i]
        for r in range(n):
            x = np.int32(states[r])
            weight = columns.weights[first + r] * np.float32(x < known)
            weights[r * lanes + v] = weight
            shown[r * lanes + v] = weight * np.float32(x > 0)
            place = x - np.int32(x > 0)
            place = np.int32(r) * (last + np.int32(1)) + (place if place < last else last)
            places[r * lanes + v] = place * np.int32(lanes) + np.int32(v)


@njit(inline="always")
def _add_losses(notes, n, plain):
    """Add ``weight * (m + log t - z_x)`` of each column; logarithms of plain rows wait."""
    seen, totals, sums, products = notes.seen, notes.totals, notes.losses, notes.products
    weights, shown, observed, tops = seen[WEIGHT], seen[SHOWN], seen[OBSERVED], seen[TOP]
    for c in range(n):
        sums[c] += np.float64(weights[c] * tops[c]) - np.float64(shown[c] * observed[c])
    if plain:
        for c in range(n):
            products[c] *= totals[c] if weights[c] > 0 else 1.0
    else:
        for c in range(n):
            sums[c] += np.float64(weights[c]) * np.log(totals[c])


@njit(inline="always")
def _fold(sums, products):
    for c in range(sums.shape[0]):
        sums[c] += np.log(products[c])
        products[c] = 1.0


# The bodies below are inlined where the width is a constant: a row is then whole vectors.


@njit(inline="always")
def _sum_rows(lookup, offsets, n, width, out):
    for r in range(n):
        sum_rows(lookup, offsets, offsets.shape[0], r, out, r * width, width)


@helper
def _sum_block(lookup, offsets, n, width, out):
    if width == 1:
        _sum_rows(lookup, offsets, n, 1, out)
    elif width == 2:
        _sum_rows(lookup, offsets, n, 2, out)
    elif width == 4:
        _sum_rows(lookup, offsets, n, 4, out)
    elif width == 8:
        _sum_rows(lookup, offsets, n, 8, out)
    elif width == 32:
        _sum_rows(lookup, offsets, n, 32, out)
    elif width == 64:
        _sum_rows(lookup, offsets, n, 64, out)
    elif width == 128:
        _sum_rows(lookup, offsets, n, 128, out)
    else:
        for piece in range(0, width, LANES):
            part = lookup[piece:]
            for r in range(n):
                sum_rows(part, offsets, offsets.shape[0], r, out, r * width + piece, 16)


@njit(inline="always")
def _add_rows(residuals, offsets, n, width, joint):
    for r in range(n):
        add_row(residuals, r * width, joint, np.int64(offsets[r]), width)


@helper
def _scatter_block(residuals, offsets, n, width, joint):
    if width == 1:
        _add_rows(residuals, offsets, n, 1, joint)
    elif width == 2:
        _add_rows(residuals, offsets, n, 2, joint)
    elif width == 4:
        _add_rows(residuals, offsets, n, 4, joint)
    elif width == 8:
        _add_rows(residuals, offsets, n, 8, joint)
    elif width == 32:
        _add_rows(residuals, offsets, n, 32, joint)
    elif width == 64:
        _add_rows(residuals, offsets, n, 64, joint)
    elif width == 128:
        _add_rows(residuals, offsets, n, 128, joint)
    else:
        for piece in range(0, width, LANES):
            for r in range(n):
                add_row(residuals, r * width + piece, joint, np.int64(offsets[r]) + piece, 16)
