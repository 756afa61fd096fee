"""adabmDCA: Boltzmann machines grown edge by edge (edgeDCA) or coupling by coupling (eaDCA).

Rows become an alignment over an alphabet with one letter per state. The program drops repeated
rows, so each distinct row is passed once, with its count as weight.
"""

from __future__ import annotations

import string

import numpy as np
import torch
from adabmDCA.alignment import Alignment
from adabmDCA.api.training import train_model

from benchmarks.rivals.outcome import (
    Codes,
    Outcome,
    Potentials,
    block_norms,
    pairs_of,
    zero_sum,
)


def fit_edge(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return train(codes, states, seed, threads, "edgeDCA")


def fit_elements(codes: Codes, states: Codes, seed: int, threads: int) -> list[Outcome]:
    return train(codes, states, seed, threads, "eaDCA")


def train(
    codes: Codes, states: Codes, seed: int, threads: int, kind: str, device: str = "cpu"
) -> list[Outcome]:
    torch.set_num_threads(threads)
    letters = string.ascii_uppercase[: int(states.max())]
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    sequences = tuple("".join(letters[state] for state in row) for row in rows.tolist())
    alignment = Alignment(tuple(map(str, range(len(rows)))), sequences)
    found = train_model(
        alignment,
        model_type=kind,
        weights_path=counts.astype(np.float64),
        alphabet=letters,
        seed=seed,
        device=device,
    )
    return [outcome(found.model.params, states)]


def outcome(parameters: dict[str, torch.Tensor], states: Codes) -> Outcome:
    """Return ranking (Frobenius norms in zero-sum gauge), cut and model of the couplings."""
    bias = parameters["bias"].double().cpu().numpy()
    couplings = parameters["coupling_matrix"].double().cpu().numpy()
    n, width = bias.shape
    start = np.arange(0, n * width + 1, width)
    flat = couplings.reshape(n * width, n * width)
    adjacent = block_norms(flat, start) > 0.0
    strengths = np.where(adjacent, block_norms(zero_sum(flat, start), start), 0.0)
    sizes = states.tolist()
    nodes = [bias[i, : sizes[i]] for i in range(n)]
    edges = pairs_of(adjacent)
    tables = {(int(i), int(j)): couplings[i, : sizes[i], j, : sizes[j]] for i, j in edges.tolist()}
    return Outcome(strengths, edges, Potentials(nodes, tables))
