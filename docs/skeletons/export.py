"""An export of models: copy this file, and attach `write` to the suffix of your files.

In a distribution of your own, in its ``pyproject.toml``:

    [project.entry-points."edgegraft.exports"]
    "names" = "their_plugin:write"

In edgegraft itself: a module of ``edgegraft/formats`` and a line in ``edgegraft/plugins.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgegraft.core.atomic import replace_file
from edgegraft.model import PairwiseMRF


def write(path: Path, model: PairwiseMRF, edge_columns: Any) -> None:
    """Write a model; `edge_columns` has further columns of its edges by name, or is None."""
    replace_file(path, " ".join(model.names))  # a file is whole or absent
