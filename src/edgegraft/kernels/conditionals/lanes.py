"""Rows of tables moved as vectors, and an exponential that stays in vector registers.

    out = sum over g of tables[offsets[g, r]]         (`sum_rows`)
    sums[at] += values                                (`add_row`)

The number of lanes is a constant of the compiled code, so a row is one or a few vector
registers and the sum over tables never leaves them. Left to the compiler the same loops stay
scalar, because it cannot know that what is stored does not alias what is read next.

    exp(x) = 2^n exp(r),    n = round(x / ln 2),    r = x - n ln 2

with ``ln 2`` in two parts, so that ``r`` is exact (Cody and Waite), and a polynomial in ``r``.
Within 1.5 units in the last place for both precisions, and without the call for each lane that
the mathematical library would need.
"""

from math import factorial

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16  # columns of one softmax tile; rows wider than this are whole multiples of it


def pointer_to(builder, array, at, lanes):
    """Return the address of `lanes` elements of an array, as a vector."""
    vector = ir.VectorType(array.data.type.pointee, lanes)
    return builder.bitcast(builder.gep(array.data, [at]), vector.as_pointer())


def load_lanes(builder, array, at, lanes):
    """Load `lanes` elements of an array that start anywhere."""
    return builder.load(pointer_to(builder, array, at, lanes), align=_size(array))


def store_lanes(builder, vector, array, at):
    """Store a vector where it starts in an array."""
    where = pointer_to(builder, array, at, vector.type.count)
    builder.store(vector, where, align=_size(array))


def _size(array):
    return 4 if array.data.type.pointee == ir.FloatType() else 8


@intrinsic(prefer_literal=True)
def sum_rows(typingctx, tables, offsets, n_tables, r, out, at, lanes):
    """Write to ``out[at:at + lanes]`` the sum of the rows that start at ``offsets[:n_tables, r]``.

    `offsets` is an int32 array of two dimensions, and `n_tables` at least 1.
    """
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    signature = types.void(tables, offsets, types.intp, types.intp, out, types.intp, lanes)

    def codegen(context, builder, sig, args):
        table, offset, target = (
            context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 1, 4)
        )
        _, _, n_tables, r, _, at, _ = args
        count = sig.args[6].literal_value
        word = r.type
        vector = ir.VectorType(table.data.type.pointee, count)
        stride = builder.extract_value(offset.shape, 1)
        before = builder.block
        loop = builder.append_basic_block("rows.loop")
        after = builder.append_basic_block("rows.end")
        builder.branch(loop)

        builder.position_at_end(loop)
        g, total = builder.phi(word), builder.phi(vector)
        g.add_incoming(word(0), before)
        total.add_incoming(ir.Constant(vector, [0.0] * count), before)
        where = builder.load(builder.gep(offset.data, [builder.add(builder.mul(g, stride), r)]))
        row = load_lanes(builder, table, builder.sext(where, word), count)
        following, new = builder.add(g, word(1)), builder.fadd(total, row)
        g.add_incoming(following, loop)
        total.add_incoming(new, loop)
        builder.cbranch(builder.icmp_signed("<", following, n_tables), loop, after)

        builder.position_at_end(after)
        store_lanes(builder, new, target, at)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic(prefer_literal=True)
def add_row(typingctx, values, start, sums, at, lanes):
    """Add ``values[start:start + lanes]`` to ``sums[at:at + lanes]``, both of one type."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    signature = types.void(values, types.intp, sums, types.intp, lanes)

    def codegen(context, builder, sig, args):
        source, target = (
            context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 2)
        )
        count = sig.args[4].literal_value
        row = load_lanes(builder, source, args[1], count)
        before = load_lanes(builder, target, args[3], count)
        store_lanes(builder, builder.fadd(before, row), target, args[3])
        return context.get_dummy_value()

    return signature, codegen


# Adding `magic` rounds to an integer and leaves it in the low bits of the mantissa. Below
# `least` the result would not be a normal number.
_SINGLE = {
    "word": ir.IntType(32),
    "magic": 12582912.0,
    "high": 0.693359375,
    "low": -2.12194440e-4,
    "least": -87.0,
    "bias": 127,
    "mantissa": 23,
    "coefficients": (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    ),
}
_DOUBLE = {
    "word": ir.IntType(64),
    "magic": 6755399441055744.0,
    "high": 6.93147180369123816490e-01,
    "low": 1.90821492927058770002e-10,
    "least": -708.0,
    "bias": 1023,
    "mantissa": 52,
    "coefficients": tuple(1.0 / factorial(k) for k in range(13, 1, -1)),
}


class Vectors:
    """Arithmetic on vectors of one type, as LLVM instructions."""

    def __init__(self, builder, element):
        self.builder = builder
        self.type = ir.VectorType(element, LANES)
        self.constants = _SINGLE if element == ir.FloatType() else _DOUBLE
        suffix = "f32" if element == ir.FloatType() else "f64"
        self._fuse = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(self.type, [self.type] * 3),
            f"llvm.fmuladd.v{LANES}{suffix}",
        )

    def all(self, value):
        """Return a constant in every lane."""
        return ir.Constant(self.type, [value] * LANES)

    def fma(self, a, b, c):
        """Return ``a * b + c``, rounded once where the processor can."""
        return self.builder.call(self._fuse, [a, b, c])

    def max(self, a, b):
        """Return the larger of each pair of lanes."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def exp(self, x):
        """Return ``exp(x)`` for x of at most about 80; smaller than `least` counts as `least`."""
        builder, constants = self.builder, self.constants
        x = self.max(x, self.all(constants["least"]))
        shifted = self.fma(x, self.all(1.4426950408889634), self.all(constants["magic"]))
        n = builder.fsub(shifted, self.all(constants["magic"]))
        r = self.fma(n, self.all(-constants["high"]), x)
        r = self.fma(n, self.all(-constants["low"]), r)
        first, *rest = constants["coefficients"]
        poly = self.all(first)
        for coefficient in rest:
            poly = self.fma(poly, r, self.all(coefficient))
        poly = builder.fadd(self.fma(builder.fmul(poly, r), r, r), self.all(1.0))
        words = ir.VectorType(constants["word"], LANES)
        bias, mantissa = (ir.Constant(words, [constants[k]] * LANES) for k in ("bias", "mantissa"))
        exponent = builder.shl(builder.add(builder.bitcast(shifted, words), bias), mantissa)
        return builder.fmul(poly, builder.bitcast(exponent, self.type))
