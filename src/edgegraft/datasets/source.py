"""Data sets, and how they are obtained: bundled, or downloaded and verified.

A published file is decoded to one array, independent of its container (zip, xls, csv). The sha256
of that array, including shape and type, identifies the data.
"""

from __future__ import annotations

import csv
import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegraft.errors import FileFormatError, import_extra
from edgegraft.table import Schema

PathName = str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A public dataset.

    Attributes
    ----------
    X : array of int16, shape (n_rows, n)
        States, counted from 0; -1 is a missing cell.
    names : tuple of str
        Names of the variables.
    schema : Schema
        Variables and their categories.
    splits : dict of str to slice
        Rows of the published splits (``train``, ``valid``, ``test``), if there are any.
    extras : dict of str to array
        Further content of the file about each row.
    """

    X: NDArray[np.int16]
    names: tuple[str, ...]
    schema: Schema
    splits: dict[str, slice] = field(default_factory=dict)
    extras: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def split(self, name: str) -> NDArray[np.int16]:
        """Return the rows of a published split."""
        if name not in self.splits:
            raise KeyError(f"there is no split '{name}': the splits are {sorted(self.splits)}")
        return self.X[self.splits[name]]

    def __repr__(self) -> str:
        splits = "".join(f", {name} {s.stop - s.start}" for name, s in self.splits.items())
        return f"Dataset({self.X.shape[0]} rows x {self.X.shape[1]} variables{splits})"


def fingerprint(array: NDArray[np.generic], names: Sequence[str] = ()) -> str:
    """Return the sha256 of an array's type, shape and values, and of names that belong to it."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    digest = hashlib.sha256(f"{little.dtype.str} {little.shape}\n".encode())
    digest.update(little.tobytes())
    digest.update("\0".join(names).encode())
    return digest.hexdigest()


def require_content(
    path: PathName, expected: str, array: NDArray[np.generic], names: Sequence[str] = ()
) -> None:
    """Raise FileFormatError unless the decoded content has the `expected` fingerprint."""
    found = fingerprint(array, names)
    if found != expected:
        raise FileFormatError(
            f"{path}: not the published data: its decoded content has sha256 {found}, expected "
            f"{expected}; delete a damaged download, or pass verify=False to read another version"
        )


def read_content(path: Path, suffixes: tuple[str, ...], inside: str) -> bytes:
    """Return the content of a file with one of `suffixes`, or of the one member of a zip.

    `inside` is the end of the name of that member.
    """
    kind = path.suffix.lower()
    if kind != ".zip":
        if kind not in suffixes:
            raise FileFormatError(f"{path}: expected a .zip, {' or '.join(suffixes)} file")
        return path.read_bytes()
    try:
        with zipfile.ZipFile(path) as archive:
            # Archives from macOS contain a shadow of each file in a separate folder.
            names = [name for name in archive.namelist() if not name.startswith("__MACOSX")]
            members = [name for name in names if name.lower().endswith(inside)]
            if len(members) != 1:
                raise FileFormatError(f"{path}: expected one {inside} inside, found {len(members)}")
            return archive.read(members[0])
    except zipfile.BadZipFile as error:
        raise FileFormatError(f"{path}: {error}") from error


def fetch(url: str) -> Path:
    """Download a file once into the user's cache and return its path.

    The cache is ``pooch.os_cache("edgegraft")``, or the folder of the environment variable
    EDGEGRAFT_DATA. Only the decoded content is verified, by the reader.
    """
    pooch = import_extra("pooch", "datasets", "downloading a dataset")
    store = pooch.create(
        path=pooch.os_cache("edgegraft"), base_url="", registry=None, env="EDGEGRAFT_DATA"
    )
    # The address is part of the name, so that another version is another file.
    tag = hashlib.sha256(url.encode()).hexdigest()[:8]
    name = f"{tag}-{url.rsplit('/', 1)[-1]}"
    return Path(pooch.retrieve(url, known_hash=None, fname=name, path=store.path))


#: The file of :func:`load_survey`.
SURVEY_FILE = Path(__file__).with_name("survey.csv")
_SIDE = 8
_SHADES = 17


def load_digits(n_bins: int | None = None, *, label: bool = False) -> Dataset:
    """Return the 1,797 handwritten digits of scikit-learn as a table of pixels.

    Parameters
    ----------
    n_bins : int, optional
        Number of intervals of equal width for the 17 shades 0 to 16; by default the shades are
        kept.
    label : bool, default False
        Whether to add the digit itself as the last variable, ``digit``.

    Returns
    -------
    Dataset
        Variables ``r0c0`` to ``r7c7``, named after row and column; ``extras`` has ``digit``.

    Examples
    --------
    >>> digits = load_digits()
    >>> digits
    Dataset(1797 rows x 64 variables)
    >>> digits.names[:2], int(digits.X.max())
    (('r0c0', 'r0c1'), 16)
    >>> load_digits(n_bins=4, label=True).schema.n_states[-2:].tolist()
    [4, 10]
    """
    if n_bins is not None and not 1 <= n_bins <= _SHADES:
        raise ValueError(f"n_bins must be 1 to {_SHADES}, found {n_bins}")
    # Imported here, because scikit-learn's datasets take a second to load.
    from sklearn.datasets import load_digits as load_bundled

    bunch = load_bundled()
    X = bunch.data.astype(np.int16)
    n_states = [n_bins or _SHADES] * X.shape[1]
    if n_bins is not None:
        X = X * n_bins // _SHADES
    names = [f"r{k // _SIDE}c{k % _SIDE}" for k in range(X.shape[1])]
    digit = bunch.target.astype(np.int16)
    if label:
        X = np.column_stack((X, digit))
        names.append("digit")
        n_states.append(10)
    schema = Schema.from_states(n_states, names)
    return Dataset(X, schema.names, schema, extras={"digit": digit})


def load_survey() -> dict[str, list[str | int | float | None]]:
    """Return a survey of 2,000 people about work, sleep, health and company, as columns.

    No person answered it: the answers are drawn from a model with 28 direct dependencies, which
    ``tools/make_survey.py`` in the source states. Older people are over-represented, and the column
    ``weight`` corrects that. About one cell in sixty is missing, None here. Answers from 1 to 5 go
    from the least to the most; ``region`` depends on nothing.

    Returns
    -------
    dict of str to list
        The 21 questions and ``weight``; :class:`~edgegraft.GraftedMRF` takes it as it is, and
        ``pandas.DataFrame(load_survey())`` makes a frame of it. ``edgegraft demo`` writes the same
        table as ``survey.csv``.

    Examples
    --------
    >>> survey = load_survey()
    >>> len(survey), survey["job"][:2], survey["sleep"][:4]
    (22, ['retired', 'full time'], [4, 3, 4, 5])
    """
    with SURVEY_FILE.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return {name: [_value(cell) for cell in cells] for name, cells in columns.items()}


def _value(text: str) -> str | int | float | None:
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text or None
