"""Run the commands of docs/examples.md and update their output on that page: `make examples`.

In a ``console`` block, lines that start with ``$`` are commands, followed by their output. A
``python`` block is run, and a ``text`` block right after it holds its output. Everything runs in
build/examples, where ``../shared/data`` is the folder of the data; pictures that the page shows are
copied from there into docs/images.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "examples.md"
DATA = ROOT.parent / "shared"
WORK = ROOT / "build" / "examples"
_BLOCK = re.compile(
    r"```console\n(?P<console>.*?)```"
    r"|```python\n(?P<python>.*?)```(?P<printed>\n\n```text\n.*?```)?",
    re.DOTALL,
)
_PICTURE = re.compile(r"!\[[^\]]*\]\(images/([\w-]+\.png)\)")
_LEARNED = re.compile(r"^[\d,]+ variables, [\d,]+ edges", re.MULTILINE)
#: Marks omitted output on the page.
CUT = "[...]\n"


def main() -> int:
    """Update the page and its pictures."""
    if not (DATA / "data").is_dir():
        sys.stderr.write(
            f"The examples are unchanged: the folder of their data, {DATA}/data, does not exist.\n"
        )
        return 0
    _prepare()
    names: dict[str, Any] = {"__name__": "examples"}

    def update(block: re.Match[str]) -> str:
        if block["console"] is not None:
            return f"```console\n{_run_commands(block['console'])}```"
        printed = _run_python(block["python"], names)
        if block["printed"] is None:
            return block[0]
        return f"```python\n{block['python']}```\n\n```text\n{printed}```"

    page = _BLOCK.sub(update, PAGE.read_text("utf-8"))
    images = PAGE.parent / "images"
    images.mkdir(exist_ok=True)
    for picture in _PICTURE.findall(page):
        shutil.copyfile(WORK / picture, images / picture)
    PAGE.write_text(page, "utf-8")
    return 0


def _prepare() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    link = WORK.parent / "shared"
    if not link.is_symlink():
        link.symlink_to(DATA, target_is_directory=True)
    os.chdir(WORK)
    # Prefer the commands of this environment, and make their tables as wide as the page.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["COLUMNS"] = "88"
    os.environ["MPLBACKEND"] = "Agg"


def _run_commands(block: str) -> str:
    """Run the commands of a block and return the block with their present output."""
    out = []
    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)", block, re.MULTILINE):
        sys.stderr.write(f"$ {command}\n")
        done = subprocess.run(
            command,
            shell=True,
            text=True,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        if done.returncode:
            raise SystemExit(f"the command failed with status {done.returncode}:\n{done.stdout}")
        out.append(f"$ {command}\n{_without_columns(done.stdout)}")
    return "".join(out)


def _without_columns(output: str) -> str:
    """Omit the table of columns that `learn` prints first."""
    summary = _LEARNED.search(output)
    kept = output if summary is None else CUT + output[summary.start() :]
    return "".join(f"{line.rstrip()}\n" for line in kept.splitlines())


def _run_python(source: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(PAGE), "exec"), names)
    return printed.getvalue()


if __name__ == "__main__":
    sys.exit(main())
