"""Between codes, one integer per cell, and bit planes.

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


@intrinsic
def _set_word(typingctx, codes, first, bits, code):
    """Write `code` to those of the 64 codes from `first` on whose bit is set."""

    def codegen(context, builder, sig, args):
        where, vector = _vector_at(context, builder, sig.args[0], args[0], args[1])
        align = sig.args[0].dtype.bitwidth // 8
        mask = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), 64))
        wanted = _everywhere(builder, vector, args[3])
        chosen = builder.select(mask, wanted, builder.load(where, align=align))
        builder.store(chosen, where, align=align)
        return context.get_dummy_value()

    return types.none(codes, types.intp, types.uint64, codes.dtype), codegen


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


@kernel
def unpack_codes(planes, codes, without_bit, out):
    """Write the code of every row to `out`: ``codes[k]`` if it sets a bit of plane ``k``.

    Rows that set no bit get `without_bit`: the last state of a complete variable, or whatever marks
    a missing cell.
    """
    n_rows = out.shape[0]
    whole = n_rows >> 6
    out[:] = without_bit
    for w in range(whole):
        for k in range(planes.shape[0]):
            bits = planes[k, w]
            if bits != 0:
                _set_word(out, w << 6, bits, codes[k])
    for r in range(whole << 6, n_rows):
        for k in range(planes.shape[0]):
            if (planes[k, whole] >> np.uint64(r & 63)) & np.uint64(1):
                out[r] = codes[k]
