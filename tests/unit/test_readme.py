"""README and pages of the documentation, pasted in order: they run, and print what they show."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.running import edgegraft

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md"] + [
    f"docs/{name}.md" for name in ("entry_points", "survey", "from_r", "index", "after", "kinds")
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_pasted_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```(python|text|sh)\n(.*?)```", text, re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    printed = ""
    for kind, content in blocks:
        if kind == "sh":
            for line in content.splitlines():
                run(shlex.split(line, comments=True))
        elif kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(content, names)
            printed = output.getvalue()
        else:
            assert printed.strip() == content.strip()


def run(words):
    if words[:2] == ["pip", "install"] or words[0] == "make":
        return
    if ">" in words:
        words = words[: words.index(">")]
    assert words[0] == "edgegraft", words
    done = edgegraft(*words[1:])
    assert done.returncode == 0, done.stderr
