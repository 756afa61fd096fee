"""Strata and clusters: the variance of totals, and edges that clusters alone would make."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft import GraftedMRF
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.errors import DataError


def clustered(rng, n_clusters=40, size=50):
    """Draw independent columns whose rates differ between clusters, and a copy with noise."""
    cluster = np.repeat(np.arange(n_clusters), size)
    X = np.empty((len(cluster), 6), int)
    for v in range(5):
        rates = rng.dirichlet(np.ones(3), n_clusters).cumsum(axis=1)
        X[:, v] = (rng.random(len(cluster))[:, None] > rates[cluster]).sum(axis=1)
    X[:, 5] = np.where(rng.random(len(cluster)) < 0.5, X[:, 0], rng.integers(0, 3, len(cluster)))
    return X, cluster


def test_variance_is_that_of_cluster_sums_within_strata():
    rng = np.random.default_rng(0)
    strata, clusters = rng.integers(0, 3, 60), rng.integers(0, 5, 60)
    values = rng.normal(size=(60, 2))
    design = SurveyDesign.of(60, strata, clusters)
    expected = np.zeros((2, 2))
    for h in range(3):
        names = np.unique(clusters[strata == h])
        sums = [values[(strata == h) & (clusters == c)].sum(axis=0) for c in names]
        expected += len(names) * np.cov(np.array(sums).T)
    found = design.variance(design.sums(values[:25], 0) + design.sums(values[25:], 25))
    np.testing.assert_allclose(found, expected)
    assert design.freedom == len(design.stratum) - 3


@pytest.mark.parametrize("kinds", ["nominal", "ordinal"])
def test_clusters_alone_make_no_edges(kinds):
    X, cluster = clustered(np.random.default_rng(1))
    names = [f"x{v}" for v in range(6)]
    table = dict(zip(names, X.T, strict=True))
    model = GraftedMRF(kinds=dict.fromkeys(names, kinds), random_state=0)
    assert len(model.fit(table).edges_) > 1
    edges = model.fit(table, clusters=cluster).edges_
    assert edges.tolist() == [[0, 5]]


def test_strata_of_independent_rows_change_little():
    rng = np.random.default_rng(0)
    X, _ = clustered(rng, 2000, 1)
    plain = GraftedMRF(kinds="nominal", random_state=0).fit(X)
    strata = GraftedMRF(kinds="nominal", random_state=0).fit(X, strata=rng.integers(0, 4, 2000))
    assert plain.edges_.tolist() == strata.edges_.tolist()


def test_designs_that_cannot_be_used_are_refused():
    with pytest.raises(DataError, match="clusters in as many strata"):
        SurveyDesign.of(3, strata=["a", "b", "c"])
    with pytest.raises(DataError, match="one label per row"):
        SurveyDesign.of(3, clusters=["a", "b"])
    with pytest.raises(DataError, match="row 1"):
        SurveyDesign.of(3, clusters=["a", None, "b"])
