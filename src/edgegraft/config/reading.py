"""Settings of reading a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from edgegraft.config.declare import RUN, TABLE, Options, setting

BinRule = Literal["quantile", "uniform"]
Unseen = Literal["error", "missing"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ReadingOptions(Options):
    """Options of reading that few tables need: `reading` of the estimators.

    Values are checked when a table is read.

    Parameters
    ----------
    bins, bin_rule, max_numeric_states, max_categories, delimiter, header, encoding
        As :func:`edgegraft.pack` has them.
    cache_dir : path, optional
        Folder of the codes of rows that do not fit in memory. They are found again while the
        files are the same. By default the folder in the environment variable EDGEGRAFT_CACHE, or
        the user's cache.
    cache_size : int or str, optional
        Bytes that all codes in the folder may take, 32 GiB by default; the least recently
        used are removed first.

    Examples
    --------
    >>> ReadingOptions(bins={"age": 4})
    ReadingOptions(bins={'age': 4})
    """

    bins: int | Mapping[str, int] | None = setting(
        None, "Bins of numeric columns: 5, or age=4; repeat.", "--bins"
    )
    bin_rule: BinRule = setting("quantile")
    max_numeric_states: int = setting(
        32,
        "Distinct values up to which a numeric column keeps them as categories.",
        "--max-numeric-states",
        minimum=1,
    )
    max_categories: int = setting(
        128,
        "Categories of an unordered column; the rarest of more are pooled as one.",
        "--max-categories",
        minimum=2,
    )
    delimiter: str | None = setting(
        None, "Separator of the columns of a text file, such as ; or tab.", "--delimiter"
    )
    header: bool = setting(
        True, "Whether the first row of a text file has names.", "--header/--no-header"
    )
    encoding: str = setting("utf8", "Encoding of text files.", "--encoding")
    cache_dir: str | PathLike[str] | None = setting(
        None,
        "Folder of the codes of large tables, found again while the files are the same; by default "
        "$EDGEGRAFT_CACHE or the user's cache.",
        "--cache-dir",
        cells=False,
    )
    cache_size: int | str | None = setting(
        None,
        "Space that all codes in the folder may take, 32 GiB by default; the oldest are removed.",
        "--cache-size",
        cells=False,
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class TableOptions(ReadingOptions):
    """How a table is read; in full at :func:`edgegraft.ingest.pack`."""

    columns: Sequence[str | int] | None = setting(
        None, "Columns to use, separated by commas, or repeat.", "--columns"
    )
    drop: Sequence[str | int] | None = setting(
        None, "Columns to leave out, separated by commas. Or repeat.", "--drop", group=TABLE
    )
    kinds: str | Mapping[str, str] = setting(
        "auto",
        "What columns are: 'auto', one kind for all, or kinds by name (nominal, ordinal, count, "
        "numeric).",
    )
    nominal: Sequence[str] | None = setting(
        None, "Columns of unordered categories. By commas, or repeat.", "--nominal", group=TABLE
    )
    ordinal: Sequence[str] | None = setting(
        None, "Columns of levels. By commas, or repeat.", "--ordinal", group=TABLE
    )
    count: Sequence[str] | None = setting(
        None, "Columns of counts. By commas, or repeat.", "--count"
    )
    numeric: Sequence[str] | None = setting(
        None, "Columns of measured numbers. By commas, or repeat.", "--numeric"
    )
    order: Sequence[str] | None = setting(
        None,
        "An order of categories, as 'low<high'. For all columns that have them, or "
        "'NAME=low<high' for one; repeat.",
        "--order",
        group=TABLE,
    )
    missing_values: Collection[Any] = setting(
        (), "A cell that means missing; repeat.", "--missing", group=TABLE
    )
    unseen: Unseen = setting(
        "error", "What a category is that the model does not know.", "--unseen"
    )
    max_memory: int | str | None = setting(
        None,
        "Memory that the run may take, such as '2 GiB'. By default half of the machine's for files "
        "above an eighth of it. Rows that do not fit are kept on disk: the search begins on a "
        "sample, which also tests the edges, and ends over all rows. More threads (--jobs) leave "
        "less for the sample.",
        "--max-memory",
        cells=False,
        group=RUN,
    )
