"""adabmDCA on a GPU, which it is written for; where PyTorch sees none, the tool is absent."""

from __future__ import annotations

import torch

from benchmarks.rivals.outcome import Codes, Outcome
from benchmarks.rivals.tools.adabmdca import train

if not torch.cuda.is_available():
    raise ImportError("PyTorch sees no GPU on this machine")


def fit_edge(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return train(codes, states, seed, threads, "edgeDCA", "cuda")


def fit_elements(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return train(codes, states, seed, threads, "eaDCA", "cuda")
