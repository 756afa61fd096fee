"""Formats of other programs; what :mod:`edgegraft.formats` holds, under one name."""

from edgegraft.formats.graphs import (
    from_pgmpy,
    to_networkx,
    to_pgmpy,
    write_gexf,
    write_graphml,
)
from edgegraft.formats.uai import PairwiseFile, model_from_uai, read_uai
from edgegraft.formats.uai_write import (
    format_map,
    format_mar,
    format_pr,
    model_to_uai,
    read_evidence,
    write_evidence,
    write_uai,
)
from edgegraft.model.export import edge_table, export, formats

FORMATS = tuple(formats())

__all__ = [
    "FORMATS",
    "PairwiseFile",
    "edge_table",
    "export",
    "format_map",
    "format_mar",
    "format_pr",
    "from_pgmpy",
    "model_from_uai",
    "model_to_uai",
    "read_evidence",
    "read_uai",
    "to_networkx",
    "to_pgmpy",
    "write_evidence",
    "write_gexf",
    "write_graphml",
    "write_uai",
]
