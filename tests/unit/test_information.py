"""Mutual information against scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import mutual_info_score

from edgegraft.counts import PairCounts, mutual_information
from edgegraft.table import PackedTable
from tests.conftest import random_codes


def test_mutual_information_is_that_of_scikit_learn():
    codes = random_codes([3, 4, 2, 7], 200)
    codes[:, 3] = codes[:, 1] + (codes[:, 0] == 0)
    tables = next(iter(PairCounts(PackedTable.from_codes(codes)).blocks()))
    truth = [mutual_info_score(codes[:, i], codes[:, j]) for i, j in tables.edges]
    np.testing.assert_allclose(mutual_information(tables), truth, atol=1e-12)


def test_a_pair_never_known_together_has_no_information():
    codes = np.array([[0, -1], [-1, 1], [1, -1]])
    tables = PairCounts(PackedTable.from_codes(codes)).pairs([(0, 1)])
    assert mutual_information(tables)[0] == 0
