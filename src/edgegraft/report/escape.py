"""Escaping of text from the data for each context of a page."""

from __future__ import annotations

import html
import json
import math
from typing import Any

# "<" could end the script element, "&" is special in XHTML; JSON accepts both in escaped form.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def as_text(value: Any) -> str:
    """Return a value for the text, or a quoted attribute, of an HTML element.

    >>> as_text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    # Lone surrogates cannot be encoded: they are shown in escaped form.
    return html.escape(str(value).encode("utf-8", "backslashreplace").decode(), quote=True)


def as_script_json(value: Any) -> str:
    r"""Return a value as JSON that is safe inside a script element.

    Everything outside ASCII is escaped, including the line separators that JavaScript rejects.
    Numbers that JSON cannot express are refused.

    >>> as_script_json({"name": "</script>\u2028"})
    '{"name":"\\u003c/script\\u003e\\u2028"}'
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT)


def as_number(value: Any) -> str:
    """Return a formatted number: integers with separators, others with three digits.

    >>> as_number(12345), as_number(0.012345), as_number(float("inf")), as_number(float("nan"))
    ('12,345', '0.0123', '∞', 'n/a')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def for_json(value: float, digits: int = 4) -> float | None:
    """Return a rounded number, or None if JSON cannot express it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None
