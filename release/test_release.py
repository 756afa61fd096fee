"""What a release is built and checked with agrees with what the project declares."""

from __future__ import annotations

import re
import tomllib

import pytest

from release import tour
from release.environments import ROOT, SUPPORTED, oldest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_pythons_that_are_checked_are_those_declared():
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert tuple(declared) == SUPPORTED
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert all(f'"{version}"' in workflow for version in SUPPORTED)


def test_every_dependency_is_pinned_to_its_lower_bound():
    pins = oldest()
    lower = {line.split(",")[0].replace(">=", "==") for line in PROJECT["dependencies"]}
    assert lower <= set(pins)
    assert len(pins) == len({pin.split("==")[0] for pin in pins})
    cli = PROJECT["optional-dependencies"]["cli"]
    assert {line.replace(">=", "==") for line in cli} <= set(pins)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_tour_of_an_installed_package_knows_its_interface():
    tour.fits()
    tour.questions()
