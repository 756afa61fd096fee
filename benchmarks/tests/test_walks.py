"""The script that counts what a walk through the code enters."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks import walks

pytest.importorskip("typer", reason="one of the walks is that of the command line")


@pytest.mark.slow
def test_the_three_walks_are_counted_and_listed(capsys):
    walks.main(["--list"])
    shown = capsys.readouterr().out
    rows = re.findall(r"^\| .+ \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", shown, re.MULTILINE)
    fit, learn, query = (tuple(map(int, row)) for row in rows)
    for functions, doors, files, kernels in (fit, learn, query):
        assert functions >= doors >= files > 0
        assert functions + kernels < 1000
    assert fit[0] > query[0]
    limits = tomllib.loads(Path("tools/budget.toml").read_text())["limits"]
    assert fit[0] <= limits["walk_functions"]
    assert fit[2] <= limits["walk_files"]
    assert "GraftedMRF.fit*" in shown
    assert "MessageEngine.run*" in shown


def test_a_walk_sees_other_threads_and_no_imports():
    from threading import Thread

    def work():
        thread = Thread(target=walks.edgegraft.Schema.from_states, args=([2, 2],))
        thread.start()
        thread.join()

    found = walks.follow(work)
    assert any(function.name == "Schema.from_states" for function in found.functions)
    assert not any(function.name.startswith("<") for function in found.functions)
