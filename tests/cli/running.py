"""The command in this process, and through its real entry point with and without a terminal."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from edgegraft.cli import main

COMMAND = Path(sys.executable).parent / "edgegraft"


def edgegraft(*arguments):
    """Run the command in this process, which has everything loaded."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["edgegraft", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(COMMAND, code, out.getvalue(), err.getvalue())


def separately(*arguments, **options):
    """Run the command as a process of its own; its streams are no terminal."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )


def at_terminal(arguments, press=None, limit=120):
    """Run the command at a pseudo-terminal; return its exit code and all that was shown.

    With `press`, Ctrl-C is pressed once that pattern has been shown.
    """
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", COLUMNS="140", LINES="40")
        os.execv(COMMAND, [str(COMMAND), *map(str, arguments)])
    shown, until = b"", time.monotonic() + limit
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 0.05)[0]:
            continue
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        shown += part
        if press is not None and re.search(press, shown):
            os.write(terminal, b"\x03")
            press = None
    else:
        os.kill(child, 9)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


def refused(done, *words, code=2):
    """Check that a run ended with one line about what was wrong, and no traceback."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0], done.stderr
