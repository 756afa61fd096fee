"""Pictures of a model, in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from edgegraft.cli.evidence import check_names, parse_given, parse_variables
from edgegraft.core.atomic import replacing
from edgegraft.errors import ModelError
from edgegraft.model import PairwiseMRF

_FORMATS = ("png", "svg", "pdf")


class Picture(NamedTuple):
    """What is to be drawn; see ``edgegraft plot --help``."""

    around: str | None
    top: int | None
    min_strength: float | None
    edge: tuple[str, str] | None
    of: list[str]
    given: list[str]
    seed: int

    def check(self, path: Path) -> None:
        """Refuse what cannot be drawn together, and unknown formats."""
        if path.suffix.lower().removeprefix(".") not in _FORMATS:
            raise ModelError(
                f"'{path}' does not end in the suffix of a picture: use .png, .svg or .pdf"
            )
        network = (self.around, self.top, self.min_strength) != (None, None, None)
        if network + bool(self.edge) + bool(self.of or self.given) > 1:
            raise ModelError(
                "a picture is of the network (--around, --top, --min-strength), of one edge "
                "(--edge) or of probabilities (--of, --given): choose one"
            )


def draw(model: PairwiseMRF, picture: Picture) -> Any:
    """Return the axes of a picture."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # files alone: no window is opened
    from edgegraft.report import plot_edge, plot_marginals, plot_network

    of = parse_variables(model.schema, picture.of, "--of")
    check_names(model.schema, picture.edge or (), "--edge")
    check_names(model.schema, [picture.around] if picture.around else (), "--around")
    if picture.edge:
        return plot_edge(model, *picture.edge)
    if of or picture.given:
        return plot_marginals(model, of or None, parse_given(model.schema, picture.given))
    return plot_network(
        model,
        top=picture.top,
        min_strength=picture.min_strength,
        around=picture.around,
        seed=picture.seed,
    )


def write_picture(ax: Any, path: Path, dpi: int) -> None:
    """Write the figure of some axes in the format of the file's suffix; whole or not at all."""
    with replacing(path) as file:
        ax.figure.savefig(file, format=path.suffix.lower().removeprefix("."), dpi=dpi)
