"""A command: copy this file, and attach the function to a name.

In a distribution of your own, in its ``pyproject.toml``:

    [project.entry-points."edgegraft.commands"]
    "edges" = "their_plugin:edges"

In edgegraft itself: a module of ``edgegraft/cli`` and a line in ``edgegraft/plugins.py``.
"""

from __future__ import annotations

from pathlib import Path

import edgegraft


def edges(model: Path, strongest: int = 3) -> None:
    """Print the strongest edges of a model: parameters are what typer makes options of."""
    loaded = edgegraft.load(model)
    strength = loaded.edge_strengths()
    for k in (-strength).argsort()[:strongest]:
        i, j = loaded.edges[k]
        print(f"{loaded.names[i]} - {loaded.names[j]} {strength[k]:.2f}")
