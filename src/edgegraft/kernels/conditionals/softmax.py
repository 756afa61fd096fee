"""Softmax of many small vectors at once, in vector registers.

    p_a = exp(z_a - m) / t,    t = exp(-m) + sum over a of exp(z_a - m),    m = max(0, max of z)

State 0 is the reference: its logit is zero and is not stored. A tile is sixteen columns (one
softmax each) of `alternatives` logits: either vector by vector, or column by column, which is
turned into vectors on the way in and back on the way out.
"""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from edgegraft.kernels.compiler import helper

from .lanes import LANES, Vectors, load_lanes, store_lanes


def _load_tile(builder, array, at, count, interleaved):
    """Return `count` vectors, one an alternative, whose lanes are the columns of a tile."""
    if not interleaved or count == 1:
        starts = (builder.add(at, at.type(a * LANES)) for a in range(count))
        return [load_lanes(builder, array, start, LANES) for start in starts]
    whole = load_lanes(builder, array, at, LANES * count)
    unused = ir.Constant(whole.type, ir.Undefined)
    return [_shuffle(builder, whole, unused, range(a, LANES * count, count)) for a in range(count)]


def _store_tile(builder, vectors, array, at, interleaved):
    if not interleaved or len(vectors) == 1:
        for a, vector in enumerate(vectors):
            store_lanes(builder, vector, array, builder.add(at, at.type(a * LANES)))
        return
    # Interleaving vectors of even and of odd alternatives, twice as long each time.
    while len(vectors) > 1:
        half, length = len(vectors) // 2, vectors[0].type.count
        order = [k + part * length for k in range(length) for part in (0, 1)]
        vectors = [_shuffle(builder, vectors[k], vectors[k + half], order) for k in range(half)]
    store_lanes(builder, vectors[0], array, at)


def _shuffle(builder, first, second, order):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order))
    return builder.shuffle_vector(first, second, mask)


def _widen(builder, vector):
    """Return a vector in double precision: a total just above 1 has its meaning in the excess."""
    double = ir.VectorType(ir.DoubleType(), LANES)
    return vector if vector.type == double else builder.fpext(vector, double)


@intrinsic(prefer_literal=True)
def softmax_tile(typingctx, logits, at, weights, tops, totals, column, alternatives, interleaved):
    """Replace a tile of logits by ``-weight * p``, and write each column's ``m`` and ``t``.

    The tile starts at ``logits[at]``; totals are float64. Interleaved, it is sixteen columns of
    `alternatives` logits; else it is `alternatives` vectors of sixteen. `alternatives` is a
    power of two.
    """
    if not isinstance(alternatives, types.IntegerLiteral):
        return None
    if not isinstance(interleaved, types.IntegerLiteral):
        return None
    signature = types.void(
        logits, types.intp, weights, tops, totals, types.intp, alternatives, interleaved
    )

    def codegen(context, builder, sig, args):
        tile, weight, top, total = (
            context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 2, 3, 4)
        )
        at, column = args[1], args[5]
        mixed = bool(sig.args[7].literal_value)
        vectors = Vectors(builder, tile.data.type.pointee)
        z = _load_tile(builder, tile, at, sig.args[6].literal_value, mixed)
        m = vectors.all(0.0)
        for vector in z:
            m = vectors.max(vector, m)
        t = vectors.exp(builder.fsub(vectors.all(0.0), m))
        e = [vectors.exp(builder.fsub(vector, m)) for vector in z]
        precise = _widen(builder, t)
        for vector in e:
            t = builder.fadd(t, vector)
            precise = builder.fadd(precise, _widen(builder, vector))
        store_lanes(builder, m, top, column)
        store_lanes(builder, precise, total, column)
        factor = load_lanes(builder, weight, column, LANES)
        factor = builder.fdiv(builder.fsub(vectors.all(0.0), factor), t)
        _store_tile(builder, [builder.fmul(v, factor) for v in e], tile, at, mixed)
        return context.get_dummy_value()

    return signature, codegen


def _across(builder, vector, combine):
    """Return what `combine` makes of all lanes, halving the vector until one is left."""
    while vector.type.count > 1:
        half = vector.type.count // 2
        unused = ir.Constant(vector.type, ir.Undefined)
        low, high = (
            _shuffle(builder, vector, unused, range(first, first + half)) for first in (0, half)
        )
        vector = combine(low, high)
    return builder.extract_element(vector, ir.IntType(32)(0))


def _spread(builder, scalar):
    """Return a vector that has the scalar in every lane."""
    empty = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    one = builder.insert_element(empty, scalar, ir.IntType(32)(0))
    return _shuffle(builder, one, empty, [0] * LANES)


@intrinsic
def softmax_row(typingctx, logits, at, weights, tops, totals, column, alternatives):
    """Do the same for one column of many alternatives, a multiple of sixteen, at ``logits[at]``."""
    signature = types.void(logits, types.intp, weights, tops, totals, types.intp, types.intp)

    def codegen(context, builder, sig, args):
        row, weight, top, total = (
            context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 2, 3, 4)
        )
        at, column = args[1], args[5]
        n_pieces = builder.udiv(args[6], at.type(LANES))
        vectors = Vectors(builder, row.data.type.pointee)

        def pieces():
            return cgutils.for_range(builder, n_pieces)

        def start(loop):
            return builder.add(at, builder.mul(loop.index, at.type(LANES)))

        most = cgutils.alloca_once_value(builder, vectors.all(0.0))
        with pieces() as loop:
            piece = load_lanes(builder, row, start(loop), LANES)
            builder.store(vectors.max(piece, builder.load(most)), most)
        m = _spread(builder, _across(builder, builder.load(most), vectors.max))

        # Only one lane has the reference state.
        reference = builder.insert_element(
            vectors.all(0.0),
            builder.extract_element(
                vectors.exp(builder.fsub(vectors.all(0.0), m)), ir.IntType(32)(0)
            ),
            ir.IntType(32)(0),
        )
        running = cgutils.alloca_once_value(builder, _widen(builder, reference))
        with pieces() as loop:
            piece = load_lanes(builder, row, start(loop), LANES)
            e = vectors.exp(builder.fsub(piece, m))
            builder.store(builder.fadd(builder.load(running), _widen(builder, e)), running)
            store_lanes(builder, e, row, start(loop))
        t = _across(builder, builder.load(running), builder.fadd)

        def cell(array):
            return builder.gep(array.data, [column])

        builder.store(builder.extract_element(m, ir.IntType(32)(0)), cell(top))
        builder.store(t, cell(total))
        if vectors.type.element != t.type:
            t = builder.fptrunc(t, vectors.type.element)
        factor = _spread(builder, builder.fdiv(builder.fneg(builder.load(cell(weight))), t))
        with pieces() as loop:
            piece = load_lanes(builder, row, start(loop), LANES)
            store_lanes(builder, builder.fmul(piece, factor), row, start(loop))
        return context.get_dummy_value()

    return signature, codegen


@njit(inline="always")
def _softmax_block(logits, weights, tops, totals, n_columns, alternatives, interleaved):
    for column in range(0, n_columns, LANES):
        softmax_tile(
            logits, column * alternatives, weights, tops, totals, column, alternatives, interleaved
        )


@helper
def softmax_block(logits, weights, tops, totals, n_columns, alternatives, interleaved):
    """Replace logits by ``-weight * p`` for whole tiles of columns.

    `alternatives` is 1, 2, 4 or 8, or, interleaved, any multiple of sixteen.
    """
    if alternatives == 1:
        _softmax_block(logits, weights, tops, totals, n_columns, 1, 0)
    elif interleaved:
        if alternatives == 2:
            _softmax_block(logits, weights, tops, totals, n_columns, 2, 1)
        elif alternatives == 4:
            _softmax_block(logits, weights, tops, totals, n_columns, 4, 1)
        elif alternatives == 8:
            _softmax_block(logits, weights, tops, totals, n_columns, 8, 1)
        else:
            for column in range(n_columns):
                at = column * alternatives
                softmax_row(logits, at, weights, tops, totals, column, alternatives)
    elif alternatives == 2:
        _softmax_block(logits, weights, tops, totals, n_columns, 2, 0)
    elif alternatives == 4:
        _softmax_block(logits, weights, tops, totals, n_columns, 4, 0)
    elif alternatives == 8:
        _softmax_block(logits, weights, tops, totals, n_columns, 8, 0)
