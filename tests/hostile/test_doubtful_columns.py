"""Columns that can be read, but probably not as their owner means them, are named in a warning."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

from edgegraft.errors import DataError, EncodingWarning
from edgegraft.ingest import pack


def said(table, **options):
    """Return the warnings of packing a table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pack(table, **options)
    assert all(issubclass(warning.category, EncodingWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    "write",
    [
        "${}.50".format,
        "{} €".format,
        "{}%".format,
        "{},5".format,
        lambda k: f"{k * 1000:,}",
        lambda k: f"-{k * 1000:,}.25" if k else "0",
    ],
)
def test_numbers_that_are_not_written_plainly(write):
    texts = [write(k % 40) for k in range(400)]
    example = next(text for text in texts if not text.isdecimal())
    (message,) = said({"price": texts})
    assert f"'price' (such as {example!r})" in message
    assert "write them as 1234.5" in message
    assert said({"price": [write(k % 30) for k in range(400)]}) == []  # few enough to be categories
    with pytest.raises(DataError, match=r"'price', which is not numeric but .*plainly \(1234.5\)"):
        pack({"price": texts}, bins={"price": 4})
    with pytest.raises(DataError, match=r"different value in each .*plainly \(1234.5\)"):
        pack({"price": [write(k) for k in range(40)]})


def test_codes_and_dates_are_no_such_numbers():
    codes = [f"{k % 40:03}" for k in range(400)]
    dates = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(400)]
    assert said({"zip": codes}) == []
    assert "plainly" not in said({"day": dates})[0]


def test_many_categories_of_few_rows_each():
    dates = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(400)]
    for column in (dates, pd.to_datetime(dates)):
        (message,) = said(pd.DataFrame({"day": column, "x": [0, 1] * 200}))
        assert "'day' (84 categories)" in message
        assert "drop=['day']" in message
    assert said({"day": dates * 2}) == []  # 9 rows each
    assert said({"day": pd.Categorical(dates)}) == []  # declared


@pytest.mark.parametrize(
    ("first", "second"), [("yes", "Yes"), ("yes", " yes"), ("New York", "New  York"), ("x", "x ")]
)
def test_categories_that_differ_in_blanks_or_capitals_only(first, second):
    (message,) = said({"a": [first, "no", second, "no"]})
    assert f"'a' ({first!r} and {second!r})" in message
    assert said({"a": ["b", "B", "b"]}) == []  # letters, as of alleles


def test_a_long_list_of_columns_is_cut_short():
    (message,) = said({f"c{k}": ["yes", "YES"] for k in range(9)})
    assert "'c5' ('yes' and 'YES') and 3 more" in message
