"""UAI files as models, and models as UAI files.

A UAI file knows numbers only: variables are called ``x0``, ``x1`` and so on, and their
categories are 0, 1, ... The constant factors of a file go into the first variable's
log-potentials, so that the model's log Z is the file's.
"""

from __future__ import annotations

import os

from edgegraft.errors import ModelError
from edgegraft.io.uai import read_uai
from edgegraft.io.uai_write import write_uai
from edgegraft.model import PairwiseMRF
from edgegraft.table import Schema


def model_from_uai(path: str | os.PathLike[str]) -> PairwiseMRF:
    """Return the model of a UAI file."""
    file = read_uai(path)
    if file.layout.n_variables == 0:
        raise ModelError(f"'{path}' has no variables: there is nothing to model")
    theta = file.theta.copy()
    file.layout.node(theta, 0)[:] += file.log_constant
    return PairwiseMRF(Schema.from_states(file.layout.states), file.layout.edges, theta)


def model_to_uai(path: str | os.PathLike[str], model: PairwiseMRF) -> None:
    """Write a model as a UAI file; names and categories are lost, their order is kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> model = PairwiseMRF.from_potentials({"a": ["no", "yes"]}, {"a": [0.0, 1.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.uai"
    ...     model_to_uai(path, model)
    ...     model_from_uai(path).names
    ('x0',)
    """
    write_uai(path, model.layout, model.theta)
