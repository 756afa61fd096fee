"""adabmDCA on a GPU, for which it is written; without a GPU, the tool counts as absent."""

from __future__ import annotations

import torch

from benchmarks.rivals.outcome import Codes, Outcome
from benchmarks.rivals.tools.adabmdca import train

if not torch.cuda.is_available():
    raise ImportError("PyTorch finds no GPU on this machine")


def fit_edge(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return train(codes, states, seed, threads, "edgeDCA", "cuda")


def fit_elements(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return train(codes, states, seed, threads, "eaDCA", "cuda")
