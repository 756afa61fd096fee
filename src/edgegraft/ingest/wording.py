"""Short lists for messages, and the remarks that one call of `pack` gathers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["Findings", "listing"]


def listing(items: Iterable[object], limit: int = 6) -> str:
    """Return items as they are written in Python, a long list cut short.

    Examples
    --------
    >>> from edgegraft.ingest.wording import listing
    >>> listing(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = [_short(item) for item in items]
    text = ", ".join(shown[:limit])
    return text if len(shown) <= limit else f"{text} and {len(shown) - limit} more"


def _short(item: object, width: int = 40) -> str:
    text = repr(item)
    return text if len(text) <= width else f"{text[: width - 4]}...{text[0]}"


@dataclass
class Findings:
    """What was decided about columns and the user should know: one warning a subject."""

    constant: list[str] = field(default_factory=list)
    binned: list[tuple[str, int]] = field(default_factory=list)
    odd: list[tuple[str, list[str]]] = field(default_factory=list)
    dressed: list[tuple[str, str]] = field(default_factory=list)
    scattered: list[tuple[str, int]] = field(default_factory=list)
    twins: list[tuple[str, tuple[str, str]]] = field(default_factory=list)

    def messages(self) -> list[str]:
        """Return one text for each subject that came up."""
        texts = []
        if self.constant:
            texts.append(
                f"constant columns: {listing(self.constant)}; they are kept but can have no "
                "edges (leave them out with drop=)"
            )
        if self.binned:
            texts.append(
                f"numeric columns with many values were cut into bins: "
                f"{_noted(self.binned, '{} bins')}; choose "
                "with bins=5 or bins={'column': 3}, keep the values with max_numeric_states=, or "
                "leave columns out with drop="
            )
        for name, tokens in self.odd:
            texts.append(
                f"column '{name}' is numeric but for {listing(tokens)}, so it was read as text; "
                f"if that means missing, use missing_values=({', '.join(map(repr, tokens))},)"
            )
        if self.dressed:
            texts.append(
                f"columns of numbers that are not written plainly, so that each is a category of "
                f"its own: {_noted(self.dressed, 'such as {!r}')}; write them as 1234.5 to have "
                "them cut into bins"
            )
        if self.scattered:
            texts.append(
                f"columns with many categories of few rows each: "
                f"{_noted(self.scattered, '{:,} categories')}; they cost time and hardly show "
                "edges: merge categories (of dates keep the month, say), or leave the columns out "
                f"with drop={[name for name, _ in self.scattered]}"
            )
        if self.twins:
            texts.append(
                "columns with categories that differ in blanks or capitals only: "
                f"{_noted(self.twins, '{0[0]!r} and {0[1]!r}')}; if they mean the same, write them "
                "alike"
            )
        return texts


def _noted(columns: Sequence[tuple[str, object]], note: str) -> str:
    """Return columns with what was noted of each, a long list cut short."""
    shown = ", ".join(f"'{name}' ({note.format(fact)})" for name, fact in columns[:6])
    return shown if len(columns) <= 6 else f"{shown} and {len(columns) - 6} more"
