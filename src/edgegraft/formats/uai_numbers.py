"""The numbers of a UAI text file, each traceable to its line.

Every file of the UAI competitions (model, evidence, result) is an optional word followed only by
numbers, separated by any white space:

    [WORD] number number number ...

The whole file is therefore converted to one float64 array, and its grammar is checked on that
array. The position of a token in the text is needed only if it is wrong: a second, slow scan then
finds its line, so that errors can name file, line and token at no cost for valid files.

The text may be plain or gzip (recognised by the magic bytes, not by the name), with an optional
UTF-8 byte-order mark, ``#`` comments to the end of the line, and comment lines that begin with
``c`` and a blank, as defined by UAI 2016. A number is decimal, with or without a fraction and an
exponent (``5``, ``.5``, ``5.``, ``1e-5``, ``1E+5``); ``nan``, ``inf`` and ``1_000`` are not numbers
here. An integer may be written as ``2.0``, as some programs do.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import FileFormatError

MAX_INDEX = 1 << 53  # integers are exact up to here in the array of numbers

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n\v\f"
#: Every byte that may occur in a number: `float` accepts more (``nan``, ``inf``, ``1_000``).
_NUMERIC = b"0123456789+-.eE"
_COMMENT = re.compile(rb"#[^\r\n]*|(?<![^\r\n])c(?![^ \t\r\n])[^\r\n]*")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_SPACE = re.compile(rb"[ \t\r\n\v\f]")
_BLOCK = 1 << 20  # bytes converted at a time: bounds the list of token objects
_SHOWN = 40  # characters of a token that are shown in an error message


@dataclass(frozen=True, eq=False)
class NumberFile:
    """The content of a file of numbers."""

    path: str  # for messages
    text: bytes  # with comments blanked and lines preserved
    word: str  # the first word of the file, in capitals; empty if it starts with a number
    start: int  # the byte of `text` at which the numbers begin
    values: NDArray[np.float64]  # every number after the word

    def __len__(self) -> int:
        return len(self.values)

    def tokens(self) -> list[bytes]:
        """Return the tokens of the numbers."""
        return self.text[self.start :].split()

    def integer(self, position: int, what: str, low: int, high: int) -> int:
        """Return the number at `position`, refused unless an integer in ``low..high``."""
        return int(self.integers(position, 1, what, low, high)[0])

    def integers(
        self, position: int, count: int, what: str, low: int, high: int
    ) -> NDArray[np.int64]:
        """Return `count` numbers from `position`, refused unless integers in ``low..high``.

        `what` describes them in messages; its ``{}`` is replaced by the position among them.
        """
        found = self.values[position : position + count]
        bad = (found < low) | (found > high) | (found != np.floor(found))
        if bad.any():
            k = int(np.argmax(bad))
            kind = "an integer" if found[k] != np.floor(found[k]) else f"in {low}..{high}"
            raise self.error(position + k, f"{what.format(k)} must be {kind}")
        if len(found) < count:
            raise self.truncated(what.format(len(found)))
        return found.astype(np.int64)

    def expect_end(self, position: int) -> None:
        """Refuse anything at or after `position`."""
        if position < len(self):
            surplus = len(self) - position
            raise self.error(position, f"the file should end here; {surplus} tokens follow")

    def error(self, position: int, problem: str) -> FileFormatError:
        """Return the error that reports `problem` for the token at `position`."""
        tokens = _tokens_by_line(self.text, self.start)
        return _at(self.path, *next(islice(tokens, position, None)), problem)

    def truncated(self, expected: str) -> FileFormatError:
        """Return the error for a file that ends before `expected`."""
        last = deque(_tokens_by_line(self.text, 0), maxlen=1) or [(1, b"")]
        return _at(self.path, *last[0], f"the file ends here, before {expected}")


def read_numbers(path: str | os.PathLike[str], words: tuple[str, ...]) -> NumberFile:
    """Read the opening word and the numbers of the file at `path`.

    The word must be one of `words`; an empty string among them makes it optional.
    """
    source = os.fspath(path)
    text = _content(source)
    if b"#" in text or b"c" in text:
        text = _COMMENT.sub(b"", text)
    opening_word = re.match(rb"[ \t\r\n\v\f]*([^ \t\r\n\v\f]*)", text)
    assert opening_word is not None  # both parts may be empty
    word, start = "", 0
    if opening_word[1] and not _is_number(opening_word[1]):
        word, start = opening_word[1].decode("ascii", "replace").upper(), opening_word.end()
    if word not in words:
        wanted = " or ".join(word or "a number" for word in words)
        opening = next(_tokens_by_line(text, 0), (1, b""))
        raise _at(source, *opening, f"the file should open with {wanted}")
    try:
        values = _convert(text, start)
    except ValueError:
        tokens = _tokens_by_line(text, start)
        bad = next(found for found in tokens if not _is_number(found[1]))
        raise _at(source, *bad, "a decimal number was expected") from None
    return NumberFile(source, text, word, start, values)


def _content(path: str) -> bytes:
    raw = Path(path).read_bytes()
    if raw.startswith(_GZIP_MAGIC):
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise FileFormatError(
                f"'{path}': the gzip stream is truncated or damaged ({error}); fetch it again"
            ) from error
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    if b"\0" in raw:
        line = len(_LINE_END.findall(raw, 0, raw.index(b"\0"))) + 1
        raise FileFormatError(
            f"'{path}', line {line}: a zero byte: this is a binary or UTF-16 file, not UAI text"
        )
    return raw


def _convert(text: bytes, start: int) -> NDArray[np.float64]:
    blocks = [np.empty(0)]
    while start < len(text):
        space = _SPACE.search(text, start + _BLOCK)
        stop = space.end() if space else len(text)
        block = text[start:stop]
        if block.translate(None, _NUMERIC + _BLANK):
            raise ValueError
        blocks.append(np.fromiter(map(float, block.split()), np.float64))
        start = stop
    return np.concatenate(blocks)


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return not token.translate(None, _NUMERIC)


def _tokens_by_line(text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    first = len(_LINE_END.findall(text, 0, start)) + 1
    for line, content in enumerate(_LINE_END.split(text[start:]), first):
        for token in content.split():
            yield line, token


def _at(path: str, line: int, token: bytes, problem: str) -> FileFormatError:
    shown = "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in token[:_SHOWN].decode("utf-8", "backslashreplace")
    )
    shown += "..." if len(token) > _SHOWN else ""
    return FileFormatError(f"'{path}', line {line}, token '{shown}': {problem}")
