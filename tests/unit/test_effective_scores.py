"""The projection of scores against its plain NumPy twin."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.kernels.conditionals.effective_scores import Design, lay_out, project_rows


def twin(codes, weights, design, residuals, projection, rows):
    """Add the projection's rows up one by one, and multiply by the residuals."""
    out = np.zeros((len(rows), projection.shape[2]))
    for r, row in enumerate(rows):
        if weights[row] == 0:
            continue
        block = projection[0].copy()
        for k, source in enumerate(design.sources):
            c = design.column[k, codes[source, row]]
            if c >= 0:
                block += projection[c]
        out[r] = residuals[row] @ block
    return out


@pytest.mark.parametrize(
    ("q", "size", "states"),
    [(1, 1, [2, 2, 2]), (1, 4, [5, 2]), (2, 2, [2, 3]), (4, 16, [5, 5, 3, 5]), (5, 35, [8, 6, 2])],
)
def test_projected_scores_are_those_of_the_twin(q, size, states):
    rng = np.random.default_rng(q * size)
    n_rows, n = 700, len(states)
    codes = np.stack([rng.integers(0, s + 1, n_rows) for s in states]).astype(np.uint8)
    column = np.full((n, max(states) + 1), -1)
    start = 1
    for k, s in enumerate(states):  # state 0 is the reference, state `s` a missing cell
        column[k, 1:s] = start + np.arange(s - 1)
        start += s - 1
    design = Design(n, np.zeros(2, np.int64), np.arange(n), column)
    weights = rng.integers(0, 3, n_rows).astype(float)
    residuals = rng.normal(size=(n_rows, q))
    projection = rng.normal(size=(start, q, size))
    for first, length in ((0, n_rows), (13, 300), (699, 1)):
        out = np.full((length, size), np.nan)
        project_rows(
            codes,
            weights,
            design,
            residuals[first : first + length],
            lay_out(projection),
            first,
            out,
        )
        rows = np.arange(first, first + length)
        expected = twin(codes, weights, design, residuals, projection, rows)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_the_layout_holds_the_projection_and_one_row_of_zeros():
    """Not a row a neighbour and state: one column of many states would make that huge."""
    tables = lay_out(np.ones((7, 3, 9)))
    assert tables.shape == (2, 8, 16)
    assert tables.sum() == 7 * 27
