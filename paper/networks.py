"""The paper's synthetic data: scale-free networks of five states, with held-out rows."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.datasets import make_scale_free
from edgegraft.table import PackedTable, Schema

HELD_OUT = 20  # one row in 20 is held out: 1,000 of 20,000


class Case(NamedTuple):
    """Training rows, held-out rows, and the true edges if they are known."""

    train: PackedTable
    test: PackedTable
    truth: NDArray[np.int64] | None = None

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.train.schema)


class Network(NamedTuple):
    """Parameters of generated data."""

    n_variables: int
    n_rows: int = 20_000
    seed: int = 0
    burn_in: int = 2000
    thinning: int = 20


def split(codes: NDArray[np.generic], schema: Schema, n_train: int) -> tuple[PackedTable, ...]:
    """Return the first `n_train` rows and the others as tables of one schema."""
    whole = codes.astype(np.int32)
    return tuple(
        PackedTable.from_codes(part, schema) for part in (whole[:n_train], whole[n_train:])
    )


@lru_cache(maxsize=1)
def scale_free(network: Network, n_jobs: int) -> Case:
    """Draw a network and its rows; the last result is cached.

    Examples
    --------
    >>> case = scale_free(Network(12, 400), 1)
    >>> case.train.n_rows, case.test.n_rows, len(case.truth)
    (380, 20, 20)
    """
    data = make_scale_free(
        network.n_variables,
        n_rows=network.n_rows,
        random_state=network.seed,
        burn_in=network.burn_in,
        thinning=network.thinning,
        n_jobs=n_jobs,
    )
    n_train = network.n_rows - network.n_rows // HELD_OUT
    train, test = split(data.X, data.schema, n_train)
    return Case(train, test, data.edges)
