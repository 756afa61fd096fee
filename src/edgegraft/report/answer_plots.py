"""Plots of answers: power of a study, and what is read from a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgegraft.report.axes import axes_or_new, require_matplotlib
from edgegraft.report.palette import NEGATIVE, NEUTRAL, POSITIVE
from edgegraft.study.planning import PowerPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_power(found: PowerPlan, ax: Axes | None = None) -> Axes:
    """Draw the expected share of edges found against the number of rows.

    Parameters
    ----------
    found : PowerPlan
    ax : Axes, optional
        By default, those of a new figure.
    """
    require_matplotlib()
    ax = axes_or_new(ax, 6.0, 4.0)
    rows, curve = found.curve["rows"], found.curve
    ax.semilogx(rows, curve["power"], color=POSITIVE, label="by theory")
    if "simulated" in curve:
        ax.plot(rows, curve["simulated"], "o", color=NEGATIVE, label="simulated")
    ax.axhline(found.power, color=NEUTRAL, linewidth=0.8)
    if np.isfinite(found.rows):
        ax.axvline(found.rows, color=NEUTRAL, linewidth=0.8)
        ax.annotate(f"{found.rows:,.0f} rows", (found.rows, 0.02), rotation=90, va="bottom")
    ax.set(xlabel="rows", ylabel="share of edges found", ylim=(0.0, 1.02))
    ax.legend(frameon=False, loc="lower right")
    return ax
