"""The documentation: every public name is in the reference, and every page of the gallery runs."""

from __future__ import annotations

import importlib
import re
import runpy
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

import edgegraft

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*/*.py"))
PACKAGES = [name for name in edgegraft.__all__ if isinstance(getattr(edgegraft, name), ModuleType)]


def documented_names() -> set[str]:
    """Return the full names of what the reference describes, in tables or in its text."""
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(edgegraft(?:\.\w+)+)`", text))
    for block in re.findall(r"```{eval-rst}\n(.*?)```", text, re.S):
        module = re.search(r"currentmodule:: (\S+)", block)
        assert module is not None, block
        names |= {f"{module[1]}.{name}" for name in re.findall(r"^   ([\w.]+)$", block, re.M)}
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name_of_a_package(package):
    names = importlib.import_module(f"edgegraft.{package}").__all__
    assert {f"edgegraft.{package}.{name}" for name in names} - documented_names() == set()


def test_the_reference_has_every_name_of_the_package_itself():
    public = {f"edgegraft.{name}" for name in edgegraft.__all__}
    assert public - documented_names() == set()


def test_the_reference_has_no_name_that_does_not_exist():
    assert [name for name in sorted(documented_names()) if resolve(name) is None] == []


def resolve(name: str) -> object:
    """Return what a dotted name stands for, a module between its parts or not; None for nothing."""
    module, _, last = name.rpartition(".")
    with suppress(ModuleNotFoundError):
        return getattr(importlib.import_module(module), last, None) or importlib.import_module(name)
    return None


def test_the_gallery_has_an_order_for_every_script():
    order = runpy.run_path(str(DOCS / "order.py"))
    assert sorted(order["PAGES"]) == sorted(script.stem for script in SCRIPTS)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_of_the_gallery_runs(script, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    if script.stem == "export":
        pytest.importorskip("pgmpy")
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if script.stem == "export":  # pgmpy and what it imports have warnings of their own
                warnings.simplefilter("default")
            runpy.run_path(str(script))
    finally:
        plt.close("all")
