"""Readers of public data, on small files in the published formats and a server on this machine."""

import functools
import http.server
import json
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from edgegraft.datasets import load_debd, load_digits, load_jester, load_yummly, public
from edgegraft.datasets.source import fetch, fingerprint
from edgegraft.errors import FileFormatError, MissingExtraError

SHARED = Path(__file__).parents[3] / "shared" / "data"


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the reference data {name} are not on this machine")
    return np.load(path)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a folder over HTTP; downloads go to a cache of their own."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setenv("EDGEGRAFT_DATA", str(tmp_path / "cache"))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


# DEBD ---------------------------------------------------------------------------------------


def write_debd(folder, name, splits):
    folder.mkdir(exist_ok=True, parents=True)
    for split, rows in splits.items():
        text = "".join(",".join(map(str, row)) + "\n" for row in np.asarray(rows).tolist())
        (folder / f"{name}.{split}.data").write_text(text)


TINY = {"train": [[0, 1, 1], [1, 0, 0]], "valid": [[1, 1, 1]], "test": [[0, 0, 0], [0, 1, 0]]}


def test_debd_splits(tmp_path):
    write_debd(tmp_path, "tiny", TINY)
    data = load_debd("tiny", tmp_path)
    assert data.X.dtype == np.int16
    assert data.names == ("x0", "x1", "x2")
    assert data.schema.n_states.tolist() == [2, 2, 2]
    for split, rows in TINY.items():
        assert data.split(split).tolist() == rows
    assert repr(data) == "Dataset(5 rows x 3 variables, train 2, valid 1, test 2)"
    with pytest.raises(KeyError, match="no split 'dev'"):
        data.split("dev")


def test_debd_line_ends_do_not_matter(tmp_path):
    write_debd(tmp_path, "tiny", TINY)
    (tmp_path / "tiny.train.data").write_bytes(b"0,1,1\r\n1,0,0")
    assert load_debd("tiny", tmp_path).split("train").tolist() == TINY["train"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,1\n1,0\n", r"tiny.valid.data, line 2: 2 cells, expected 3"),
        ("0,1,1\n1,2,0\n", r"line 2: cell '2', expected 0 or 1"),
        ("0,1,1\n1,0;0\n", r"line 2: 2 cells"),
        ("0,1\n", "2 columns, but train has 3"),
        ("", "line 1"),
    ],
)
def test_debd_faults_are_named(tmp_path, text, message):
    write_debd(tmp_path, "tiny", TINY)
    (tmp_path / "tiny.valid.data").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        load_debd("tiny", tmp_path)


@pytest.mark.parametrize("name", ["nltcs", "dna"])
def test_debd_as_published_is_recognised(tmp_path, name):
    published = shared(f"debd/{name}.npz")
    write_debd(tmp_path, name, published)
    data = load_debd(name, tmp_path)
    for split in ("train", "valid", "test"):
        np.testing.assert_array_equal(data.split(split), published[split])


def test_debd_rows_known_up_to_their_order(tmp_path):
    published = dict(shared("debd/msweb.npz"))
    published["train"] = np.random.default_rng(0).permutation(published["train"])
    write_debd(tmp_path, "msweb", published)
    assert load_debd("msweb", tmp_path).split("train").shape == (29_441, 294)


def test_debd_another_content_is_refused(tmp_path):
    write_debd(tmp_path, "nltcs", TINY)
    with pytest.raises(FileFormatError, match=r"nltcs.train.data: not .* sha256 \w{64}, expected"):
        load_debd("nltcs", tmp_path)
    assert load_debd("nltcs", tmp_path, verify=False).X.shape == (5, 3)


def test_debd_download(server, monkeypatch):
    folder, address = server
    known = {f"tiny.{k}": fingerprint(np.array(rows, np.uint8)) for k, rows in TINY.items()}
    monkeypatch.setattr(public, "_DEBD_URL", address + "/{name}/{name}.{split}.data")
    listed = folder / "debd.sha256"
    listed.write_text("".join(f"{digest} {name}\n" for name, digest in known.items()))
    monkeypatch.setattr(public, "_DEBD", listed)
    write_debd(folder / "tiny", "tiny", TINY)
    assert load_debd("tiny").split("test").tolist() == TINY["test"]
    for file in (folder / "tiny").iterdir():
        file.unlink()
    assert load_debd("tiny").X.shape == (5, 3)  # from the cache
    listed.write_text(listed.read_text().replace(known["tiny.valid"], "0" * 64))
    with pytest.raises(FileFormatError, match="expected 0000"):
        load_debd("tiny")


def test_debd_downloads_only_what_can_be_verified():
    with pytest.raises(ValueError, match=r"'kosarek' cannot be downloaded.* nltcs"):
        load_debd("kosarek")


def test_a_download_needs_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"edgegraft\[datasets\]"):
        fetch("http://127.0.0.1:9/file")


# Jester -------------------------------------------------------------------------------------


def jester_rows():
    ratings = np.full((3, 100), 99.0)
    ratings[0] = np.linspace(-10, 10, 100).round(2)
    ratings[1, :6] = [-10, -6, -6.01, 2, 6, 10]
    return [[(row != 99).sum(), *row.tolist()] for row in ratings]


def write_csv(path, rows):
    path.write_text("".join(",".join(f"{cell:g}" for cell in row) + "\n" for row in rows))
    return path


def test_jester_states(tmp_path):
    path = write_csv(tmp_path / "jester.csv", jester_rows())
    data = load_jester(path, verify=False)
    assert data.X.shape == (3, 100)
    assert data.X[1, :7].tolist() == [0, 1, 0, 3, 4, 4, -1]
    assert (data.X[2] == -1).all()
    assert data.names[0] == "joke1"
    assert data.schema.n_states.tolist() == [5] * 100
    assert data.extras["complete_rows"].tolist() == [0]
    assert load_jester(path, states=2, verify=False).X[1, :6].tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(FileFormatError, match="not the published data"):
        load_jester(path)


def test_jester_reference(tmp_path, monkeypatch):
    ratings = shared("jester_ratings.npz")["ratings_hundredths"]
    rows = np.where(ratings == -32768, 99.0, ratings / 100)
    counts = (ratings != -32768).sum(axis=1)
    # As the sheet's reader would give it: the .xls itself cannot be written here.
    sheet = np.column_stack((counts, rows)).tolist()
    monkeypatch.setattr(public, "_xls_rows", lambda path, content: sheet)
    with zipfile.ZipFile(tmp_path / "jester-data-1.zip", "w") as archive:
        archive.writestr("jester-data-1.xls", b"")
    data = load_jester(tmp_path / "jester-data-1.zip")
    expected = shared("jester5.npz")
    np.testing.assert_array_equal(np.where(data.X < 0, 255, data.X), expected["X"])
    np.testing.assert_array_equal(data.extras["complete_rows"], expected["complete_rows"])


def test_jester_sheet(tmp_path, monkeypatch):
    class Sheet:
        nrows = 3

        def row_values(self, number):
            return jester_rows()[number]

    class Book:
        def sheet_by_index(self, index):
            return Sheet()

    xlrd = pytest.importorskip("xlrd")
    (tmp_path / "j.xls").write_bytes(b"not a sheet")
    with pytest.raises(FileFormatError, match=r"j.xls"):
        load_jester(tmp_path / "j.xls", verify=False)
    monkeypatch.setattr(xlrd, "open_workbook", lambda **kwargs: Book())
    assert load_jester(tmp_path / "j.xls", verify=False).X[1, 3] == 3
    monkeypatch.setitem(sys.modules, "xlrd", None)
    with pytest.raises(MissingExtraError, match="xlrd"):
        load_jester(tmp_path / "j.xls")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1].pop(), "line 2: 100 cells, expected 101"),
        (lambda rows: rows[1].__setitem__(3, 12.5), "line 2: joke 3 is rated 12.5"),
        (lambda rows: rows[1].__setitem__(3, float("nan")), "line 2: joke 3 is rated nan"),
        (lambda rows: rows[1].__setitem__(0, 7), "line 2: 6 ratings, but the first cell says 7"),
    ],
)
def test_jester_faults_are_named(tmp_path, change, message):
    rows = jester_rows()
    change(rows)
    with pytest.raises(FileFormatError, match=message):
        load_jester(write_csv(tmp_path / "j.csv", rows))


def test_jester_containers(tmp_path):
    (tmp_path / "j.csv").write_text("1,2,x\n")
    with pytest.raises(FileFormatError, match="line 1"):
        load_jester(tmp_path / "j.csv")
    (tmp_path / "j.zip").write_bytes(b"no zip")
    with pytest.raises(FileFormatError, match=r"j\.zip"):
        load_jester(tmp_path / "j.zip")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(FileFormatError, match="inside, found 0"):
        load_jester(tmp_path / "empty.zip")
    with pytest.raises(FileFormatError, match=r"expected a \.zip"):
        load_jester(tmp_path / "j.txt")
    with pytest.raises(ValueError, match="states"):
        load_jester(tmp_path / "j.csv", states=0)


# Yummly -------------------------------------------------------------------------------------

RECIPES = [
    {"id": 10, "cuisine": "greek", "ingredients": ["salt", "feta", "salt"]},
    {"id": 11, "cuisine": "thai", "ingredients": ["rice", "salt"]},
    {"id": 12, "cuisine": "thai", "ingredients": ["rice", "lime", "feta"]},
]


def test_yummly_counts_recipes(tmp_path):
    path = tmp_path / "train.json"
    path.write_text(json.dumps(RECIPES))
    data = load_yummly(path, min_recipes=2, verify=False)
    assert data.names == ("feta", "rice", "salt")
    assert data.X.tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
    assert data.extras["cuisine"].tolist() == ["greek", "thai", "thai"]
    assert data.extras["recipe_id"].tolist() == [10, 11, 12]
    with pytest.raises(FileFormatError, match="not the published data"):
        load_yummly(path)


def test_yummly_reference(tmp_path):
    # Ingredients below the threshold are lost in the stored table; the rest must be recognised.
    stored = shared("yummly489.npz")
    names = stored["ingredients"].tolist()
    recipes = [
        {"id": int(key), "cuisine": "any", "ingredients": [names[k] for k in np.flatnonzero(row)]}
        for key, row in zip(stored["recipe_id"], stored["X"], strict=True)
    ]
    path = tmp_path / "train.json.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.json", json.dumps(recipes))
        archive.writestr("__MACOSX/._train.json", "shadow")
    data = load_yummly(path)
    assert data.names == tuple(names)
    np.testing.assert_array_equal(data.X, stored["X"])


def test_yummly_download(server, monkeypatch):
    folder, address = server
    (folder / "train.json").write_text(json.dumps(RECIPES))
    monkeypatch.setattr(public, "_YUMMLY_URL", f"{address}/train.json")
    assert load_yummly(min_recipes=1, verify=False).X.shape == (3, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[\n{]", "line 2"),
        ("{}", "list of recipes"),
        ('[{"id": 1, "cuisine": "x"}]', "recipe 1 does not have"),
        ('[{"id": 1, "cuisine": "x", "ingredients": [3]}]', "recipe 1 does not have"),
        (b"\xff\xfe", "not a text file"),
    ],
)
def test_yummly_faults_are_named(tmp_path, text, message):
    path = tmp_path / "train.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileFormatError, match=message):
        load_yummly(path)


def test_yummly_containers(tmp_path):
    path = tmp_path / "train.json.zip"
    path.write_bytes(b"no zip")
    with pytest.raises(FileFormatError, match=r"train.json.zip"):
        load_yummly(path)
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(FileFormatError, match="found 0"):
        load_yummly(path)


# Bundled ------------------------------------------------------------------------------------


def test_digits():
    digits = load_digits()
    assert digits.X.shape == (1797, 64)
    assert digits.names[8 * 3 + 5] == "r3c5"
    binned = load_digits(n_bins=4, label=True)
    assert np.unique(binned.X[:, :64]).tolist() == [0, 1, 2, 3]
    assert binned.names[-1] == "digit"
    np.testing.assert_array_equal(binned.X[:, -1], digits.extras["digit"])
    with pytest.raises(ValueError, match="n_bins"):
        load_digits(n_bins=18)
