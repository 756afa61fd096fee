"""Text of messages: short lists, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def listing(items: Iterable[object], limit: int = 6) -> str:
    """Return items as they are written in Python, a long list cut short.

    >>> listing(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = [_short(item) for item in items]
    text = ", ".join(shown[:limit])
    return text if len(shown) <= limit else f"{text} and {len(shown) - limit:,} more"


def _short(item: object, width: int = 40) -> str:
    text = repr(item)
    return text if len(text) <= width else f"{text[: width - 4]}...{text[0]}"


def nearest(text: str, known: Sequence[str]) -> str | None:
    """Return the name that was probably meant: equal but for capitals, or similar.

    >>> nearest("CITY", ["city", "citu"]), nearest("smokr", ["age", "smoker"]), nearest("x", ["y"])
    ('city', 'smoker', None)
    """
    alike = [name for name in known if name.casefold() == text.casefold()]
    return next(iter(alike or get_close_matches(text, known, n=1)), None)


def suggestion(text: str, known: Sequence[str]) -> str:
    """Return what to say about an unknown name: the one that was meant, or all there are.

    >>> suggestion("smokr", ["age", "smoker"]), suggestion("x", ["age", "smoker"])
    ("did you mean 'smoker'?", "there are 'age', 'smoker'")
    """
    near = nearest(text, known)
    return f"there are {listing(known)}" if near is None else f"did you mean {near!r}?"
