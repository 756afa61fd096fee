"""Plug-in points: what wings, and other distributions, attach to the core by name.

A plug-in is found by a name at a point and imported when it is used, so that the core names no
wing. The table below has the wings of this distribution. Others declare entry points of the group
``edgegraft.`` and the point, for instance

    [project.entry-points."edgegraft.readers"]
    ".dta" = "my_package:read_stata"

=========== ============================ ===========================================================
point       name                         what it is
=========== ============================ ===========================================================
readers     suffix of a file             ``read(path, options)`` -> an Arrow table or a `Source`
exports     suffix without its dot       ``write(path, model, edge_columns)``
pages       "report", "network"          what ``learn --report`` and ``demo`` write of a model
rows        library of a frame, "disk"   ``open_rows(X, schema, options, weights)`` -> `OpenRows`
backends    value of ``device=``          ``find(device)`` -> a `Backend`, or None for the processor
commands    name of a command            a function whose parameters typer turns into options
=========== ============================ ===========================================================
"""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import Any

_WINGS: dict[str, dict[str, str]] = {
    "readers": {
        ".xlsx": "edgegraft.formats.tables:read_xlsx",
        ".sav": "edgegraft.formats.tables:read_sav",
        ".bed": "edgegraft.formats.genotypes:read_bed",
        ".vcf": "edgegraft.formats.genotypes:read_vcf",
        ".vcf.gz": "edgegraft.formats.genotypes:read_vcf",
        ".bcf": "edgegraft.formats.genotypes:read_vcf",
    },
    "exports": {
        "gexf": "edgegraft.formats.graphs:write_gexf",
        "graphml": "edgegraft.formats.graphs:write_graphml",
        "uai": "edgegraft.formats.uai_write:model_to_uai",
    },
    "pages": {
        "report": "edgegraft.report:write_report",
        "network": "edgegraft.report:plot_network",
    },
    "rows": {
        "dask": "edgegraft.scale.cluster:open_rows",
        "disk": "edgegraft.scale.disk:open_rows",
    },
    "backends": dict.fromkeys(("auto", "cuda", "torch"), "edgegraft.device:find"),
    "commands": {
        "report": "edgegraft.cli.model_commands:report",
        "plot": "edgegraft.cli.model_commands:plot",
        "explore": "edgegraft.cli.model_commands:explore",
        "compare": "edgegraft.cli.study_commands:compare",
        "read": "edgegraft.cli.study_commands:read",
        "plan": "edgegraft.cli.study_commands:plan",
        "lag": "edgegraft.cli.data_commands:lag",
        "infer": "edgegraft.cli.query_commands:infer",
    },
}


def names(point: str) -> list[str]:
    """Return the names at a plug-in point: of the wings first, then of other distributions.

    >>> "compare" in names("commands")
    True
    """
    wings = _WINGS[point]
    return [*wings, *sorted(_installed(point).keys() - wings.keys())]


def find(point: str, name: str) -> Any:
    """Return the plug-in of a name, imported now; None if there is none.

    A wing is found without a look at what is installed, and cannot be replaced.

    >>> find("readers", ".unknown") is None
    True
    """
    place = _WINGS[point].get(name) or _installed(point).get(name)
    return None if place is None else resolve_name(place)


@cache
def _installed(point: str) -> dict[str, str]:
    """Return the entry points that distributions have declared for a point."""
    from importlib.metadata import entry_points  # takes longer to load than this module's users

    return {each.name: each.value for each in entry_points(group=f"edgegraft.{point}")}
