"""The framework of the experiments: cells run once, complete files, pages that keep their text."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from edgegraft.errors import FileFormatError
from paper import EXPERIMENTS, Cell, Context, Experiment, reproduce
from paper.page import Page
from paper.reservoir import Draws
from paper.reservoir import run as draw_reservoirs


@dataclass(frozen=True)
class Square(Cell):
    n: int


@pytest.fixture
def squares():
    """An experiment that records its runs, and fails for the numbers in `bad`."""
    from matplotlib.figure import Figure

    ran, bad = [], set()

    def run(cell, context):
        if cell.n in bad:
            raise RuntimeError("a bad number")
        ran.append(cell.n)
        return [{"square": cell.n**2, "even": cell.n % 2 == 0}]

    experiment = Experiment(
        "squares",
        "squares of numbers",
        lambda quick: [Square("ours", 1.0, n) for n in range(2 if quick else 4)],
        run,
        lambda rows: Figure(),
        lambda rows: f"| {sum(row['square'] for row in rows)} |",
        runs="numbers",
    )
    return experiment, ran, bad


def test_what_ran_before_an_error_is_kept(squares, tmp_path):
    experiment, ran, bad = squares
    bad.add(2)
    with pytest.raises(RuntimeError, match="a bad number"):
        reproduce(experiment, tmp_path)
    assert not (tmp_path / "squares.csv").exists()
    bad.clear()
    done = reproduce(experiment, tmp_path)
    assert ran == [0, 1, 2, 3]
    assert (done.n_run, done.n_cells) == (2, 4)
    with done.table.open() as file:
        assert [row["square"] for row in csv.DictReader(file)] == ["0", "1", "4", "9"]
    assert done.figure.read_bytes().startswith(b"\x89PNG")
    machine = json.loads((tmp_path / "machine.json").read_text())["squares"]
    assert {"processor", "cores", "python", "numba", "source"} <= machine["machines"][0].keys()


def test_damaged_and_foreign_records_are_run_again(squares, tmp_path):
    experiment, ran, _ = squares
    reproduce(experiment, tmp_path, quick=True)
    first, second = sorted((tmp_path / "cells" / "numbers").iterdir())
    first.write_text(first.read_text()[:40])
    record = json.loads(second.read_text())
    second.write_text(json.dumps(record | {"cell": record["cell"] | {"n": 7}}))
    assert reproduce(experiment, tmp_path, quick=True).n_run == 2
    assert ran == [0, 1, 0, 1]
    assert reproduce(experiment, tmp_path, quick=True, again=True).n_run == 2


def test_experiments_with_the_same_runs_share_them(squares, tmp_path):
    experiment, _, _ = squares
    reproduce(experiment, tmp_path)
    assert reproduce(replace(experiment, name="other"), tmp_path).n_run == 0
    assert (tmp_path / "other.csv").read_text() == (tmp_path / "squares.csv").read_text()
    assert set(json.loads((tmp_path / "machine.json").read_text())) == {"squares", "other"}


def test_another_limit_is_another_run(squares, tmp_path):
    experiment, _, _ = squares
    reproduce(experiment, tmp_path)
    done = reproduce(experiment, tmp_path, max_time=0.5)
    assert done.n_run == 4
    assert {row["max_time"] for row in done.rows} == {0.5}


def test_page_keeps_what_is_around_a_section(squares, tmp_path):
    experiment, _, _ = squares
    path = tmp_path / "paper.md"
    path.write_text("# Title\n<!-- begin squares -->\nold\n<!-- end squares -->\nwhy\n")
    done = reproduce(experiment, tmp_path / "results")
    for _ in range(2):  # writing twice gives the same page
        Page(path, ["squares"]).write(experiment, done, quick=False)
        text = path.read_text()
        assert text.startswith("# Title\n<!-- begin squares -->\n`python -m paper squares`")
        assert text.endswith("<!-- end squares -->\nwhy\n")
        assert text.count("| 14 |") == 1
        assert "old" not in text
    assert (tmp_path / "images" / "paper" / "squares.png").is_file()


def test_page_without_a_section_is_refused(tmp_path):
    path = tmp_path / "paper.md"
    path.write_text("<!-- end squares -->\n<!-- begin squares -->\n")
    with pytest.raises(FileFormatError, match=r"paper\.md: expected one '<!-- begin squares -->'"):
        Page(path, ["squares"])


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quick", [True, False])
def test_cells_are_different_and_have_limits(name, quick):
    cells = EXPERIMENTS[name].cells(quick)
    assert len({cell.name for cell in cells}) == len(cells)
    assert all(cell.max_time > 0 for cell in cells)
    assert {"paper", "ours"} <= {cell.version for cell in cells}


def test_full_size_stays_within_an_hour():
    """All time limits together leave a twelfth of an hour for data, last fits and measurements."""
    cells = {
        (experiment.runs, cell.name): cell.max_time
        for experiment in EXPERIMENTS.values()
        for cell in experiment.cells(False)
    }
    assert sum(cells.values()) <= 3600 * 11 / 12


def test_random_reservoirs_have_the_expected_rank():
    rows = draw_reservoirs(Draws("paper", 1.0, 30, 40, 400), Context())
    assert [row["reservoir_size"] for row in rows] == list(range(1, 41))
    average, expected = (np.array([row[k] for row in rows]) for k in ("average", "expected"))
    # The standard deviation of the smallest of k ranks is about its mean.
    assert (np.abs(average - expected) < 4 * expected / 20).all()
    assert all(1 <= row["least"] <= row["average"] <= row["largest_rank"] <= 435 for row in rows)


def test_reservoirs_in_the_order_of_the_data_hold_better_pairs():
    rows = draw_reservoirs(Draws("ours", 1.0, 20, 20, 1, 1000), Context(n_jobs=1))
    assert all(row["average"] <= row["expected"] for row in rows)
    assert rows[-1]["average"] == 1


def test_the_page_reports_a_busy_machine(squares, tmp_path):
    experiment, _, _ = squares
    path = tmp_path / "paper.md"
    path.write_text("<!-- begin squares --><!-- end squares -->")
    done = reproduce(experiment, tmp_path / "results")
    cores = done.machines[0]["cores"]
    for load, reported in ((cores, False), (cores + 5.0, True)):
        Page(path, ["squares"]).write(experiment, done._replace(load=load), quick=True)
        assert ("Other work ran on the machine" in path.read_text()) == reported
        assert "small sizes" in path.read_text()
