"""Kernels that encode cells as codes and planes, compared with plain NumPy."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgegraft.ingest.code_buffer import DirectCodes, near_counts
from edgegraft.kernels.counting.bitplanes import pack_codes, unpack_codes
from edgegraft.table.store import MISSING

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
    back = np.empty(len(codes), dtype)
    final = ((7 * np.arange(n_planes) + 3) % 67).astype(dtype)
    unpack_codes(planes, final, dtype(200), back)
    table = np.full(65536, 200)
    table[:n_planes] = final
    np.testing.assert_array_equal(back, table[codes])


@settings(deadline=None)  # the first example may compile
@given(st.lists(st.integers(-(2**63), 2**64 - 1) | st.integers(0, 9), min_size=1, max_size=9))
def test_near_numbers_are_the_distinct_ones(cells):
    dtype = np.uint64 if min(cells) >= 0 else np.int64
    limits = np.iinfo(dtype)
    values = np.array([x for x in cells if limits.min <= x <= limits.max] or [3], dtype)
    found = near_counts(pa.array(values))
    if found is not None:
        assert found == Counter(values.tolist())
        assert list(found) == sorted(found)
    elif int(values.max()) < 2**63:
        assert int(values.max()) - int(values.min()) > 4000


@settings(deadline=None)  # the first example may compile
@given(
    st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.integers(0, 60), max_size=5),
    st.sampled_from(["int8", "uint8", "int16", "int32", "int64", "uint64"]),
    st.lists(st.integers(-(2**63), 2**64 - 1), max_size=20),
    st.integers(-200, 200),
)
def test_whole_numbers_are_looked_up_like_in_a_dict(codes, dtype, others, shift):
    near = {shift + 7 * k: k for k in range(5)}
    limits = np.iinfo(dtype)
    for known in (near, codes, {**near, **codes}):
        for cells in (list(known), [*known, *others], others):
            values = np.array([x for x in cells if limits.min <= x <= limits.max], dtype)
            found = DirectCodes(known).find(pa.array(values))
            if found is not None:
                assert found.tolist() == [known[x] for x in values.tolist()]
            elif known is near:
                assert any(x not in known for x in values.tolist())


def test_what_is_no_whole_number_is_not_looked_up():
    direct = DirectCodes({0: 0, 1: 1, "1": 7, 1.5: 8, None: 9})
    assert direct.find(pa.array([0, 1])).tolist() == [0, 1]
    assert direct.find(pa.array([0, None])) is None
    assert direct.find(pa.array([0.0, 1.0])) is None
    assert direct.find(pa.array([True, False])).tolist() == [1, 0]
    assert DirectCodes({1: 1}).find(pa.array([False, True])) is None
    assert DirectCodes({False: 0, True: 1}).find(pa.array([0])) is None
    assert DirectCodes({}).find(pa.array([0])) is None
