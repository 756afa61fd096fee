"""Bin edges and their labels."""

from __future__ import annotations

import numpy as np
import pytest

from edgegraft.ingest.binning import assign_bins, bin_edges, bin_labels


def edges_of(values, n_bins, rule="quantile"):
    distinct, counts = np.unique(np.asarray(values, float), return_counts=True)
    return bin_edges(distinct, counts, n_bins, rule)


class TestEdges:
    def test_quantiles_are_even(self):
        values = np.random.default_rng(0).normal(size=10_000)
        counts = np.bincount(assign_bins(values, edges_of(values, 7)))
        assert len(counts) == 7
        assert np.ptp(counts) <= 1

    def test_ties_leave_fewer_bins(self):
        assert edges_of([0] * 90 + [1, 2, 3] * 3, 5) == (0.0, 1.0, 3.0)
        assert edges_of([0] * 90 + [5], 5) == (0.0, 5.0, 5.0)
        assert edges_of([0, 5], 5) == (0.0, 5.0, 5.0)

    def test_the_more_even_of_two_cuts(self):
        values = np.repeat([0.0, 1.0, 2.0], [49, 40, 11])
        counts = np.bincount(assign_bins(values, edges_of(values, 2)))
        assert counts.tolist() == [49, 51]

    def test_edges_read_well(self):
        assert edges_of([1.2345678, 1.3456789, 3.987654, 4.1], 2)[1] == 3.0
        assert edges_of(range(100), 4) == (0.0, 25.0, 50.0, 75.0, 99.0)

    @pytest.mark.parametrize("rule", ["quantile", "uniform"])
    @pytest.mark.parametrize(
        "values", [[-1e308, 0.0, 1e308], [1.0, np.nextafter(1, 2)], [5e-324, 1e-323, 1.5e-323]]
    )
    def test_extreme_values(self, values, rule):
        edges = edges_of(values, 3, rule)
        assert all(np.isfinite(edges))
        assert edges[0] == values[0]
        assert edges[-1] == values[-1]
        codes = assign_bins(np.array(values), edges)
        assert codes.max() == len(edges) - 2
        assert (np.diff(codes.astype(int)) >= 0).all()
        assert len(set(bin_labels(edges))) == len(edges) - 1


class TestLabels:
    @pytest.mark.parametrize(
        ("edges", "labels"),
        [
            ((0.0, 10.0, 25.0), ("[0, 10)", "[10, 25]")),
            ((1.2345678, 3.0, 4.1), ("[1.2, 3)", "[3, 4.1]")),
            ((1000.25, 2000.5, 9000.75), ("[1000, 2000)", "[2000, 9000]")),
            ((0.0, 1.0, 1.0), ("[0, 1)", "[1, 1]")),
            ((1e-9, 2e-9, 3e-9), ("[1e-09, 2e-09)", "[2e-09, 3e-09]")),
        ],
    )
    def test_are_short(self, edges, labels):
        assert bin_labels(edges) == labels
