"""Foreign formats: files that other programs write and read."""

from edgegraft.io.edge_table import edge_table
from edgegraft.io.exports import FORMATS, export
from edgegraft.io.graph_files import write_gexf, write_graphml
from edgegraft.io.networkx_graph import to_networkx
from edgegraft.io.pgmpy_network import from_pgmpy, to_pgmpy
from edgegraft.io.uai import PairwiseFile, read_uai
from edgegraft.io.uai_evidence import read_evidence, write_evidence
from edgegraft.io.uai_model import model_from_uai, model_to_uai
from edgegraft.io.uai_results import (
    format_map,
    format_mar,
    format_pr,
    read_map,
    read_mar,
    read_pr,
)
from edgegraft.io.uai_write import write_uai

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
    "read_map",
    "read_mar",
    "read_pr",
    "read_uai",
    "to_networkx",
    "to_pgmpy",
    "write_evidence",
    "write_gexf",
    "write_graphml",
    "write_uai",
]
