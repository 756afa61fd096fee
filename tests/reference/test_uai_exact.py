"""Exact inference on problems of the UAI 2014 competition."""

from __future__ import annotations

import gzip
import json
from functools import cache

import numpy as np
import pytest

from edgegraft.inference import ExactEngine
from edgegraft.io import read_uai

INSTANCES = [
    "Grids_11",
    "Grids_12",
    "Segmentation_11",
    "Segmentation_12",
    "Segmentation_15",
    "DBN_11",
    "DBN_14",
    pytest.param("ObjectDetection_11", marks=pytest.mark.slow),
    pytest.param("Grids_16", marks=pytest.mark.slow),
]


@cache
def solutions(path):
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture
def folder(shared_data):
    if not (shared_data / "uai").is_dir():
        pytest.skip("the UAI problems (../shared/data/uai) are not available")
    return shared_data / "uai"


@pytest.mark.parametrize("name", INSTANCES)
def test_partition_function_marginals_and_best_assignment(folder, name):
    answer = solutions(folder / "solutions.json.gz")[name]
    file = read_uai(folder / f"{name}.uai.gz")
    engine = ExactEngine()
    state = engine.init(file.layout)
    marginals, *_ = engine.run(file.theta, state)
    log_z = marginals.log_partition + file.log_constant
    assert log_z == pytest.approx(answer["exact_ln_Z"], rel=1e-8)
    truth = np.concatenate([np.array(p) for p in answer["exact_marginals"]])
    np.testing.assert_allclose(marginals.values[: len(truth)], truth, atol=1e-7)
    for k, (i, j) in enumerate(file.layout.edges):
        table = file.layout.edge(marginals.values, k)
        np.testing.assert_allclose(table.sum(1), file.layout.node(marginals.values, i), atol=1e-9)
        np.testing.assert_allclose(table.sum(0), file.layout.node(marginals.values, j), atol=1e-9)
    _, value, _ = engine.map(file.theta, state)
    assert value + file.log_constant == pytest.approx(answer["exact_map_ln_value"], abs=1e-8)
