"""From codes, one integer per cell, to bit planes.

Row ``r`` of a column is bit ``r % 64`` of word ``r // 64``: one bit per cell and state. A missing
cell sets no bit. Sixty-four codes of eight or sixteen bits are one vector, and a word of a plane is
the mask of one comparison.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgegraft.kernels.compiler import kernel


def _vector_at(context, builder, array_type, array, first):
    """Return the address of the 64 codes from `first` on, and the type of a vector of them."""
    source = context.make_array(array_type)(context, builder, array)
    vector = ir.VectorType(ir.IntType(array_type.dtype.bitwidth), 64)
    return builder.bitcast(builder.gep(source.data, [first]), vector.as_pointer()), vector


def _everywhere(builder, vector, value):
    """Return a vector that holds `value` in every place."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(
        one, undefined, ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    )


@intrinsic
def _match_word(typingctx, codes, first, code):
    """Return the 64 bits that say which of the codes from `first` on are `code`."""

    def codegen(context, builder, sig, args):
        where, vector = _vector_at(context, builder, sig.args[0], args[0], args[1])
        found = builder.load(where, align=sig.args[0].dtype.bitwidth // 8)
        same = builder.icmp_unsigned("==", found, _everywhere(builder, vector, args[2]))
        return builder.bitcast(same, ir.IntType(64))

    return types.uint64(codes, types.intp, codes.dtype), codegen


@kernel
def pack_codes(codes, planes):
    """Set the bits of contiguous `codes` in zeroed `planes`; codes without a plane set none."""
    n_planes = planes.shape[0]
    whole = codes.shape[0] >> 6
    for w in range(whole):
        for k in range(n_planes):
            planes[k, w] = _match_word(codes, w << 6, k)
    for r in range(whole << 6, codes.shape[0]):
        code = codes[r]
        if code < n_planes:
            planes[code, whole] |= np.uint64(1) << np.uint64(r & 63)


@kernel
def pack_columns(cells, n_rows, start, planes):
    """Set the bits of all columns; column ``i`` has the planes from ``start[i]`` on."""
    for i in range(cells.shape[0]):
        pack_codes(cells[i, :n_rows], planes[start[i] : start[i + 1]])
