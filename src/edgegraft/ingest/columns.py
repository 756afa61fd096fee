"""One column on its way from Arrow batches to codes.

A batch is reduced to its distinct values and an index for each cell; only the distinct values
are looked at one by one. `OpenColumn` learns its categories and gives them provisional codes, in
the order in which they turn up; their final order is known only at the end of the data.
`ClosedColumn` knows its codes, or the edges of its bins, from a schema.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from edgegraft.core.types import Integers
from edgegraft.errors import Argument, DataError, listing
from edgegraft.ingest import cells
from edgegraft.ingest.binning import assign_bins
from edgegraft.ingest.column_kinds import Observed
from edgegraft.ingest.findings import missing_values
from edgegraft.ingest.options import ReadOptions
from edgegraft.table.arrow import LabelKind, kind_of, labels_of, plain_type, simplify, type_name
from edgegraft.table.schema import MAX_STATES, MISSING, Variable

Codes = NDArray[np.uint16]
BytesOrCodes = NDArray[Any]  # uint8 or uint16

BYTE = 255  # a missing cell among codes of a byte each
_FEW = 16  # codes that are counted one by one, several times as fast


class CodeBuffer:
    """Provisional codes of a column; `MISSING` marks a missing cell.

    Codes take a byte each as long as they are below 255.
    """

    def __init__(self) -> None:
        self._chunks: list[BytesOrCodes] = []

    def append(self, codes: Codes, places: NDArray[Any] | None = None) -> BytesOrCodes:
        """Receive the codes of the next cells; or those at some `places` of `codes`.

        Returns them as they are held.
        """
        # The next code of MISSING wraps to 0, and MISSING itself to BYTE.
        if int((codes + np.uint16(1)).max(initial=0)) <= BYTE:
            codes = codes.astype(np.uint8)
        chunk = codes if places is None else _look_up(codes, places)
        if len(chunk):
            self._chunks.append(chunk)
        return chunk

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def take(self, n_rows: int) -> BytesOrCodes:
        """Take out the first rows, under their provisional codes."""
        taken: list[BytesOrCodes] = []
        while n_rows:
            codes = self._chunks[0][:n_rows]
            taken.append(codes)
            n_rows -= len(codes)
            if len(self._chunks[0]) > len(codes):
                self._chunks[0] = self._chunks[0][len(codes) :]
            else:
                del self._chunks[0]
        if len({codes.dtype for codes in taken}) > 1:
            taken = [_as_codes(codes) for codes in taken]
        return taken[0] if len(taken) == 1 else np.concatenate(taken)

    def finish(self, recode: Codes | None, n_states: int) -> BytesOrCodes:
        """Return the column under its final codes ``recode[provisional]``.

        Several provisional codes may become one, and those that become `MISSING` turn missing. In
        the column a missing cell holds the number of states.
        """
        codes = np.arange(n_states, dtype=np.uint16) if recode is None else recode
        parts = [final_codes(chunk, codes, n_states) for chunk in self._chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def final_codes(chunk: BytesOrCodes, recode: Codes, n_states: int) -> BytesOrCodes:
    """Return provisional codes under their final ones, see :meth:`CodeBuffer.finish`."""
    missing = BYTE if chunk.dtype == np.uint8 else MISSING
    table = np.full(missing + 1, n_states, np.uint8 if n_states <= BYTE else np.uint16)
    known = recode[:missing]
    table[: len(known)] = np.where(known == MISSING, n_states, known)
    return _look_up(table, chunk)


def _look_up(table: BytesOrCodes, places: NDArray[Any]) -> BytesOrCodes:
    """Return ``table[places]``."""
    if places.dtype == table.dtype == np.uint8:  # several times as fast as NumPy
        whole = table.tobytes().ljust(BYTE + 1, b"\0")
        return np.frombuffer(places.tobytes().translate(whole), np.uint8)
    return np.take(table, places)


def _as_codes(chunk: BytesOrCodes) -> Codes:
    """Return codes of two bytes each."""
    codes = chunk.astype(np.uint16)
    if chunk.dtype == np.uint8:
        codes[codes == BYTE] = MISSING
    return codes


class OpenColumn(Observed):
    """A column whose categories are those that it meets, or that its type declares.

    The place of a label in `labels` is its provisional code; `first_rows` has the row in which each
    occurs first, not known of declared labels and many numbers. If `overflowed`, more distinct
    numbers were met than codes exist: the column must be binned from a second reading, and its
    codes have been dropped.
    """

    def __init__(
        self, name: str, dtype: pa.DataType, options: ReadOptions, from_text: bool = False
    ) -> None:
        dtype = plain_type(dtype)
        declared = pt.is_dictionary(dtype)
        kind = kind_of(dtype.value_type if declared else dtype) or LabelKind.TEXT
        ordered = bool(declared and dtype.ordered)
        counts = np.zeros(0, np.int64)
        super().__init__(name, kind, type_name(dtype), declared, ordered, [], counts, from_text)
        self.buffer = CodeBuffer()
        self.overflowed = False
        self._n_numeric = 0  # labels of a text file that are known to be numbers
        self._max_states = options.max_states
        self._code: dict[Any, int] = dict.fromkeys(options.missing_labels(from_text), MISSING)
        if self.kind is LabelKind.BOOL and not self.declared:
            self._code |= {False: 0, True: 1}
            self.labels, self.first_rows = [False, True], ["", ""]

    def observed(self) -> Observed:
        """Return what has been read so far, without the cells."""
        return Observed(*(getattr(self, each.name) for each in fields(Observed)))

    def take(self, n_rows: int) -> BytesOrCodes:
        """Take out the first rows; of a column that is to be read again, nothing is kept."""
        if self.overflowed:
            return np.full(n_rows, BYTE, np.uint8)
        return self.buffer.take(n_rows)

    def append(self, array: pa.Array, place: cells.Place) -> None:
        """Receive cells, whose rows messages call by `place`."""
        if self.overflowed:
            return
        labels, places = distinct(array)
        codes = np.fromiter(map(self._code.get, labels, repeat(-1)), np.int64, len(labels))
        if (codes < 0).any() and not self._meet(labels, codes, places, place):
            return
        chunk = self.buffer.append(np.append(codes, MISSING).astype(np.uint16), places)
        # A missing cell among bytes has the code of another label among many.
        n_codes = min(len(self.labels), BYTE if chunk.dtype == np.uint8 else MISSING)
        before, self.counts = self.counts, np.zeros(len(self.labels), np.int64)
        self.counts[: len(before)] = before
        self.counts[:n_codes] += _count(chunk, n_codes)

    def _meet(
        self, labels: list[Any], codes: Integers, places: NDArray[Any], place: cells.Place
    ) -> bool:
        """Give codes to the labels that have none yet; return whether there were enough."""
        if not self.declared:
            codes[(codes < 0) & (_count(places, len(labels)) == 0)] = MISSING
        new = np.flatnonzero(codes < 0)
        if self.numeric:
            first = len(self.labels)
            if first + len(new) - 1 > MAX_STATES:
                return self._overflow()
            fresh = [labels[k] for k in new.tolist()]
            if np.isfinite(np.array(fresh, np.float64)).all():
                self.labels += fresh
                self.first_rows += [""] * len(new)
                codes[new] = np.arange(first, len(self.labels))
                self._code.update(zip(fresh, range(first, len(self.labels)), strict=True))
                return True
        firsts = _first_places(places, len(labels))
        for k in new.tolist():
            label = labels[k]
            if label != label:  # NaN
                codes[k] = MISSING
                continue
            row = place(int(firsts[k])) if firsts[k] >= 0 else ""
            if self.kind is LabelKind.FLOAT:
                cells.reject_infinity(self.name, label, row)
            if label not in self._code:  # a declared dictionary may hold the same value twice
                self._code[label] = len(self.labels)
                self.labels.append(label)
                self.first_rows.append(row)
            codes[k] = self._code[label]
            if codes[k] >= self._max_states and not self._may_grow(row):
                return False
        return True

    def _may_grow(self, row: str) -> bool:
        """Decide what more labels than allowed mean: an error, or numbers to be binned."""
        numeric = self.numeric
        if self.from_text:
            fresh = self.labels[self._n_numeric :]
            numeric = all(cells.read_number(text) is not None for text in fresh)
            self._n_numeric = len(self.labels)
        if not numeric:
            raise self._too_many(row)
        return len(self.labels) <= MAX_STATES or self._overflow()

    def _overflow(self) -> bool:
        self.overflowed = True
        self.buffer = CodeBuffer()
        self._code.clear()
        return False

    def _too_many(self, row: str) -> DataError:
        parts: list[str | Argument] = [
            f"column '{self.name}' has more than {self._max_states} categories (the limit was "
            f"passed in row {row}, counted from 0), such as {listing(self.labels, 3)}: leave "
            "it out with ",
            Argument("drop", [self.name]),
            " or merge categories first",
        ]
        example = cells.dressed_number(self.labels) if self.from_text else None
        odd = cells.odd_tokens(self.labels) if self.from_text else []
        if example is not None:
            parts.append(f"; if {example!r} is a number, write it plainly (1234.5)")
        elif odd:
            parts += [f"; it is numeric but for {listing(odd)}: try ", missing_values(odd)]
        return DataError(*parts)


class ClosedColumn:
    """A column whose categories, or bins, a schema has fixed."""

    def __init__(self, variable: Variable, options: ReadOptions, from_text: bool) -> None:
        self.variable = variable
        self.buffer = CodeBuffer()
        self.take = self.buffer.take
        self._options, self._from_text = options, from_text
        self._read_as = type(variable.categories[0]) if from_text else None
        self._missing = options.missing_labels(from_text)
        self._code: dict[Any, int] = {label: k for k, label in enumerate(variable.categories)}
        self._code |= dict.fromkeys(variable.pooled, variable.n_states - 1)

    def append(self, array: pa.Array, place: cells.Place) -> None:
        """Receive cells, whose rows messages call by `place`."""
        own = self.variable
        if own.edges is not None:
            values = cells.numbers_of(own.name, array, self._options, self._from_text, place, own)
            self.buffer.append(assign_bins(values, own.edges))
            return
        labels, places = distinct(array)
        codes = [self.code_of(label) for label in labels]
        if None in codes and self._options.unseen == "error":
            firsts = _first_places(places, len(labels)).tolist()
            for code, label, first in zip(codes, labels, firsts, strict=True):
                if code is None and first >= 0:
                    raise cells.unseen_category(own, label, place(first))
        table = [MISSING if code is None else code for code in codes]
        self.buffer.append(np.array([*table, MISSING], np.uint16), places)

    def code_of(self, label: Any) -> int | None:
        """Return the code of a label, `MISSING` for one that means missing, None if unknown."""
        if label in self._missing or label != label:
            return MISSING
        if self._read_as is not None:
            label = cells.read_text_as(label, self._read_as)
        return self._code.get(label)


def distinct(array: pa.Array) -> tuple[list[Any], NDArray[np.integer[Any]]]:
    """Return labels that are distinct, and for each cell its place among them.

    Labels that were declared, or lie between numbers, need not occur. A null cell has the place one
    past the last label.
    """
    array = simplify(array)
    run = _run_of(array)
    if run is not None:
        return run
    if pt.is_float16(array.type):
        array = array.cast(pa.float32())  # older releases of Arrow do not encode half precision
    if not pt.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices = array.indices
    if indices.null_count:
        if indices.type.bit_width < 32:
            indices = indices.cast(pa.int32())
        indices = indices.fill_null(len(array.dictionary))
    return labels_of(array.dictionary), indices.to_numpy(zero_copy_only=False)


def _run_of(array: pa.Array) -> tuple[list[Any], NDArray[np.uint8]] | None:
    """Return the same of booleans, or whole numbers near each other, if no cell is missing."""
    if array.null_count or not len(array):
        return None
    if pt.is_boolean(array.type):
        return [False, True], array.to_numpy(zero_copy_only=False).view(np.uint8)
    if not pt.is_integer(array.type):
        return None
    # Not by `to_numpy`, which imports pandas if it is installed.
    whole = np.frombuffer(array.buffers()[1], np.dtype(str(array.type)))
    values = whole[array.offset : array.offset + len(array)]
    low, high = int(values.min()), int(values.max())
    if high - low >= BYTE:
        return None
    places = (values - values.dtype.type(low)).astype(np.uint8)  # differences may wrap
    return list(range(low, high + 1)), places


def _count(codes: BytesOrCodes, n: int) -> Integers:
    """Return how many cells have each of `n` codes."""
    if n > _FEW:
        return np.bincount(codes, minlength=n)[:n]
    return np.array([np.count_nonzero(codes == k) for k in range(n)], np.int64)


def _first_places(indices: NDArray[np.integer[Any]], n_labels: int) -> Integers:
    """Return where each label occurs first, -1 for one that does not."""
    firsts = np.full(n_labels + 1, -1, np.int64)
    # Of repeated places the last assignment stays, so going backwards leaves the first cell.
    firsts[indices[::-1]] = np.arange(len(indices) - 1, -1, -1)
    return firsts[:-1]
