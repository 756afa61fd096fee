"""Binary density-estimation datasets (DEBD), with their published splits.

The published form of dataset NAME is ``NAME.train.data``, ``NAME.valid.data`` and
``NAME.test.data``: one row per line, with cells 0 or 1, separated by commas.
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

#: Fingerprints of the decoded splits.
_CONTENT: dict[str, dict[str, str]] = {
    "baudio": {
        "train": "945b595309a727126c9b746a58789a17d1c4b017bab12db841009cbfee5218b0",
        "valid": "c55cd734560c9a9c7047fb13e789cc9227ea868103730fe2facd6a0151942467",
        "test": "10847e4a2cebf6f8ad9df2f038472aa12625b9e8753da79f648f075f8317edda",
    },
    "book": {
        "valid": "f20a9b49a578a379b6aaaeaad02383037bbf101951be91676b26c3a9aa29ac97",
        "test": "11aaa2cf4852ffcb1f0aba4caa18d5236df945b8558ee4bfaf3fef75d91e38fb",
    },
    "dna": {
        "train": "5298ea4cb5106aa258e95a8a67e74af9b960824e7420ebec37be0b5d49a98616",
        "valid": "47311834047e9e91dcf12fc8b8e9d83a050045808c2701b4f3b8532ab6048e14",
        "test": "e9568f43a907a5c99cec37ecf89ce7aab049d31876ab2c64b1305648a77695a1",
    },
    "jester": {
        "train": "701030344341d43a839e8186fd29a7610c7d2c330fce28ab789677353cd2a689",
        "valid": "cd46ff7318c8acb4afcf50244e7a1d9fc13749a20c053891141b411f64605a85",
        "test": "bb345b2e6c0c453598d68dbae171ad29734671ea8e9fa0b9ff75cb036e9833c8",
    },
    "kosarek": {
        "valid": "6f3ada749a5372f5ef8523ad415ba5121a9396913a8bef5493b7a09b7bd32733",
        "test": "745dca39592f2df698bdc691ff657489a9b258d5df84e25d11b8777bc974eb08",
    },
    "msnbc": {
        "valid": "46b91e0d637f12767cd56334a1cdff72735b6606733838924eed73a2ae61056a",
        "test": "98c984035366ea280ac96c1eef2dd5f23daa74e4a3b5bd5674a56f7478f61f21",
    },
    "msweb": {
        "train": "37c29373cec31dff6accff84d0b83564085ac87cac2241f6ba2b5ba7f22058a1",
        "valid": "d62a682ca9fb5f7c69cc7e9819d3f94fec6bf24e182f3bed5134becbe83d977f",
        "test": "d834dd9e1513b10aec53895fd574d31f30354f5f1a4e07930724a5e82851e2c1",
    },
    "mushrooms": {
        "train": "d6ab679cea2508a8262c054e627cf3fb4202de8e478d0bb71d53bef99b9501ee",
        "valid": "436a6d983836bc4b1773f6feb0d7f290ec086d080c53359154a001c463dc8cab",
        "test": "9e32e9e5bcc9f95c79020167a9dbddaa5f51fcc4a29456bcfbcf3fd6ab967daa",
    },
    "nltcs": {
        "train": "d5ea6c2bec4414cfcdc3725293d4c0e0fc50ee9a11a076ff0487baaf5ae20461",
        "valid": "f804716f132b0485affc158cc23a290fec894ddde895ba2477d3879e46207171",
        "test": "e5f8c2e427592742cce1ddd1424560ceb4231845214fabe9419cd676b9910269",
    },
    "plants": {
        "train": "d5b2a04d2fee83a868047c746e4384fcf2296a1a5766199c4965aeb934b0cc19",
        "valid": "010d00593c2c4f4490e28e29cadfa3ef13746fead80bb6d369cf36c9881e82af",
        "test": "1ffe5adbc8dae931396da368187377aea5f719a89f611ce32fbe39e45e8e2252",
    },
    "pumsb_star": {
        "train": "60f55162ca51677c7807605b39b1258fc7e02383b6dd8902050ecc76c19eeec3",
        "valid": "454c9caec3a0d013c6ca2df9754085bbcfc751fad9f2c661e9ee336d9e86589e",
        "test": "9f731871038876c6eb0c86563b70738b0f3244923292cea0f1f1193355f92188",
    },
}
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
    known = _CONTENT.get(name, {})
    if path is None and set(known) != set(_SPLITS):
        available = sorted(key for key, splits in _CONTENT.items() if set(splits) == set(_SPLITS))
        raise ValueError(
            f"'{name}' cannot be downloaded, because it could not be verified: give its folder as "
            f"path, or take one of {', '.join(available)}"
        )
    parts: list[NDArray[np.uint8]] = []
    for split in _SPLITS:
        url, file = _URL.format(name=name, split=split), f"{name}.{split}.data"
        source = fetch(url) if path is None else Path(path) / file
        rows = _read(source)
        if verify and split in known:
            content = rows[np.lexsort(rows.T)] if (name, split) in _ROWS_SORTED else rows
            require_content(source, known[split], content)
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
