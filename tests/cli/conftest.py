"""One table and one model of it for all commands."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from tests.cli.running import edgegraft, separately

NAMES = ["id", "smoker", "cough", "tired", "age", "city"]


def write_table(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])


def survey_rows(n_rows=800, seed=0):
    """Rows of a chain smoker - cough - tired, of an age that goes with smoking, and of noise."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(n_rows) < 0.4
    cough = np.where(rng.random(n_rows) < 0.8, smoker, rng.random(n_rows) < 0.5)
    tired = np.where(rng.random(n_rows) < 0.8, cough, rng.random(n_rows) < 0.5)
    age = rng.integers(18, 60, n_rows) + 30 * smoker
    city = rng.choice(["Bonn", "Köln, west", "Ulm"], n_rows)
    hidden = rng.random(n_rows) < 0.05
    return [
        [
            f"p{k:04}",
            "yes" if smoker[k] else "no",
            "n/k" if hidden[k] else str(int(cough[k])),
            "true" if tired[k] else "false",
            str(age[k]),
            city[k],
        ]
        for k in range(n_rows)
    ]


@pytest.fixture(scope="session")
def survey(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    write_table(path, survey_rows())
    return path


LEARN = ("--drop", "id", "--missing", "n/k", "--bins", "age=3")


@pytest.fixture(scope="session")
def learned(survey, tmp_path_factory):
    """The run that learned the model, its file and its summary."""
    path = tmp_path_factory.mktemp("learned") / "survey.edgegraft"
    done = separately("learn", survey, "-o", path, *LEARN, "--bootstrap", 20, "--json")
    assert done.returncode == 0, done.stderr
    return done, path, json.loads(done.stdout)


@pytest.fixture(scope="session")
def model(learned):
    return learned[1]


@pytest.fixture
def inside():
    """The command in this process."""
    return edgegraft
