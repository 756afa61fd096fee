"""Shared fixtures: random tables with their plain NumPy counts, and the folder of real data."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from edgegraft.table import PackedTable

#: Where the tests of devices compute: PyTorch on the processor, or the GPU (`make test-gpu`).
DEVICE = os.environ.get("EDGEGRAFT_TEST_DEVICE", "torch")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _heed_interrupts() -> None:
    """Restore Ctrl-C, which shells ignore in background jobs and child processes inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it are skipped if it does not exist."""
    if not SHARED.is_dir():
        pytest.skip("the real data (../shared/data) are not available")
    return SHARED


def random_codes(states, n_rows, missing=0.0, seed=0):
    """Return codes of independent columns; -1 is a missing cell, and column 0 is complete."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, s, n_rows) for s in states])
    holes = rng.random(codes.shape) < missing
    holes[:, 0] = False
    codes[holes] = -1
    return codes


def count_pair(codes, states, i, j, weights=None):
    """Return the table of a pair by `np.bincount`, over the rows in which both cells are known."""
    known = (codes[:, i] >= 0) & (codes[:, j] >= 0)
    cells = codes[known, i] * states[j] + codes[known, j]
    kept = None if weights is None else weights[known]
    return np.bincount(cells, kept, states[i] * states[j]).reshape(states[i], states[j])


class CutTable:
    """Return a table as a store whose blocks are read one by one."""

    def __init__(self, table, rows=512):
        self.table = table
        self.schema, self.n_rows = table.schema, table.n_rows
        self.starts = np.append(np.arange(0, table.n_rows, rows), table.n_rows)

    def block(self, k):
        first, stop = self.starts[k : k + 2]
        return PackedTable.from_codes(self.table.codes()[first:stop], self.schema)
