"""Plug-in points: every wing is found, and the skeletons, installed elsewhere, add to them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgegraft import pack, plugins
from edgegraft.errors import DataError
from edgegraft.io import export
from edgegraft.model import PairwiseMRF
from edgegraft.model.export import formats

SKELETONS = Path(__file__).resolve().parents[2] / "docs" / "skeletons"
ENTRY_POINTS = """
[edgegraft.readers]
.words = their_reader:read

[edgegraft.exports]
names = their_export:write
uai = their_export:write

[edgegraft.commands]
edges = their_command:edges
"""


CORE_ALONE = """
import sys

for wing in ("report", "study", "formats", "scale", "io"):
    sys.modules[f"edgegraft.{wing}"] = None

import numpy as np
import edgegraft as eg
from edgegraft.model.export import export

X = np.repeat(np.random.default_rng(0).integers(0, 2, (300, 1)), 3, axis=1)
np.savetxt("rows.csv", X, "%d", ",", header="a,b,c", comments="")
network = eg.GraftedMRF(random_state=0).fit("rows.csv")
network.model_.save("model.edgegraft")
export(eg.load("model.edgegraft"), "edges.csv")
assert network.model_.n_edges and network.predict_proba("rows.csv", "a").shape == (300, 2)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Another distribution with plug-ins; the folder that it is in."""
    folder = tmp_path / "site"
    about = folder / "their_plugin-1.0.dist-info"
    about.mkdir(parents=True)
    for name in ("reader", "export", "command"):
        (folder / f"their_{name}.py").write_text((SKELETONS / f"{name}.py").read_text())
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder))
    plugins._installed.cache_clear()
    yield folder
    plugins._installed.cache_clear()
    for name in ("reader", "export", "command"):
        sys.modules.pop(f"their_{name}", None)


@pytest.mark.parametrize("point", plugins._WINGS)
def test_every_wing_is_found_where_the_table_says(point):
    for name in plugins.names(point):
        assert callable(plugins.find(point, name)), name


def test_what_nobody_has_is_not_found(tmp_path):
    assert plugins.find("readers", ".words") is None
    (tmp_path / "rows.words").write_text("x y x")
    with pytest.raises(DataError, match="unknown extension"):
        pack(tmp_path / "rows.words")


def test_another_distribution_adds_a_reader(tmp_path, installed):
    (tmp_path / "rows.words").write_text("x y x")
    assert pack(tmp_path / "rows.words").codes()[:, 0].tolist() == [0, 1, 0]
    (tmp_path / "many").mkdir()
    for k in range(2):
        (tmp_path / "many" / f"{k}.words").write_text("x y x")
    assert pack(tmp_path / "many").n_rows == 6


def test_another_distribution_adds_an_export_but_replaces_none(tmp_path, installed):
    model = PairwiseMRF.from_potentials({"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): np.eye(2)})
    assert formats() == ["csv", "gexf", "graphml", "names", "parquet", "uai"]
    export(model, tmp_path / "m.names")
    assert (tmp_path / "m.names").read_text() == "a b"
    export(model, tmp_path / "m.uai")
    assert (tmp_path / "m.uai").read_text().startswith("MARKOV")


def test_another_distribution_adds_a_command(tmp_path, installed, monkeypatch):
    model = PairwiseMRF.from_potentials({"a": [0, 1], "b": [0, 1]}, edges={("a", "b"): np.eye(2)})
    model.save(tmp_path / "m.edgegraft")
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=":")
    done = subprocess.run(
        [sys.executable, "-m", "edgegraft", "edges", str(tmp_path / "m.edgegraft")],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "a - b 1.00\n"


def test_the_core_works_without_the_wings(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CORE_ALONE], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
