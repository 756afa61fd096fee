"""The folder of results: one file per cell, written atomically, and the outputs of all cells."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import edgegraft
from edgegraft.core.atomic import replace_file, replacing
from paper.experiment import Cell, Row

_PACKAGES = ("numpy", "scipy", "numba", "matplotlib")


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Return a digest of the source of the library and the experiments."""
    digest = hashlib.sha256()
    for root in (Path(edgegraft.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def describe_machine() -> Row:
    """Return the machine and the versions used, without anything that names a host or a person."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8"))
        processor = found.group(1) if found else processor
    machine: Row = {
        "date": date.today().isoformat(),
        "processor": processor,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "edgegraft": edgegraft.__version__,
        "source": source_digest(),
    }
    return machine | {name: version(name) for name in _PACKAGES}


def _load() -> float:
    """Return the load average of the last minute, including this process; 0 if unknown."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0


class Results:
    """Rows of cells in a folder.

    Parameters
    ----------
    folder : path
        Created when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, runs: str, cell: Cell) -> Path:
        return self.folder / "cells" / runs / f"{cell.name}.json"

    def load(self, runs: str, cell: Cell) -> dict[str, Any] | None:
        """Return the record of a cell, or None if there is no complete record of this cell."""
        path = self._path(runs, cell)
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # damaged: treated as absent
            return None
        same = isinstance(record, dict) and record.get("cell") == cell.values()
        return record if same and record.keys() >= {"rows", "machine", "seconds", "load"} else None

    def save(self, runs: str, cell: Cell, rows: list[Row], seconds: float) -> dict[str, Any]:
        """Write the record of a cell atomically, and return it."""
        record = {
            "cell": cell.values(),
            "rows": rows,
            "seconds": round(seconds, 3),
            "load": _load(),
            "machine": describe_machine(),
        }
        path = self._path(runs, cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(record, indent=1, allow_nan=False) + "\n")
        return record

    def write_table(self, name: str, rows: Sequence[Row]) -> Path:
        """Write ``NAME.csv``; values that a row lacks are empty cells."""
        columns = list(dict.fromkeys(column for row in rows for column in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        path = self.folder / f"{name}.csv"
        replace_file(path, text.getvalue())
        return path

    def write_figure(self, name: str, figure: Any, dpi: int = 110) -> Path:
        """Write ``NAME.png``."""
        path = self.folder / f"{name}.png"
        with replacing(path) as file:
            figure.savefig(file, format="png", dpi=dpi)
        return path

    def write_machines(self, name: str, records: Sequence[dict[str, Any]]) -> Path:
        """Write the distinct machines that ran an experiment's cells to ``machine.json``."""
        path = self.folder / "machine.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        machines = {json.dumps(record["machine"], sort_keys=True): None for record in records}
        known[name] = {
            "seconds": round(sum(record["seconds"] for record in records), 1),
            "largest_load": max(record["load"] for record in records),
            "machines": [json.loads(machine) for machine in machines],
        }
        replace_file(path, json.dumps(known, indent=1) + "\n")
        return path
