"""The file of a run: the results of its stages, so that a resumed run repeats at most one of them.

A run is a sequence of stages: searches over samples and over all rows, decisions about edges, the
last fit, shares, effects, scores, the model for prediction, its refit, replicates. A stage is
determined by the rows, the plan and the stages before it. When it ends, its result (arrays and JSON
values, no code) is written; a resumed run reads the results that are there, and begins the first
stage that has none. Everything that follows a stage is made of its result, whether that was read
or just worked out, so a run that was killed ends with the same bits as any other.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.config import Plan
from edgegraft.core.container import ContainerFormat, read_container, write_container
from edgegraft.core.types import Tree
from edgegraft.errors import DataError, FileFormatError, MemoryBudgetError, SettingError
from edgegraft.grafting.events import Event
from edgegraft.grafting.state import SearchState
from edgegraft.table import Schema
from edgegraft.table.blocks import Rows, TableRows

FORMAT = ContainerFormat(
    "edgegraft-checkpoint",
    9,
    "checkpoint",
    "give the file that was written with checkpoint=",
    "begin the search anew",
)
BUDGETS = ("max_time", "max_edges")  # that a resumed search may have more of
_SAID = (DataError, MemoryBudgetError, SettingError)  # of the rows and the plan
_FORGED = (KeyError, TypeError, ValueError, IndexError, AttributeError)  # by no release


class StageFile:
    """Results of stages by their names; without a path nothing is kept.

    >>> StageFile().stage("sum", lambda: {"value": 1 + 2})
    {'value': 3}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._identity: Tree = {}
        self._results: dict[str, Tree] = {}
        self._there = False  # whether the file belongs to this run

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the file of a run that is to be resumed."""
        header, arrays, version, _ = read_container(path, FORMAT)
        if version != FORMAT.version:
            raise FileFormatError(
                f"'{path}' has checkpoint version {version}, and this release reads "
                f"{FORMAT.version}: begin the search anew"
            )
        file = cls(path)
        file._there = True
        with file.proper():
            file._identity = dict(header["identity"])
            # A file's arrays are read-only, for which kernels would be compiled once more.
            file._results = dict(_unpack(header["results"], deepcopy(arrays)))
        return file

    @property
    def plan(self) -> Plan:
        """The plan of the run that wrote the file, with its budgets."""
        return Plan(**self._identity["plan"], **self._identity["budgets"])

    @contextmanager
    def proper(self) -> Iterator[None]:
        """Turn what a forged result causes inside of the block into an error of the file."""
        try:
            yield
        except _SAID:
            raise
        except _FORGED as error:
            raise FORMAT.damaged(self.path, f"its parts do not fit ({error!s:.80})") from error

    def begin(
        self, plan: Plan, rows: Rows, design: SurveyDesign | None = None, n_sample: int = 0
    ) -> None:
        """Begin a run; one that is resumed must have the rows and the plan of the file."""
        if self.path is None:
            return
        identity = identity_of(plan, rows, design, n_sample)
        if self._identity:
            _check(self.path, self._identity, identity)
        self._identity = identity

    def on_event(self, event: Event, state: SearchState) -> None:
        """Write the file before the first stage has ended, so that a wrong path is an error."""
        if self.path is not None and event.kind == "start" and not self._there:
            self._write()

    def stage(
        self, name: str, make: Callable[[], Tree], complete: Callable[[], bool] = lambda: True
    ) -> Tree:
        """Return the result of a stage, read or worked out; one that is not `complete` is not kept.

        Parameters
        ----------
        name : str
        make : callable
            Works it out.
        complete : callable, optional
            Asked when it has been worked out.
        """
        result = self.find(name)
        if result is None:
            result = make()
            if complete():
                self.put(name, result)
        return result

    def find(self, name: str) -> Tree | None:
        """Return the result of a stage, None if it has not ended."""
        return self._results.get(name)

    def put(self, name: str, result: Tree) -> None:
        """Keep the result of a stage."""
        if self.path is None:
            return
        self._results[name] = result
        self._write_later()

    def forget(self, name: str) -> None:
        """Forget a stage and those that came after it."""
        names = list(self._results)
        self._results = {kept: self._results[kept] for kept in names[: names.index(name)]}

    def _write_later(self) -> None:
        try:
            self._write()
        except OSError as error:
            warnings.warn(
                f"a checkpoint could not be written to '{self.path}' ({error}): the "
                "search continues, and the last file, if there is one, is kept",
                RuntimeWarning,
                stacklevel=4,
            )

    def _write(self) -> None:
        assert self.path is not None
        arrays = dict[str, NDArray[Any]]()
        content = {"identity": self._identity, "results": _pack(self._results, arrays)}
        write_container(self.path, FORMAT, content, arrays)
        self._there = True


def identity_of(
    plan: Plan, rows: Rows, design: SurveyDesign | None = None, n_sample: int = 0
) -> Tree:
    """Return what determines a run in JSON values: its rows, all of their cells, and its plan."""
    cells = hashlib.sha256()
    for digest in rows.map(_digest):
        cells.update(digest)
    for part in design or ():
        cells.update(np.ascontiguousarray(part).data)
    settings = json.loads(json.dumps(plan.as_dict()))
    return {
        "schema": rows.schema.to_json(),
        "rows": cells.hexdigest(),
        "sample_rows": 0 if isinstance(rows, TableRows) else int(n_sample),
        "budgets": {name: settings.pop(name) for name in BUDGETS},
        "plan": settings,
    }


def _digest(block: TableRows) -> bytes:
    """Return a hash of all cells and weights of a block of rows."""
    found = hashlib.sha256()
    for column in block.table.cells[:, : block.table.n_rows]:
        found.update(np.ascontiguousarray(column).data)
    if block.weights is not None:
        found.update(np.ascontiguousarray(block.weights).data)
    return found.digest()


def _check(path: Path, there: Tree, here: Tree) -> None:
    """Refuse to resume a run of anything else."""
    plans = [identity.get("plan", {}) for identity in (there, here)]
    settings = [name for name in plans[1] if plans[0].get(name) != plans[1][name]]
    named = ", ".join(f"{name} is {plans[0].get(name)!r} there" for name in settings)
    for name, difference in (
        ("schema", "other data: names or categories differ"),
        ("rows", "other rows, weights or design: cells differ"),
        ("sample_rows", f"another sample: sample_rows is {there.get('sample_rows')} there"),
        ("plan", f"another plan: {named}"),
    ):
        same = there.get(name) == here[name]
        if name == "schema":  # as text it has what does not make another table
            same = Schema.from_json(there[name]) == Schema.from_json(here[name])
        if not same:
            raise FileFormatError(f"'{path}' is a checkpoint of {difference}")


def _pack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return a tree in JSON values, with its arrays put aside by their numbers."""
    if isinstance(value, np.ndarray):
        arrays[f"{len(arrays)}"] = value
        return {"array": f"{len(arrays) - 1}"}
    if isinstance(value, dict):
        return {name: _pack(part, arrays) for name, part in value.items()}
    return value


def _unpack(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    return {name: _unpack(part, arrays) for name, part in value.items()}
