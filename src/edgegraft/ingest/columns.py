"""One column on its way from Arrow batches to codes.

A batch is reduced to its distinct values and an index for each cell; only the distinct values
are looked at one by one. `OpenColumn` learns its categories and gives them provisional codes, in
the order in which they turn up; their final order is known only at the end of the data.
`ClosedColumn` knows its codes, or the edges of its bins, from a schema.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from edgegraft.core.types import Integers
from edgegraft.errors import Argument, DataError, listing
from edgegraft.ingest import cells
from edgegraft.ingest.binning import assign_bins
from edgegraft.ingest.code_buffer import CodeBuffer, Codes, DirectCodes, near_counts
from edgegraft.ingest.column_kinds import Observed
from edgegraft.ingest.findings import missing_values
from edgegraft.ingest.options import ReadOptions
from edgegraft.table.arrow import LabelKind, kind_of, labels_of, plain_type, simplify, type_name
from edgegraft.table.schema import MAX_STATES, Variable
from edgegraft.table.store import MISSING

_NOTHING = DirectCodes({})
_FEW = 1024  # labels up to which whole numbers are looked up in a table


class OpenColumn(Observed):
    """A column whose categories are those that it meets, or that its type declares.

    The place of a label in `labels` is its provisional code; `first_rows` has the row in which each
    occurs first, not known of declared labels and whole numbers. If `overflowed`, more distinct
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
        counts = np.zeros(0, np.int64)  # the buffer has them
        super().__init__(name, kind, type_name(dtype), declared, ordered, [], counts, from_text)
        self.buffer = CodeBuffer()
        self.overflowed = False
        self._direct = _NOTHING
        self._n_numeric = 0  # labels of a text file that are known to be numbers
        self._max_states = options.max_states
        self._code: dict[Any, int] = dict.fromkeys(options.missing_labels(from_text), MISSING)
        if self.kind is LabelKind.BOOL and not self.declared:
            self._add(False)
            self._add(True)
            self._direct = DirectCodes(self._code)

    def observed(self) -> Observed:
        """Return what has been read so far."""
        own = {each.name: getattr(self, each.name) for each in fields(Observed)}
        return Observed(**own | {"counts": self.buffer.counts(len(self.labels))})

    def take(self, n_rows: int) -> Codes:
        """Take out the first rows; of a column that is to be read again, nothing is kept."""
        if self.overflowed:
            return np.full(n_rows, MISSING, np.uint16)
        return self.buffer.take(n_rows)

    def append(self, array: pa.Array, place: cells.Place) -> None:
        """Receive cells, whose rows messages call by `place`."""
        if self.overflowed:
            return
        found = self._direct.find(array)
        if found is not None:
            self.buffer.append(found)
            return
        if self.kind is LabelKind.INT and self._append_near(array):
            return
        labels, indices = distinct(array)
        if self._begin_with(labels):
            codes = [*range(len(labels)), MISSING]
            self.buffer.append(np.array(codes, np.uint16)[indices])
            return
        get = self._code.get
        codes = [get(label, -1) for label in labels] if self._code else [-1] * len(labels)
        if -1 in codes:
            if not self._meet(labels, codes, indices, place):
                return
            self._look_up_directly()
        self.buffer.append(np.array([*codes, MISSING], np.uint16)[indices])

    def _begin_with(self, numbers: list[Any]) -> bool:
        """Take the numbers of the first cells for labels; return whether that could be done."""
        if self.labels or self.declared or self.kind is not LabelKind.FLOAT:
            return False
        if len(numbers) > MAX_STATES or not _are_plain(numbers):
            return False
        if not self._code.keys().isdisjoint(numbers):
            return False
        self.labels, self.first_rows = list(numbers), [""] * len(numbers)
        self._code.update(zip(numbers, range(len(numbers)), strict=True))
        return True

    def _look_up_directly(self) -> None:
        if self.kind is LabelKind.INT and len(self.labels) <= _FEW:
            self._direct = DirectCodes(self._code)

    def _append_near(self, array: pa.Array) -> bool:
        """Receive whole numbers that lie near each other; return whether they do."""
        seen = near_counts(array)
        if seen is None:
            return False
        new = [value for value in seen if value not in self._code]
        if len(self.labels) + len(new) > min(_FEW, self._max_states):
            return False
        for value in new:
            self._add(value)
        self._look_up_directly()
        found = self._direct.find(array)
        if found is None:
            return False
        counts = np.zeros(len(self.labels), np.int64)
        for value, count in seen.items():
            if self._code[value] != MISSING:
                counts[self._code[value]] = count
        self.buffer.append(found, counts)
        return True

    def _meet(
        self, labels: list[Any], codes: list[int], indices: NDArray[Any], place: cells.Place
    ) -> bool:
        """Give codes to the labels that have none yet; return whether there were enough."""
        numeric = self.kind.numeric and not self.declared
        if numeric and len(self.labels) + codes.count(-1) - 1 > MAX_STATES:
            return self._overflow()
        if numeric and self.kind is LabelKind.FLOAT and self._meet_numbers(labels, codes):
            return True
        firsts = _first_places(indices, len(labels))
        for k, label in enumerate(labels):
            if codes[k] >= 0:
                continue
            if label != label:  # NaN
                codes[k] = MISSING
                continue
            row = place(int(firsts[k])) if firsts[k] >= 0 else ""
            if self.kind is LabelKind.FLOAT:
                cells.reject_infinity(self.name, label, row)
            # A declared dictionary may hold the same value twice.
            codes[k] = self._code[label] if label in self._code else self._add(label, row)
            if codes[k] >= self._max_states and not self._may_grow(row):
                return False
        return True

    def _meet_numbers(self, labels: list[Any], codes: list[int]) -> bool:
        """Give codes to many different numbers at once; return whether that could be done."""
        new = [k for k, code in enumerate(codes) if code < 0]
        if not _are_plain([labels[k] for k in new]):
            return False
        first = len(self.labels)
        added = range(first, first + len(new))
        self.labels += [labels[k] for k in new]
        self.first_rows += [""] * len(new)
        self._code.update(zip(self.labels[first:], added, strict=True))
        for k, code in zip(new, added, strict=True):
            codes[k] = code
        return True

    def _add(self, label: Any, row: str = "") -> int:
        code = len(self.labels)
        self._code[label] = code
        self.labels.append(label)
        self.first_rows.append(row)
        return code

    def _may_grow(self, row: str) -> bool:
        """Decide what more labels than allowed mean: an error, or numbers to be binned."""
        numeric = self.kind.numeric and not self.declared
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
        missing = dict.fromkeys(self._missing, MISSING)
        self._direct = DirectCodes({**self._code, **missing})

    def append(self, array: pa.Array, place: cells.Place) -> None:
        """Receive cells, whose rows messages call by `place`."""
        own = self.variable
        if own.edges is not None:
            values = cells.numbers_of(own.name, array, self._options, self._from_text, place, own)
            self.buffer.append(assign_bins(values, own.edges))
            return
        found = self._direct.find(array)
        if found is not None:
            self.buffer.append(found)
            return
        labels, indices = distinct(array)
        codes = np.full(len(labels) + 1, MISSING, np.uint16)
        firsts: Integers | None = None
        for k, label in enumerate(labels):
            code = self.code_of(label)
            if code is not None:
                codes[k] = code
                continue
            firsts = _first_places(indices, len(labels)) if firsts is None else firsts
            # Declared categories that do not occur do no harm.
            if firsts[k] >= 0 and self._options.unseen == "error":
                raise cells.unseen_category(own, label, place(int(firsts[k])))
        self.buffer.append(codes[indices])

    def code_of(self, label: Any) -> int | None:
        """Return the code of a label, `MISSING` for one that means missing, None if unknown."""
        if label in self._missing or label != label:
            return MISSING
        if self._read_as is not None:
            label = cells.read_text_as(label, self._read_as)
        return self._code.get(label)


def distinct(array: pa.Array) -> tuple[list[Any], NDArray[np.integer[Any]]]:
    """Return the distinct labels, and for each cell its place among them.

    A null cell has the place one past the last label.
    """
    array = simplify(array)
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


def _are_plain(numbers: list[Any]) -> bool:
    """Return whether there are no NaN, infinities and two kinds of zero among numbers."""
    values = np.array(numbers, np.float64)
    return bool(np.isfinite(values).all() and np.count_nonzero(values == 0) <= 1)


def _first_places(indices: NDArray[np.integer[Any]], n_labels: int) -> Integers:
    """Return where each label occurs first, -1 for one that does not."""
    firsts = np.full(n_labels + 1, -1, np.int64)
    # Of repeated places the last assignment stays, so going backwards leaves the first cell.
    firsts[indices[::-1]] = np.arange(len(indices) - 1, -1, -1)
    return firsts[:-1]
