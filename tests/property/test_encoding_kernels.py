"""Kernels that encode cells as codes and planes, compared with plain NumPy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgegraft.ingest.columns import distinct
from edgegraft.kernels.counting import pack_codes
from edgegraft.table.schema import MISSING

CODES = arrays(
    np.uint16,
    st.integers(0, 300),
    elements=st.sampled_from([0, 1, 2, 5, 63, 64, 300, 65534, MISSING]),
)


@settings(deadline=None)  # the first example may compile
@given(CODES, st.integers(0, 66), st.sampled_from([np.uint8, np.uint16]))
def test_planes_have_a_bit_for_every_cell(codes, n_planes, dtype):
    codes = codes.astype(dtype)
    planes = np.zeros((n_planes, 5), np.uint64)
    pack_codes(codes, planes)
    bits = np.unpackbits(planes.view(np.uint8), axis=1, bitorder="little")
    cells = bits[:, : len(codes)]
    np.testing.assert_array_equal(cells, codes == np.arange(n_planes)[:, None])
    assert bits.sum() == cells.sum()


@settings(deadline=None)
@given(
    st.sampled_from(["int8", "uint8", "int16", "int32", "int64", "uint64"]),
    st.lists(st.integers(-(2**63), 2**64 - 1) | st.integers(-130, 140), max_size=20),
)
def test_places_of_distinct_labels_give_the_cells_back(dtype, cells):
    limits = np.iinfo(dtype)
    values = np.array([x for x in cells if limits.min <= x <= limits.max], dtype)
    labels, places = distinct(pa.array(values))
    assert [labels[k] for k in places] == values.tolist()
    assert len(set(labels)) == len(labels)


def test_booleans_and_missing_cells_have_places():
    for cells in ([True, True], [False, True, False], [True, None], [3, None, 3], [2.5, None]):
        labels, places = distinct(pa.array(cells))
        found = [[*labels, None][k] for k in places]
        assert found == cells
        assert [type(label) for label in found] == [type(cell) for cell in cells]
