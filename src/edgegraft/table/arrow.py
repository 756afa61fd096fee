"""Arrow: the five kinds of column that can be encoded, and codes back as labels of their type."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.checks import check_codes
from edgegraft.errors import Argument, DataError, DataTypeError
from edgegraft.table.numbers import numbers_of
from edgegraft.table.schema import Schema, Variable


class LabelKind(Enum):
    """How the labels of a column are read, ordered and decided about."""

    TEXT = "text"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TIME = "time"

    @property
    def numeric(self) -> bool:
        """Whether the column may be binned."""
        return self in (LabelKind.INT, LabelKind.FLOAT)


@lru_cache(maxsize=256)
def kind_of(dtype: pa.DataType) -> LabelKind | None:
    """Return the kind of a plain (not dictionary) type, None for one that cannot be encoded."""
    if pt.is_string(dtype) or pt.is_large_string(dtype) or pt.is_string_view(dtype):
        return LabelKind.TEXT
    if pt.is_boolean(dtype):
        return LabelKind.BOOL
    if pt.is_integer(dtype):
        return LabelKind.INT
    if pt.is_floating(dtype) or pt.is_decimal(dtype):
        return LabelKind.FLOAT
    if pt.is_temporal(dtype) and not pt.is_interval(dtype):
        return LabelKind.TIME
    return None


def type_name(dtype: pa.DataType) -> str:
    """Return the name of a column's type in a schema.

    The layouts of text are one name: which of them a library uses says nothing about the data.
    """
    if pt.is_dictionary(dtype):
        return f"category[{type_name(dtype.value_type)}]"
    if kind_of(dtype) is LabelKind.TEXT:
        return "string"
    return "double" if pt.is_decimal(dtype) else str(dtype)


_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]")


@lru_cache(maxsize=256)
def type_from_name(name: str) -> pa.DataType | None:
    """Return the Arrow type that a schema names (of the values, for declared categories)."""
    if name.startswith("category[") and name.endswith("]"):
        name = name[len("category[") : -1]
    zoned = _ZONED.fullmatch(name)
    if zoned:
        return pa.timestamp(zoned[1], tz=zoned[2])
    try:
        return pa.type_for_alias(name)
    except (ValueError, TypeError):
        return None


def storage_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type in which the labels of a temporal column are kept: ISO text or integers.

    Arrow reads no durations or times of day from text, so these stay counts of their unit.
    """
    if pt.is_date(dtype) or pt.is_timestamp(dtype):
        return pa.string()
    return pa.int32() if pt.is_time32(dtype) else pa.int64()


def check_type(name: str, dtype: pa.DataType) -> None:
    """Refuse a column of a type that has no categories: nested, binary and others."""
    dtype = plain_type(dtype)
    if pt.is_dictionary(dtype):
        dtype = plain_type(dtype.value_type)
    if kind_of(dtype) is not None or pt.is_null(dtype):
        return
    if pt.is_nested(dtype):
        remedy = "unnest it into one column per value"
    elif pt.is_binary(dtype) or pt.is_large_binary(dtype) or pt.is_fixed_size_binary(dtype):
        remedy = "decode the bytes to text first"
    else:
        remedy = "convert it to text, numbers or dates first"
    raise DataTypeError(
        f"column '{name}' has the type {dtype}, which has no categories: {remedy}, or leave it "
        "out with ",
        Argument("drop", [name]),
    )


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type beneath extensions and runs, which `simplify` takes off an array."""
    if isinstance(dtype, pa.BaseExtensionType):
        dtype = dtype.storage_type
    return dtype.value_type if pt.is_run_end_encoded(dtype) else dtype


def simplify(array: pa.Array) -> pa.Array:
    """Return an array without extension type, runs or decimals."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pt.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    return array.cast(pa.float64()) if pt.is_decimal(array.type) else array


def labels_of(values: pa.Array) -> list[Any]:
    """Return values as schema labels: ISO text for dates, counts for times and durations."""
    dtype = values.type
    if pt.is_timestamp(dtype):
        # ISO text in UTC, without the zeros that depend on the unit alone.
        if dtype.tz:
            values = values.cast(pa.timestamp(dtype.unit, tz="UTC"))
        texts = values.cast(pa.timestamp(dtype.unit)).cast(pa.string()).to_pylist()
        return [t.rstrip("0").rstrip(".") if t is not None and "." in t else t for t in texts]
    if kind_of(dtype) is LabelKind.TIME:
        values = values.cast(storage_type(dtype))
    elif pt.is_decimal(dtype):
        values = values.cast(pa.float64())
    elif pt.is_null(dtype):
        return [None] * len(values)
    return list(values.to_pylist())


Codes = NDArray[np.integer[Any]]


def decode_table(schema: Schema, codes: ArrayLike) -> pa.Table:
    """Return ``(n_rows, n)`` codes as a table; see :meth:`Schema.decode`."""
    cells = check_codes(codes, schema.names, schema.n_states)
    columns = [_decode(variable, cells[:, i]) for i, variable in enumerate(schema)]
    return pa.table(columns, names=list(schema.names))


def _decode(variable: Variable, codes: Codes) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    if variable.binned:
        return pa.DictionaryArray.from_arrays(indices, list(variable.categories), ordered=True)
    values = _category_array(variable)
    if variable.declared:
        return pa.DictionaryArray.from_arrays(indices, values, ordered=variable.ordered)
    return values.take(indices)


def _category_array(variable: Variable) -> pa.Array:
    dtype = type_from_name(variable.dtype)
    if dtype is None:
        raise DataError(f"variable '{variable.name}' has the unknown type '{variable.dtype}'")
    labels = list(variable.categories)
    if dtype == pa.float16():  # which older releases of Arrow make of NumPy's numbers alone
        return pa.array(np.array(labels, np.float16))
    if kind_of(dtype) is not LabelKind.TIME:
        return pa.array(labels, dtype)
    stored = pa.array(labels, storage_type(dtype))
    if getattr(dtype, "tz", None):
        # The labels are in UTC, so that their order as text is their order in time.
        stored = pc.assume_timezone(stored.cast(pa.timestamp(dtype.unit)), "UTC")
    return stored.cast(dtype)


def labels(schema: Schema, codes: Codes, rng: np.random.Generator | None = None) -> pa.Table:
    """Return codes as a table of labels that can be read again: of bins, numbers in them.

    That is the mean of a bin's numbers, or with `rng` a random one.
    """
    table = schema.decode(codes)
    for k, variable in enumerate(schema):
        numbers = numbers_of(variable) if variable.binned else None
        if numbers is not None:
            known = codes[:, k] >= 0
            states = np.maximum(codes[:, k], 0)
            values = numbers.middle[states] if rng is None else numbers.draw(states, rng)
            if not known.all():
                values = np.where(known, values, np.nan)
            table = table.set_column(k, variable.name, [values])
    return table
