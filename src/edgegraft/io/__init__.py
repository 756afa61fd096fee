"""Foreign formats: files that other programs write and read."""

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
    "PairwiseFile",
    "format_map",
    "format_mar",
    "format_pr",
    "model_from_uai",
    "model_to_uai",
    "read_evidence",
    "read_map",
    "read_mar",
    "read_pr",
    "read_uai",
    "write_evidence",
    "write_uai",
]
