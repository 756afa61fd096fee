"""Binary density-estimation datasets (DEBD), with their published splits.

The published form of dataset NAME is ``NAME.train.data``, ``NAME.valid.data`` and
``NAME.test.data``: one row per line, with cells 0 or 1, separated by commas. The file
``debd.sha256`` beside this one has the fingerprints of their decoded content.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegraft.datasets.source import Dataset, PathName, fetch, require_content
from edgegraft.errors import FileFormatError
from edgegraft.table import Schema

_URL = (
    "https://raw.githubusercontent.com/UCLA-StarAI/Density-Estimation-Datasets/"
    "37d53c1a8ba4/datasets/{name}/{name}.{split}.data"
)
_SPLITS = ("train", "valid", "test")

#: Data sets whose row order is not fixed: their fingerprint is that of the sorted rows.
_ROWS_SORTED = {("msweb", "train")}


def load_debd(name: str, path: PathName | None = None, *, verify: bool = True) -> Dataset:
    """Read one of the binary datasets for the comparison of density estimators.

    Parameters
    ----------
    name : str
        For instance "nltcs", "plants", "baudio", "jester", "dna", "msweb", "pumsb_star" or
        "mushrooms". Others are read from local files, without verification if they are unknown.
    path : path, optional
        Folder with the three files of the dataset. Downloaded when not given.
    verify : bool, default True
        Whether to require the published rows.

    Returns
    -------
    Dataset
        Binary variables ``x0``, ``x1``, ...; the rows of train, valid and test in that order;
        ``splits`` has their slices.

    Raises
    ------
    FileFormatError
        If a file is malformed, or is not the published one.
    MissingExtraError
        If the download needs pooch and it is not installed.

    Notes
    -----
    The repository asks users to cite Lowd and Davis (2010), Van Haaren and Davis (2012), Bekker
    et al. (2015) and Larochelle and Murray (2011).
    """
    content = _fingerprints()
    if path is None and f"{name}.train" not in content:
        available = [key.removesuffix(".train") for key in content if key.endswith(".train")]
        raise ValueError(
            f"'{name}' cannot be downloaded, because it could not be verified: give its folder as "
            f"path, or take one of {', '.join(available)}"
        )
    parts: list[NDArray[np.uint8]] = []
    for split in _SPLITS:
        url, file = _URL.format(name=name, split=split), f"{name}.{split}.data"
        source = fetch(url) if path is None else Path(path) / file
        rows = _read(source)
        if verify and f"{name}.{split}" in content:
            fixed = rows[np.lexsort(rows.T)] if (name, split) in _ROWS_SORTED else rows
            require_content(source, content[f"{name}.{split}"], fixed)
        if parts and rows.shape[1] != parts[0].shape[1]:
            raise FileFormatError(
                f"{source}: {rows.shape[1]} columns, but train has {parts[0].shape[1]}"
            )
        parts.append(rows)
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    schema = Schema.from_states([2] * parts[0].shape[1])
    return Dataset(
        X=np.concatenate(parts).astype(np.int16),
        names=schema.names,
        schema=schema,
        splits={split: slice(ends[k], ends[k + 1]) for k, split in enumerate(_SPLITS)},
    )


def _fingerprints() -> dict[str, str]:
    """Return the fingerprint of each split, such as ``nltcs.train``, in order of their names."""
    pairs = map(str.split, Path(__file__).with_name("debd.sha256").read_text().splitlines())
    return {name: digest for digest, name in pairs}


def _read(path: Path) -> NDArray[np.uint8]:
    lines = path.read_bytes().splitlines() or [b""]
    n_columns = lines[0].count(b",") + 1
    for number, line in enumerate(lines, start=1):
        whole = len(line) == 2 * n_columns - 1
        if not whole or line[::2].strip(b"01") or line[1::2].strip(b","):
            texts = line.decode("ascii", "replace").split(",")
            fault = f"{len(texts)} cells, expected {n_columns}"
            if len(texts) == n_columns:
                other = next(cell for cell in texts if cell not in ("0", "1"))
                fault = f"cell {other!r}, expected 0 or 1"
            raise FileFormatError(f"{path}, line {number}: {fault}")
    cells = np.frombuffer(b"".join(line[::2] for line in lines), np.uint8)
    return cells.reshape(-1, n_columns) - np.uint8(ord("0"))
