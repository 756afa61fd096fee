"""What a file is by its first bytes, where its name says otherwise."""

from __future__ import annotations

from pathlib import Path

from edgegraft.errors import Argument

__all__ = ["foreign_content"]

_SHEET = "a zip archive or a spreadsheet: unpack it, or save the sheet as .csv"
_CONTENTS = {
    b"\x1f\x8b": "gzipped: let its name end in .gz",
    b"PK\x03\x04": _SHEET,
    b"\xd0\xcf\x11\xe0": "an old spreadsheet: save the sheet as .csv",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"BZh": "compressed with bzip2: unpack it first",
    b"\xfd7zXZ": "compressed with xz: unpack it first",
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"ARROW1": "an Arrow file: let its name end in .arrow",
    b"SQLite format": "a database: write the table to a .csv or .parquet file first",
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def foreign_content(path: Path, utf8: bool) -> list[str | Argument]:
    """Return what a file is that cannot be delimited text, and the remedy; nothing if it can be.

    Parameters
    ----------
    path : Path
    utf8 : bool
        Whether it is to be read as UTF-8, in which no file begins as UTF-16 does.
    """
    with path.open("rb") as file:
        start = file.read(16)
    if utf8 and start.startswith(_UTF16):
        return ["written in UTF-16: say ", Argument("encoding", "utf-16")]
    return [text for magic, text in _CONTENTS.items() if start.startswith(magic)]
