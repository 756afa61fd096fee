"""The script that sets old and new code side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

import edgegraft
from benchmarks import side_by_side, side_by_side_worker

SOURCE = str(Path(edgegraft.__file__).parents[1])


def test_both_files_know_the_same_tasks():
    known = [name for name in side_by_side.TASKS if not name.startswith("first_fit")]
    assert [*known, "first_fit"] == list(side_by_side_worker.TASKS)


@pytest.mark.slow
def test_a_run_of_the_same_code_twice(capsys):
    ended = side_by_side.main(
        ["--old", SOURCE, "--new", SOURCE, "--only", "pair_counts_5_states",
         "--scale", "0.02", "--repeats", "1", "--limit", "100"]
    )  # fmt: skip
    assert ended == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2].startswith("| pair counts 5 states | ")
    assert all(line.count("|") == 11 for line in shown[:3])
    assert "none" in shown[-1]


def test_figures_that_are_worse_are_bold():
    old, new = side_by_side.Figures(1.0, 1.0, 100.0), side_by_side.Figures(1.1, 2.0, 101.0)
    assert side_by_side.row("a_task", old, new, 1.05) == (
        "| a task | 1 | 1.1 | **1.100** | 1 | 2 | 2.000 | 100 | 101 | 1.010 |"
    )


def test_a_folder_without_the_package_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        side_by_side.main(["--old", str(tmp_path), "--new", SOURCE])
    assert "does not contain the package 'edgegraft'" in capsys.readouterr().err
