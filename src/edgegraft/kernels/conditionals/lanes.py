"""Rows of tables moved as vectors: look several up and add them, or add one to a running sum.

    out = sum over g of tables[offsets[g, r]]         (`sum_rows`)
    sums[at] += values                                (`add_row`)

The number of lanes is a constant of the compiled code, so a row is one or a few vector
registers and the sum over tables never leaves them. Left to the compiler the same loops stay
scalar, because it cannot know that what is stored does not alias what is read next.
"""

from llvmlite import ir
from numba import types
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
