"""Problems of the UAI 2014 competition, compared with their reference answers."""

import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edgegraft.io import read_uai

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "uai"
# name: variables, states, pairs, as listed in the README of the data
INSTANCES = {
    "Grids_11": (100, 2, 200),
    "Grids_12": (100, 2, 180),
    "Segmentation_11": (228, 2, 617),
    "Segmentation_12": (229, 2, 622),
    "Segmentation_15": (232, 2, 631),
    "DBN_11": (40, 2, 400),
    "DBN_14": (40, 2, 400),
    "ObjectDetection_11": (60, 11, 165),
    "Grids_16": (400, 2, 760),
}

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the UAI problems (../shared/data/uai) are not available"
)


@cache
def solutions():
    return json.loads(gzip.decompress((FOLDER / "solutions.json.gz").read_bytes()))


@pytest.mark.parametrize("name", INSTANCES)
def test_the_model_is_read_and_its_best_assignment_has_the_stated_value(name):
    n, states, pairs = INSTANCES[name]
    model, answer = read_uai(FOLDER / f"{name}.uai.gz"), solutions()[name]
    layout = model.layout
    assert layout.n_variables == n == answer["n_vars"]
    assert layout.n_edges == pairs == answer["n_pairs"]
    assert set(layout.states.tolist()) == {states}
    assert bool(np.isneginf(model.theta).any()) == answer["has_zero_entries"]

    x = np.array(answer["exact_map"])
    i, j = layout.edges.T
    cells = np.concatenate(
        (layout.node_offset[:-1] + x, layout.edge_offset[:-1] + x[i] * layout.states[j] + x[j])
    )
    value = model.theta[cells].sum() + model.log_constant
    assert value == pytest.approx(answer["exact_map_ln_value"], rel=1e-10)
