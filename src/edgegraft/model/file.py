"""Model files: safetensors with a sealed JSON header, and no code to run in them.

    tensors    theta (F64), edges (I64, shape (m, 2)), column.NAME for every edge column
    metadata   "edgegraft": format, version and, under a checksum, the schema, the caller's
               details, and the type, shape and checksum of every tensor

A file is written beside its destination and renamed, and the same model gives the same bytes.
Whatever a file claims is checked before it is used: safetensors checks the lengths, the header
its own seal and those of the tensors, the model its edges and potentials. This module imports
neither pyarrow nor numba, so that asking what a file holds takes no time.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialise

from edgegraft import __version__
from edgegraft.errors import ModelError, ModelFileError
from edgegraft.model.edge_columns import Columns
from edgegraft.model.file_header import HeaderError, Json, damaged, foreign, seal, unseal

if TYPE_CHECKING:
    from edgegraft.table import Schema

KEY = "edgegraft"
_COLUMN = "column."
_MAX_HEADER = 100_000_000  # bytes; safetensors reads no more
_TYPES = {"F64": np.dtype(np.float64), "I64": np.dtype(np.int64), "BOOL": np.dtype(np.bool_)}


@dataclass(frozen=True, eq=False)
class StoredModel:
    """What a model file holds.

    Attributes
    ----------
    details : dict
        What the model was saved with: settings, provenance, certificate.
    edge_columns : dict of str to array
        One value for each edge: p-values, q-values, frequencies.
    names : tuple of str
        Names of the variables.
    n_states : tuple of int
    edges : array of int, shape (m, 2)
        Pairs of column numbers.
    theta : array of float
        The log-potentials.
    schema_json : str
        Names and categories, for :meth:`Schema.from_json`.
    written_by : str
        The release that wrote the file.
    """

    details: Json
    edge_columns: Columns
    names: tuple[str, ...]
    n_states: tuple[int, ...]
    edges: NDArray[np.int64]
    theta: NDArray[np.float64]
    schema_json: str
    written_by: str


def write_model_file(
    path: str | os.PathLike[str],
    schema: Schema,
    edges: NDArray[np.int64],
    theta: NDArray[np.float64],
    details: Json,
    edge_columns: Columns,
) -> None:
    """Write a model, its checked details and its checked columns, in one step."""
    from edgegraft.core.atomic import replacing  # brings in what reading does not need

    tensors: Columns = {"edges": edges, "theta": theta}
    tensors |= {_COLUMN + name: values for name, values in edge_columns.items()}
    content = {
        "schema": json.loads(schema.to_json()),
        "details": details,
        "tensors": {name: _description(values) for name, values in tensors.items()},
        "written_by": f"edgegraft {__version__}",
    }
    # One entry of metadata: safetensors writes several in an order that changes from run to run.
    encoded = serialise(tensors, {KEY: seal(content)})
    header = int.from_bytes(encoded[:8], "little")
    if header > _MAX_HEADER:
        raise ModelError(
            f"names, categories and details take {header:,} bytes, and a model file has room for "
            f"{_MAX_HEADER:,}; shorten the categories or save fewer details"
        )
    with replacing(path) as file:
        file.write(encoded)


def read_details(path: str | os.PathLike[str]) -> StoredModel:
    """Return what a model file holds, without building the model.

    Parameters
    ----------
    path : path
        Of a file that :meth:`PairwiseMRF.save` wrote.

    Raises
    ------
    ModelFileError
        The file is no model, is truncated or damaged, or a newer release wrote it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from edgegraft import PairwiseMRF, read_details
    >>> model = PairwiseMRF.from_potentials({"smoker": ["no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "survey.edgegraft"
    ...     model.save(path, details={"settings": {"penalty": 0.01}})
    ...     read_details(path).details
    {'settings': {'penalty': 0.01}}
    """
    with Path(path).open("rb"):
        pass  # so that a folder, or a file that may not be read, is what Python says it is
    try:
        with safe_open(path, "numpy") as file:
            text = (file.metadata() or {}).get(KEY)
            if text is None:
                raise foreign("it is a safetensors file of something else")
            content = unseal(text)
            return _stored(content, _read_tensors(file, content.get("tensors")))
    except HeaderError as error:
        raise ModelFileError(f"'{path}' {error}") from None
    except SafetensorError as error:
        reason = ascii(str(error))[1:-1][:200]
        raise ModelFileError(
            f"'{path}' ({Path(path).stat().st_size:,} bytes) is of another kind, truncated or "
            f"damaged: {reason}; a model file is what model.save writes"
        ) from None


def _read_tensors(file: Any, described: Any) -> Columns:
    """Return the tensors, each of them what the header says that it is."""
    if not isinstance(described, dict) or set(described) != set(file.keys()):
        raise damaged("its tensors are not those that its header lists")
    tensors: Columns = {}
    for name, description in described.items():
        if file.get_slice(name).get_dtype() not in _TYPES:
            raise damaged(f"tensor {name!r} has a type that no model has")
        values = file.get_tensor(name)
        if _description(values) != description:
            raise damaged(f"the type, shape or checksum of tensor {name!r} does not match")
        values.flags.writeable = False
        tensors[name] = values
    return tensors


def _stored(content: Json, tensors: Columns) -> StoredModel:
    """Return the content of a file as what it claims to be, refusing what does not fit."""
    try:
        edges, theta = tensors.pop("edges"), tensors.pop("theta")
        columns = {name.removeprefix(_COLUMN): values for name, values in tensors.items()}
        variables = content["schema"]["variables"]
        stored = StoredModel(
            details=dict(content["details"]),
            edge_columns=columns,
            names=tuple(str(variable["name"]) for variable in variables),
            n_states=tuple(len(variable["categories"]) for variable in variables),
            edges=edges,
            theta=theta,
            schema_json=json.dumps(content["schema"]),
            written_by=str(content["written_by"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(f"its header lacks a part ({error!r:.80})") from None
    if edges.dtype != np.int64 or edges.ndim != 2 or edges.shape[1] != 2:
        raise damaged("its edges are not pairs of integers")
    if theta.dtype != np.float64 or theta.ndim != 1:
        raise damaged("its log-potentials are not one vector of doubles")
    if ((edges < 0) | (edges >= len(stored.names))).any():
        raise damaged("an edge names a variable that does not exist")
    if any(values.shape != (len(edges),) for values in columns.values()):
        raise damaged("an edge column has not one value for each edge")
    return stored


def _description(values: NDArray[Any]) -> Json:
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    kind = next(name for name, dtype in _TYPES.items() if dtype == values.dtype)
    return {
        "dtype": kind,
        "shape": list(values.shape),
        "sha256": hashlib.sha256(little.tobytes()).hexdigest(),
    }
