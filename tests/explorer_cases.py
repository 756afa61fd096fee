"""Models for the explorer, and a client that sends the requests of its page."""

from __future__ import annotations

import numpy as np

from edgegraft.model import PairwiseMRF
from edgegraft.report.explorer_app import build_app

TOKEN, PORT = "secret-token", 8051
HOST = f"127.0.0.1:{PORT}"
HOSTILE = "<script>alert('x')</script>"
BIG = 2**60 + 1  # not exactly representable in JavaScript


def grid_model(side=4, seed=0):
    """Return a grid of three-state variables with categories of several types."""
    rng = np.random.default_rng(seed)
    kinds = [["low", "mid", "high"], [0, 1, BIG], [0.5, 1.0, 2.5]]
    names = [f"v{i}" for i in range(side * side)]
    pairs = [(i, i + 1) for i in range(side * side) if (i + 1) % side]
    pairs += [(i, i + side) for i in range(side * (side - 1))]
    return PairwiseMRF.from_potentials(
        {name: kinds[i % 3] for i, name in enumerate(names)},
        {name: rng.normal(size=3) for name in names},
        {(names[i], names[j]): rng.normal(0.0, 0.8, (3, 3)) for i, j in pairs},
    )


def hostile_model():
    return PairwiseMRF.from_potentials(
        {
            HOSTILE: ["<b>yes</b>", "no&amp;", ""],
            'a="b"&c#d': ["x,y", '"q"'],
            "plain": [True, False],
        },
        edges={(HOSTILE, 'a="b"&c#d'): [[1, 0], [0, 2], [0, 0]], (HOSTILE, "plain"): np.eye(3, 2)},
    )


def forbidding_model():
    table = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    return PairwiseMRF.from_potentials(
        {"a": ["no", "yes"], "b": ["no", "yes"], "c": ["no", "yes"], "alone": [0, 1]},
        edges={("a", "b"): table, ("b", "c"): table},
    )


def client_of(explorer):
    return build_app(explorer, TOKEN, PORT).test_client()


def get(client, path, **kwargs):
    return client.get(f"/{TOKEN}/{path}", headers={"Host": HOST}, **kwargs)


def ask(client, **question):
    return client.post(f"/{TOKEN}/marginals", json=question, headers={"Host": HOST})
