"""The README's examples, run as they stand: what is printed must be what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_examples_print_what_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them saves a model
    blocks = re.findall(r"```(python|text)\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    printed = ""
    for kind, text in blocks:
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(text, names)
            printed = output.getvalue()
        else:
            assert printed.strip() == text.strip()
