"""Axes to draw on, and text that is shown literally."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgegraft.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 32


def require_matplotlib() -> None:
    """Raise an error before any work if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "a picture") from error


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, made = plt.subplots(figsize=(width, height), layout="constrained")
    return made


def shown(label: Any, longest: int = _LONGEST) -> str:
    r"""Return a label on one line, shortened if it is too long for a picture.

    >>> shown("two\nlines"), shown("a rather long name", 10)
    ('two lines', 'a rather …')
    """
    text = " ".join(str(label).split()) or "(blank)"
    text = text.encode("utf-8", "backslashreplace").decode()  # halves of surrogate pairs
    return text if len(text) <= longest else text[: longest - 1] + "…"


def literal(ax: Axes) -> None:
    """Prevent dollar signs in tick labels from being parsed as formulas."""
    for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        tick.set_parse_math(False)
