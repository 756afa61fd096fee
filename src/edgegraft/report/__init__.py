"""Pictures of models and searches, and an HTML report of a model.

Names are loaded on first use, and plotting libraries only when something is drawn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.counts.information import data_quality
    from edgegraft.report.answer_plots import (
        plot_adjacency,
        plot_centrality,
        plot_comparison,
        plot_edge_differences,
        plot_edge_intervals,
        plot_power,
        plot_predictability,
        plot_stability,
    )
    from edgegraft.report.model_plots import plot_edge, plot_marginals, plot_trace
    from edgegraft.report.network_plot import plot_network
    from edgegraft.report.page import write_report

__all__ = [
    "data_quality",
    "plot_adjacency",
    "plot_centrality",
    "plot_comparison",
    "plot_edge",
    "plot_edge_differences",
    "plot_edge_intervals",
    "plot_marginals",
    "plot_network",
    "plot_power",
    "plot_predictability",
    "plot_stability",
    "plot_trace",
    "write_report",
]

_HOME = dict.fromkeys(__all__, "report.answer_plots") | {
    "data_quality": "counts.information",
    "plot_edge": "report.model_plots",
    "plot_marginals": "report.model_plots",
    "plot_network": "report.network_plot",
    "plot_trace": "report.model_plots",
    "write_report": "report.page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgegraft.report' has no attribute {name!r}")
    return getattr(importlib.import_module(f"edgegraft.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
