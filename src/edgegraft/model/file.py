"""Model files: a container (see :mod:`edgegraft.core.container`) with no code to run in it.

    arrays     theta (F64), edges (I64, shape (m, 2)), column.NAME for every edge column
    content    the schema, the caller's details, the names of the edge columns in their order

Whatever a file claims is checked before it is used: the container checks lengths and checksums,
the model its edges and potentials. Reading imports neither pyarrow nor numba, so that asking what
a file holds takes no time.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft import __version__
from edgegraft.core.container import ContainerFormat, Contents, read_container, write_container
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import FileFormatError, ModelError, ModelFileError

if TYPE_CHECKING:
    from edgegraft.model.potentials import NamedPotentials

Json = dict[str, Any]
Columns = dict[str, NDArray[Any]]

MODEL_FILE = ContainerFormat(
    name="edgegraft-model",
    version=1,
    noun="model file",
    source="`edgegraft learn` and, in Python, model.save write one",
    remedy="fetch it again or save the model again",
    error=ModelFileError,
)
_COLUMN = "column."
_MAX_DEPTH = 32  # of what callers hand in; far below what any JSON reader refuses
_KEPT_AS: dict[str, Any] = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}


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
    edges: Edges
    theta: Floats
    schema_json: str
    written_by: str

    @classmethod
    def of(
        cls,
        model: NamedPotentials,
        details: Mapping[str, Any] | None = None,
        edge_columns: Mapping[str, ArrayLike] | None = None,
    ) -> StoredModel:
        """Return what a model's file is to hold; columns are added to those that the model has."""
        columns = {**model.edge_columns, **(edge_columns or {})}
        return cls(
            details=_plain(details or {}, "details"),
            edge_columns=check_edge_columns(columns, model.n_edges),
            names=model.names,
            n_states=tuple(model.schema.n_states.tolist()),
            edges=model.edges,
            theta=model.theta,
            schema_json=model.schema.to_json(),
            written_by=f"edgegraft {__version__}",
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file in one step."""
        content = {
            "schema": json.loads(self.schema_json),
            "details": self.details,
            "edge_columns": list(self.edge_columns),
        }
        arrays = {_COLUMN + name: values for name, values in self.edge_columns.items()}
        arrays |= {"edges": self.edges, "theta": self.theta}
        try:
            write_container(path, MODEL_FILE, content, arrays)
        except ValueError as error:  # the header is too long
            raise ModelError(str(error)) from None


def read_details(path: str | os.PathLike[str]) -> StoredModel:
    """Return what a model file holds, without building the model.

    A file that is not a model, is truncated or damaged, or was written by a newer release is a
    ModelFileError.

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
    return _stored(read_container(path, MODEL_FILE), lambda why: MODEL_FILE.damaged(path, why))


def _stored(found: Contents, damaged: Callable[[str], FileFormatError]) -> StoredModel:
    """Return the content of a file as what it claims to be, refusing what does not fit."""
    content, arrays = found.content, found.arrays
    try:
        edges, theta = arrays.pop("edges"), arrays.pop("theta")
        variables = content["schema"]["variables"]
        stored = StoredModel(
            details=dict(content["details"]),
            edge_columns={name: arrays.pop(_COLUMN + name) for name in content["edge_columns"]},
            names=tuple(str(variable["name"]) for variable in variables),
            n_states=tuple(len(variable["categories"]) for variable in variables),
            edges=edges,
            theta=theta,
            schema_json=json.dumps(content["schema"]),
            written_by=found.written_by,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(f"its header lacks a part ({error!r:.80})") from None
    for fault, why in (
        (arrays, "its header does not list all edge columns"),
        (edges.dtype != np.int64 or edges.shape[1:] != (2,), "its edges are not pairs of integers"),
        (theta.dtype != np.float64 or theta.ndim != 1, "its theta is not one vector of doubles"),
    ):
        if fault:
            raise damaged(why)
    if ((edges < 0) | (edges >= len(stored.names))).any():
        raise damaged("an edge names a variable that does not exist")
    if any(values.shape != (len(edges),) for values in stored.edge_columns.values()):
        raise damaged("an edge column has not one value for each edge")
    return stored


def check_edge_columns(columns: Mapping[str, ArrayLike] | None, n_edges: int) -> Columns:
    """Return columns as arrays of bool, int64 or float64, each with one value for every edge.

    >>> check_edge_columns({"q_value": [0.01, 0.2]}, 2)
    {'q_value': array([0.01, 0.2 ])}
    """
    checked: Columns = {}
    for name, values in (columns or {}).items():
        # A lone half of a surrogate pair cannot be written.
        if not isinstance(name, str) or not name.encode("utf-8", "ignore").decode() == name != "":
            raise ModelError(f"an edge column needs a name in text, found {name!r}")
        array = np.asarray(values)
        if array.shape != (n_edges,):
            raise ModelError(
                f"edge column {name!r} has shape {array.shape}: one value for each of the "
                f"{n_edges} edges was expected"
            )
        kind = _KEPT_AS.get(array.dtype.kind)
        if kind is None or array.dtype.itemsize > 8:
            raise ModelError(
                f"edge column {name!r} has the type {array.dtype}: it must hold numbers or booleans"
            )
        kept: NDArray[Any] = np.array(array, kind)
        if array.dtype.kind == "u" and (kept < 0).any():
            raise ModelError(f"edge column {name!r} holds {array.max()}, beyond 64-bit integers")
        kept.flags.writeable = False
        checked[name] = kept
    return checked


def _plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return `value` in JSON's own types, refusing what they cannot hold.

    NumPy's numbers and arrays become Python's, tuples become lists. `where` names the value in
    messages.
    """
    if depth > _MAX_DEPTH:
        raise ModelError(f"{where} is nested more than {_MAX_DEPTH} deep")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelError(f"{where} is {value}, which JSON cannot hold; leave it out or use None")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ModelError(f"{where} has the key {key!r}: keys must be strings")
        return {key: _plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{k}]", depth + 1) for k, item in enumerate(value)]
    raise ModelError(
        f"{where} is a {type(value).__name__}: use numbers, strings, None, and lists and dicts "
        "of them"
    )
