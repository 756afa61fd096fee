"""Formats of other programs."""

from edgegraft.io.exports import FORMATS, edge_table, export
from edgegraft.io.graph_files import from_pgmpy, to_networkx, to_pgmpy, write_gexf, write_graphml
from edgegraft.io.uai import PairwiseFile, model_from_uai, read_uai
from edgegraft.io.uai_answers import (
    format_map,
    format_mar,
    format_pr,
    read_evidence,
    write_evidence,
)
from edgegraft.io.uai_write import model_to_uai, write_uai

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
