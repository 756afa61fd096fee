"""Tables in: any frame, file, folder or stream becomes codes under a schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgegraft.table.schema import MAX_STATES, Label, Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgegraft.ingest.options import BinRule, Unseen
    from edgegraft.table.packed import PackedTable

__all__ = ["encode", "pack"]


def pack(
    X: Any,
    *,
    schema: Schema | None = None,
    columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] | None = None,
    bins: int | Mapping[str, int] | None = None,
    kinds: str | Mapping[str, str] = "auto",
    order: Sequence[str] | None = None,
    bin_rule: BinRule = "quantile",
    max_numeric_states: int = 32,
    max_categories: int = 128,
    max_states: int = MAX_STATES,
    missing_values: Collection[Label] = (),
    unseen: Unseen = "error",
    delimiter: str | None = None,
    header: bool = True,
    encoding: str = "utf8",
    batch_rows: int = 65536,
    n_jobs: int = 1,
) -> PackedTable:
    """Encode a table of categorical and numeric columns.

    Parameters
    ----------
    X : table or path
        A NumPy array of two dimensions, a pandas or polars DataFrame, a pyarrow Table,
        RecordBatch or RecordBatchReader, any object with ``__arrow_c_stream__``, a dict of
        columns, or the path of a CSV or TSV (also .gz, .bz2, .zst), Parquet, Feather, Arrow IPC,
        .xlsx (first sheet) or SPSS .sav file (these two need the extra ``files``), of a folder of
        such files, or a pattern (``"rows/*.parquet"``); several files are one table, in the order
        of their names. Also a PLINK .bed file, or a .vcf (also .gz) or .bcf file of genotypes (the
        extra ``genotypes``): a column counts the copies of an allele. Other files are read in
        batches and need not fit in memory; codes that do not are for
        :func:`edgegraft.scale.disk.open_store`.
    schema : Schema, optional
        Encode under these categories instead of learning them. Columns are matched by name, in
        any order; columns of an array, or of a file without header, by position. Missing and
        extra columns are errors (``columns=schema.names`` takes the schema's alone).
    columns, drop : list of str, optional
        Columns to encode, and to leave out. Columns of arrays may be given as positions.
    bins : int or dict, optional
        Number of bins for numeric columns, all or by name. A column is binned if it has more
        distinct values than bins.
    bin_rule : {"quantile", "uniform"}
        Bins of nearly equal counts, or of equal widths. Quantiles are exact up to 2**20 rows
        and for columns of up to 65,535 distinct values; beyond both they are of a fixed
        sample of 2**20 rows, an approximation.
    kinds : {"auto", "nominal", "ordinal", "count", "numeric"} or dict, default "auto"
        What columns are, all or by name; ``schema[name].kind`` and ``.reason`` give what was found.
        Ordered categories are ordinal, text and booleans nominal, columns of many numbers numeric
        or, if they are whole, begin at 0 and have a tail, count. Few whole numbers are ordinal if
        their dependence on other columns is mostly a trend (docs/kinds.md).
    order : list of str, optional
        Orders of text categories: ``"low<middle<high"`` for every column of these, or
        ``"size=S<M<L"`` for one.
    max_numeric_states : int, default 32
        A numeric column with no more distinct values keeps them as states; one with more, and no
        `bins`, gets 16 levels of nearly equal counts (5 with a warning if it is to be nominal).
    max_categories : int, default 128
        An unordered column of text with more categories keeps the most common ones; the others are
        one state, "(other)", with a warning. ``schema[name].pooled`` has them, and tables and
        evidence that name one of them are understood.
    max_states : int, default 65535
        A column with more categories is an error.
    missing_values : collection of str or number
        Labels to be taken as missing, besides nulls and NaN and, in text files, the empty cell
        and ``NA``, ``N/A``, ``n/a``, ``#N/A``, ``#NA``, ``<NA>``, ``NaN``, ``nan``, ``NaT``,
        ``null``, ``NULL`` and ``Null`` (not ``None``, a common category).
    unseen : {"error", "missing"}
        What a category that `schema` does not know is.
    delimiter : str, optional
        Of text files. By default a comma for ``.csv`` and a tab for ``.tsv``, unless only another
        of comma, semicolon, tab and ``|`` gives the first 20 rows equal lengths. With it a file
        of any other extension is read as text, too.
    header : bool, default True
        Whether a text file's first row has the names; if not they are ``x0``, ``x1``, ... A
        column whose name is empty is called by its place, ``column_1`` for the first.
    encoding : str, default "utf8"
        Of text files.
    batch_rows : int, default 65536
        Rows read at a time; it changes memory, never the result.
    n_jobs : int, default 1
        Other than 1 lets the file readers use threads.

    Returns
    -------
    PackedTable

    Raises
    ------
    DataError, DataTypeError, UnseenCategoryError, FileFormatError, FileNotFoundError
        The message names the file, column and row, what was found, and the remedy.

    Warns
    -----
    EncodingWarning
        For constant columns, for numeric columns that were binned unasked, for text columns that
        are numeric but for a few tokens or whose numbers are not written plainly ("$3.50"), for
        columns of many categories with few rows each, and for categories that differ in blanks
        or capitals only: one warning per subject.

    Notes
    -----
    Categories are ordered as declared by a pandas Categorical, a polars Enum or an Arrow
    dictionary, unobserved ones included (Parquet keeps those of text alone); other text sorted,
    numbers ascending, dates in time, False before True. Booleans always have both states.
    Column names that are whole numbers, as in a plain pandas frame, become text.

    In text files a column's type follows from its distinct values over the whole file: whole
    numbers, numbers, booleans (true and false), else text; leading zeros make text.

    A column of text, dates or whole numbers in which more than 20 rows all differ identifies
    rows and is an error, unless its categories are declared or it is binned by request.

    Under a schema with bins, values beyond the range that was seen fall into the first or the
    last bin.

    Examples
    --------
    >>> from edgegraft.ingest import pack
    >>> table = pack({"smoker": ["no", "yes", None], "children": [2, 0, 0]})
    >>> table.schema
    Schema(smoker: 2, children: 2)
    >>> table.codes()
    array([[ 0,  1],
           [ 1,  0],
           [-1,  0]], dtype=int32)
    """
    options = {name: value for name, value in locals().items() if name not in ("X", "schema")}
    from edgegraft.ingest.options import ReadOptions  # pyarrow takes a while to load
    from edgegraft.ingest.rows import read_table

    return read_table(X, schema, ReadOptions(**options), stacklevel=3)


def encode(X: Any, schema: Schema, *, unseen: Unseen = "error") -> NDArray[np.int32]:
    """Return a table's codes under a schema.

    Parameters
    ----------
    X : table or path
        As for :func:`pack`.
    schema : Schema
    unseen : {"error", "missing"}

    Returns
    -------
    array of int32, shape (n_rows, n)
        -1 for a missing cell.

    Examples
    --------
    >>> from edgegraft.ingest import encode
    >>> from edgegraft.table import Schema, Variable
    >>> schema = Schema([Variable("smoker", ("no", "yes"), "string")])
    >>> encode({"smoker": ["yes", None, "no"]}, schema)
    array([[ 1],
           [-1],
           [ 0]], dtype=int32)
    """
    return pack(X, schema=schema, unseen=unseen).codes()
