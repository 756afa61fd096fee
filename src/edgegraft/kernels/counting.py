"""Bit planes, and pair counts: by AND and population count of planes, or by direct histogram.

Row ``r`` of a column is bit ``r % 64`` of word ``r // 64``: one bit per cell and state. A missing
cell sets no bit. Sixty-four codes of eight or sixteen bits are one vector, and a word of a plane is
the mask of one comparison.

    count(a, b) = sum over words of popcount(plane_i[a] & plane_j[b])

Each loaded vector of a plane is used against up to four planes of the other variable, so the
loop is bound by AND + popcount + add (three vector operations for 512 rows of one cell of the
table) and not by loads. The tile is written for the compiler's vector type of eight 64-bit
words; LLVM lowers it to what the processor has (one ``vpopcntq`` on AVX-512 VPOPCNTDQ, a byte
shuffle on AVX2, ``cnt`` on ARM).

A histogram takes one increment per row, whatever the number of states: the path for variables with
many states, for which all pairs of planes cost more than one pass over the rows, and for weighted
rows, in which there is nothing to popcount. The codes of a block of rows are widened once for all
variables of a batch, then every pair of the batch is counted on the block, so scratch memory does
not grow with the rows.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from edgegraft.kernels.compiler import helper, kernel

LANES = 8  # 64-bit words in one vector: planes are padded to whole vectors
TILE = 4  # planes a side of a register tile: 16 accumulators and 8 operands fit 32 registers
ROW_BLOCK = 512  # words of a plane before the next pair: 4 KiB, a tile of variables stays in L2


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


class Planes(NamedTuple):
    """Bit planes of a table: those of variable ``i`` are rows ``start[i]`` to ``start[i + 1]``."""

    words: np.ndarray  # uint64 (planes, words a plane), words a plane a multiple of LANES
    start: np.ndarray  # int64 (n + 1,)
    states: np.ndarray  # int64 (n,)
    complete: np.ndarray  # bool (n,): no missing cell, so the last state's plane is left out


def _tile_body(builder, vec, pointers_a, pointers_b, n_vectors, store):
    """Emit the loop of one tile shape; `store(x, y, total)` receives each cell's total."""
    word = vec.element
    count = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vec, [vec]), f"llvm.ctpop.v{LANES}i64"
    )
    total = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(word, [vec]), f"llvm.vector.reduce.add.v{LANES}i64"
    )
    cells = [(x, y) for x in range(len(pointers_a)) for y in range(len(pointers_b))]
    before = builder.block
    loop = builder.append_basic_block("tile.loop")
    after = builder.append_basic_block("tile.end")
    builder.branch(loop)

    builder.position_at_end(loop)
    index = builder.phi(word)
    index.add_incoming(word(0), before)
    sums = {}
    for cell in cells:
        sums[cell] = builder.phi(vec)
        sums[cell].add_incoming(ir.Constant(vec, [0] * LANES), before)
    a = [builder.load(builder.gep(p, [index]), align=8) for p in pointers_a]
    b = [builder.load(builder.gep(p, [index]), align=8) for p in pointers_b]
    new = {}
    for x, y in cells:
        new[x, y] = builder.add(sums[x, y], builder.call(count, [builder.and_(a[x], b[y])]))
        sums[x, y].add_incoming(new[x, y], loop)
    following = builder.add(index, word(1))
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, n_vectors), loop, after)

    builder.position_at_end(after)
    for x, y in cells:
        store(x, y, builder.call(total, [new[x, y]]))


@intrinsic
def add_tile(typingctx, left, a, right, b, first, length, n_a, n_b, out, at, stride):
    """Add the counts of planes ``a..a+n_a`` against ``b..b+n_b`` to ``out[at + x * stride + y]``.

    The planes are rows of two arrays of equally many words, which may be one. Only words ``first``
    to ``first + length`` are counted; both are multiples of LANES and ``length`` is positive. One
    loop is emitted for each of the TILE * TILE shapes.
    """
    index = types.intp
    signature = types.void(left, index, right, *[index] * 5, out, index, index)

    def codegen(context, builder, sig, args):
        _, a, _, b, first, length, n_a, n_b, out, at, stride = args
        sources = [context.make_array(sig.args[k])(context, builder, args[k]) for k in (0, 2)]
        target = context.make_array(sig.args[8])(context, builder, out)
        word = a.type
        vec = ir.VectorType(word, LANES)

        def plane(source, row):
            length = builder.extract_value(source.shape, 1)
            at_word = builder.add(builder.mul(row, length), first)
            return builder.bitcast(builder.gep(source.data, [at_word]), vec.as_pointer())

        def store(x, y, total):
            cell = builder.add(at, builder.add(builder.mul(stride, word(x)), word(y)))
            pointer = builder.gep(target.data, [cell])
            builder.store(builder.add(builder.load(pointer), total), pointer)

        n_vectors = builder.udiv(length, word(LANES))
        end = builder.append_basic_block("tiles.end")
        shape = builder.add(builder.mul(n_a, word(TILE + 1)), n_b)
        switch = builder.switch(shape, end)
        for x in range(1, TILE + 1):
            for y in range(1, TILE + 1):
                case = builder.append_basic_block(f"tile.{x}x{y}")
                switch.add_case(word(x * (TILE + 1) + y), case)
                builder.position_at_end(case)
                pointers_a = [plane(sources[0], builder.add(a, word(k))) for k in range(x)]
                pointers_b = [plane(sources[1], builder.add(b, word(k))) for k in range(y)]
                _tile_body(builder, vec, pointers_a, pointers_b, n_vectors, store)
                builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def popcount(typingctx, word):
    """Return the number of bits of a word that are set."""

    def codegen(context, builder, sig, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@kernel
def count_planes(planes, margins, margin_start, edges, chosen, offsets, out):
    """Write the tables of ``edges[chosen]`` at their `offsets` in the zeroed array `out`.

    Row blocks are the outer loop: the planes of the variables that neighbouring edges share
    are then still in cache. States without a plane are filled in from the margins.
    """
    words, length = planes.words, planes.words.shape[1]
    for first in range(0, length, ROW_BLOCK):
        block = min(ROW_BLOCK, length - first)
        for e in chosen:
            i = edges[e, 0]
            j = edges[e, 1]
            a_end = planes.start[i + 1]
            b_end = planes.start[j + 1]
            stride = planes.states[j]
            for a in range(planes.start[i], a_end, TILE):
                for b in range(planes.start[j], b_end, TILE):
                    at = offsets[e] + (a - planes.start[i]) * stride + b - planes.start[j]
                    n_a = min(TILE, a_end - a)
                    n_b = min(TILE, b_end - b)
                    add_tile(words, a, words, b, first, block, n_a, n_b, out, at, stride)
    for e in chosen:
        i = edges[e, 0]
        j = edges[e, 1]
        table = out[offsets[e] : offsets[e] + planes.states[i] * planes.states[j]]
        table = table.reshape(planes.states[i], planes.states[j])
        row_margin = margins[margin_start[i] : margin_start[i + 1]]
        column_margin = margins[margin_start[j] : margin_start[j + 1]]
        _fill_last(table, row_margin, column_margin, planes.complete[i], planes.complete[j])


@njit(inline="always")
def _fill_last(table, row_margin, column_margin, row_complete, column_complete):
    """Fill the last row and column of a table from the margins of the complete variables.

    If variable i is complete, every row in which j is known has a state of i, so column b of
    the table sums to the margin of j; the same holds the other way round.
    """
    last_a = table.shape[0] - 1
    last_b = table.shape[1] - 1
    if row_complete:
        for b in range(last_b + (0 if column_complete else 1)):
            rest = column_margin[b]
            for a in range(last_a):
                rest -= table[a, b]
            table[last_a, b] = rest
    if column_complete:
        for a in range(last_a + 1):
            rest = row_margin[a]
            for b in range(last_b):
                rest -= table[a, b]
            table[a, last_b] = rest


ROWS = 65536  # rows at a time: 128 KiB per variable
_COPIES = 4  # interleaved copies of a small table hide the latency of adding to one cell twice
_SMALL = 2048  # cells of a table, those of missing cells included, that is copied
_BITS = np.uint64(16)  # of a cell number
_LOW = np.uint64(0xFFFF)


@kernel
def count_codes(cells, n_rows, states, weights, edges, chosen, variables, slots, offsets, out):
    """Add the tables of ``edges[chosen]`` at their `offsets` in the zeroed array `out`.

    Missing `cells` (n, rows or more) hold the number of states; `weights` may be None. `variables`
    are those that the batch names, each once; `slots` is where an edge's ends stand among them.
    """
    block = np.empty((variables.shape[0], min(ROWS, n_rows)), np.uint16)
    cell_of = np.empty(min(ROWS, n_rows), np.uint16)
    copies = np.empty((_COPIES, _SMALL), out.dtype)
    for first in range(0, n_rows, ROWS):
        length = min(ROWS, n_rows - first)
        for v in range(variables.shape[0]):
            block[v, :length] = cells[variables[v], first : first + length]
        for k in range(chosen.shape[0]):
            e = chosen[k]
            s_i = states[edges[e, 0]]
            s_j = states[edges[e, 1]]
            x = block[slots[k, 0], :length]
            y = block[slots[k, 1], :length]
            table = out[offsets[e] : offsets[e] + s_i * s_j]
            block_weights = None if weights is None else weights[first : first + length]
            if (s_i + 1) * (s_j + 1) <= _SMALL:
                _count_small(x, y, s_i, s_j, block_weights, cell_of, copies, table)
            else:
                _count_large(x, y, s_i, s_j, block_weights, table)


@helper
def _count_small(x, y, s_i, s_j, weights, cells, copies, table):
    """Add one block's counts; missing cells fall into a row and a column that are left behind.

    The cell of each row is computed first, in a loop that the compiler turns into vector
    operations; what remains is one load, add and store per row, without a branch.
    """
    width = s_j + 1
    n = x.shape[0]
    for r in range(n):
        cells[r] = x[r] * np.uint16(width) + y[r]
    copies[:, : (s_i + 1) * width] = 0
    first, second, third, fourth = copies[0], copies[1], copies[2], copies[3]
    # Four cells come with one load, which leaves the store unit as the only bound.
    for q, four in enumerate(cells[: n - n % 4].view(np.uint64)):
        r = 4 * q
        first[four & _LOW] += 1 if weights is None else weights[r]
        second[(four >> _BITS) & _LOW] += 1 if weights is None else weights[r + 1]
        third[(four >> (_BITS + _BITS)) & _LOW] += 1 if weights is None else weights[r + 2]
        fourth[four >> (_BITS + _BITS + _BITS)] += 1 if weights is None else weights[r + 3]
    for r in range(n - n % 4, n):
        first[np.uint64(cells[r])] += 1 if weights is None else weights[r]
    for a in range(s_i):
        for b in range(s_j):
            c = a * width + b
            table[a * s_j + b] += first[c] + second[c] + third[c] + fourth[c]


@helper
def _count_large(x, y, s_i, s_j, weights, table):
    """Add one block's counts straight to a table that is too large to copy and clear."""
    for r in range(x.shape[0]):
        a = np.int64(x[r])
        b = np.int64(y[r])
        if a < s_i and b < s_j:
            table[a * s_j + b] += 1 if weights is None else weights[r]
