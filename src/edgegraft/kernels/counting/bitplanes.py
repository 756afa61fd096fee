"""Between codes (one integer a cell) and bit planes (one bit a cell and state).

Row ``r`` of a column is bit ``r % 64`` of word ``r // 64``. A missing cell sets no bit.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from edgegraft.kernels.compiler import kernel

MISSING = 65535  # the code of a missing cell


@intrinsic
def _trailing_zeros(typingctx, word):
    """Return the index of the lowest set bit of a non-zero word."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def _match_word(typingctx, codes, first, code):
    """Return the 64 bits that tell which of the codes (uint16) from `first` on are `code`."""
    signature = types.uint64(codes, types.intp, types.uint16)

    def codegen(context, builder, sig, args):
        source = context.make_array(sig.args[0])(context, builder, args[0])
        vector = ir.VectorType(ir.IntType(16), 64)
        undefined = ir.Constant(vector, ir.Undefined)
        where = builder.bitcast(builder.gep(source.data, [args[1]]), vector.as_pointer())
        one = builder.insert_element(undefined, args[2], ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        wanted = builder.shuffle_vector(one, undefined, everywhere)
        same = builder.icmp_unsigned("==", builder.load(where, align=2), wanted)
        return builder.bitcast(same, ir.IntType(64))

    return signature, codegen


@kernel
def largest_code(codes):
    """Return the largest code that is not MISSING (-1 if there is none) and the missing cells."""
    most = np.uint16(0)  # of the next codes: that of MISSING wraps to 0
    missing = 0
    for r in range(codes.shape[0]):
        most = max(most, np.uint16(codes[r] + np.uint16(1)))
        missing += codes[r] == MISSING
    return np.int64(most) - 1, missing


@kernel
def pack_codes(codes, planes, first_word):
    """Set the bits of `codes` in `planes` from `first_word` on; codes without a plane set none.

    `codes` is a contiguous array of uint16.
    """
    n_planes = planes.shape[0]
    whole = codes.shape[0] >> 6
    for w in range(whole):
        for k in range(n_planes):
            planes[k, first_word + w] |= _match_word(codes, w << 6, np.uint16(k))
    for r in range(whole << 6, codes.shape[0]):
        code = codes[r]
        if code < n_planes:
            planes[code, first_word + (r >> 6)] |= np.uint64(1) << np.uint64(r & 63)


@kernel
def unpack_codes(planes, first_row, n_rows, without_bit, out):
    """Write the codes of `n_rows` rows from `first_row` (a multiple of 64) on to `out`.

    Rows that set no bit get the code `without_bit`: the last state of a complete variable,
    MISSING (or any other mark) elsewhere.
    """
    out[:n_rows] = without_bit
    first_word = first_row >> 6
    n_words = (n_rows + 63) >> 6
    for k in range(planes.shape[0]):
        for w in range(n_words):
            bits = planes[k, first_word + w]
            while bits != 0:
                r = (w << 6) + np.int64(_trailing_zeros(bits))
                if r < n_rows:
                    out[r] = k
                bits &= bits - np.uint64(1)
