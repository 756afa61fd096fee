"""``edgegraft demo``: the network of the pixels of handwritten digits, and its use.

Pixels of one pen stroke depend on each other, so direct dependencies should join neighbours on the
page, and hidden pixels should follow from those around them: results that anyone can check by eye.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from edgegraft import __version__
from edgegraft.core import Layout
from edgegraft.core.pairs import all_pairs
from edgegraft.datasets import load_digits
from edgegraft.ingest import pack
from edgegraft.learn import Discovery, Plan, discover
from edgegraft.learn.provenance import details_of, edge_columns
from edgegraft.model import PairwiseMRF
from edgegraft.report import data_quality, plot_network, write_report
from edgegraft.table import PackedTable

_BINS = 4
_TRAIN = 1500  # images to learn from; the others have pixels hidden
_HIDDEN = 0.25


class Outputs(NamedTuple):
    """Files of a demonstration: the page, and beside it the picture and the model."""

    page: Path
    picture: Path
    model: Path

    @classmethod
    def beside(cls, page: Path) -> Outputs:
        """Return the files that go with a page."""
        return cls(page, page.with_suffix(".png"), page.with_suffix(".edgegraft"))


def run_demo(outputs: Outputs, n_edges: int, n_jobs: int) -> str:
    """Run every stage, write the files and return the summary."""
    watch = _Watch()
    with _compiling_ahead():
        with watch("load the images, bin the pixels and pack them"):
            table = _pixels()
            codes = table.codes()
            train = PackedTable.from_codes(codes[:_TRAIN], table.schema)
        with watch("learn the network"):
            found = discover(train, Plan(n_jobs=n_jobs))
        with watch("hide pixels of other images and impute them"):
            right, usual = _impute(found.model, codes[_TRAIN:].astype(np.int64), codes[:_TRAIN])
        with watch("write the model, the page and the picture"):
            _write(outputs, found, train)
    return _summary(found, n_edges, right, usual, watch)


@contextmanager
def _compiling_ahead() -> Iterator[None]:
    """Let a second process compile the kernels of the later stages while the network is learned.

    It shares nothing but the cache on disk, and is ended with the demonstration.
    """
    code = f"from {__name__} import compile_ahead; compile_ahead()"
    quiet = subprocess.DEVNULL
    ahead = subprocess.Popen([sys.executable, "-c", code], stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        ahead.kill()
        ahead.wait()


def compile_ahead() -> None:
    """Call the kernels of the later stages, on a random model of the same size."""
    rng = np.random.default_rng(0)
    table = PackedTable.from_codes(rng.integers(0, _BINS, (200, 60)))
    pairs = all_pairs(60)
    layout = Layout(table.schema.n_states, pairs[rng.random(len(pairs)) < 0.1])
    model = PairwiseMRF(table.schema, layout.edges, 0.1 * rng.normal(size=layout.n_parameters))
    codes = table.codes().astype(np.int64)
    _impute(model, codes, codes)
    with TemporaryDirectory() as folder:
        _draw(Outputs.beside(Path(folder) / "page.html"), model, table)


def _pixels() -> PackedTable:
    digits = load_digits()
    frame = {name: digits.X[:, k] for k, name in enumerate(digits.names)}
    varying = [name for name, column in frame.items() if len(np.unique(column)) > 1]
    return pack(frame, columns=varying, bins=_BINS, bin_rule="uniform")


def _impute(model: PairwiseMRF, rows: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    """Return the shares of hidden pixels that imputation and the commonest state get right."""
    hidden = np.random.default_rng(0).random(rows.shape) < _HIDDEN
    filled = model.impute_codes(np.where(hidden, -1, rows))
    usual = np.array([np.bincount(column).argmax() for column in known.T])
    return float((filled == rows)[hidden].mean()), float((usual == rows)[hidden].mean())


def _write(outputs: Outputs, found: Discovery, train: PackedTable) -> None:
    details = details_of(found, {"file": "scikit-learn's digits", "rows": train.n_rows})
    columns = edge_columns(found)
    found.model.save(outputs.model, details=details, edge_columns=columns)
    _draw(
        outputs,
        found.model,
        train,
        details=details,
        edge_columns=columns,
        trace=found.search.trace(),
        title="Pixels of handwritten digits",
    )


def _draw(outputs: Outputs, model: PairwiseMRF, table: PackedTable, **others: Any) -> None:
    """Write the page and the picture."""
    write_report(outputs.page, model, data_quality=data_quality(table), **others)
    figure = plot_network(model).get_figure(root=True)
    assert figure is not None  # the axes are on one
    figure.savefig(outputs.picture, dpi=150, bbox_inches="tight")


class _Watch:
    """Seconds of named stages, in order."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, float]] = []

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = perf_counter()
        yield
        self.stages.append((stage, perf_counter() - started))


def _summary(found: Discovery, n_edges: int, right: float, usual: float, watch: _Watch) -> str:
    names, strengths = found.model.names, found.model.edge_strengths()
    steps = [_steps(names[i], names[j]) for i, j in found.model.edges]
    order = np.argsort(-strengths, kind="stable")[:n_edges]
    lines = [
        "# edgegraft demo: the network of pixels in handwritten digits",
        "",
        f"edgegraft {__version__}; scikit-learn's digits, {_TRAIN:,} images, {len(names)} pixels "
        f"of {_BINS} shades.",
        f"{len(steps)} direct dependencies; {sum(s == 1 for s in steps)} of them join neighbours "
        "on the page. The strongest:",
        "",
        "| pixel | pixel | strength | steps apart on the page |",
        "| --- | --- | ---: | ---: |",
    ]
    for k in order:
        i, j = found.model.edges[k]
        lines.append(f"| {names[i]} | {names[j]} | {strengths[k]:.2f} | {steps[k]} |")
    lines += [
        "",
        f"A quarter of the pixels of other images was hidden: {right:.0%} are imputed right, where "
        f"the commonest shade of each pixel would be right for {usual:.0%}.",
        f"{found.certificate}.",
        "",
        "| stage | seconds |",
        "| --- | ---: |",
        *(f"| {stage} | {seconds:.2f} |" for stage, seconds in watch.stages),
        "",
        "The first run on a machine compiles the kernels; later runs load them from disk.",
        "",
    ]
    return "\n".join(lines)


def _steps(first: str, second: str) -> int:
    """Return the steps between pixels called ``r<row>c<column>``, diagonal steps included."""
    (r, c), (s, d) = (map(int, name[1:].split("c")) for name in (first, second))
    return max(abs(r - s), abs(c - d))
