"""Short lists for messages, and the remarks that one call of `pack` gathers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Findings", "listing"]


def listing(items: Iterable[object], limit: int = 6) -> str:
    """Return items as they are written in Python, a long list cut short.

    Examples
    --------
    >>> from edgegraft.data.wording import listing
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

    def messages(self) -> list[str]:
        """Return one text for each subject that came up."""
        texts = []
        if self.constant:
            texts.append(
                f"constant columns: {listing(self.constant)}; they are kept but can have no "
                "edges (leave them out with drop=)"
            )
        if self.binned:
            columns = ", ".join(f"'{name}' ({count} bins)" for name, count in self.binned[:6])
            if len(self.binned) > 6:
                columns += f" and {len(self.binned) - 6} more"
            texts.append(
                f"numeric columns with many values were cut into bins: {columns}; choose "
                "with bins=5 or bins={'column': 3}, keep the values with max_numeric_states=, or "
                "leave columns out with drop="
            )
        for name, tokens in self.odd:
            texts.append(
                f"column '{name}' is numeric but for {listing(tokens)}, so it was read as text; "
                f"if that means missing, use missing_values=({', '.join(map(repr, tokens))},)"
            )
        return texts
