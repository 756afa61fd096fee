"""Networks with tests on a GPU, beside the processor, and on 1, 4 and 16 threads.

The same learner and settings, apart from `device` and `n_jobs`. Kernels are compiled, and PyTorch
is loaded, beforehand; times include reading the array and all transfers. Generators are those of
the sections "networks" and "wide"; F1 is that of `edges_` against the true graph.

    python -m benchmarks.gpu                  everything, with profiles
    python -m benchmarks.gpu --only fits      fits, wide or threads
    python -m benchmarks.gpu --scale 0.2 --device torch    a check of this script without a GPU

Each row is followed by its profile: seconds in the parts of a fit, and in calls of the device with
its transfers, which are within the parts. Profiles of a device are of a second fit, since it is
waited for after each call.
`python -m benchmarks gpu` gives the fits without profiles, as rows of the page.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks.networks import Case, Figures, draw, grafted
from benchmarks.rows import Row
from edgegraft import GraftedMRF
from edgegraft.config import Plan
from edgegraft.learn import discover
from edgegraft.table import PackedTable

ISING = {"couplings": "ising"}
CASES = (
    Case(100, 5, 10_000, {}, 0.0, 0.0, 0.5, 1, 1),
    Case(200, 5, 19_000, {}, 0.0, 0.0, 1.0, 1, 1),
    Case(200, 2, 10_000, ISING, 0.0, 0.0, 0.5, 1, 1),
    Case(400, 5, 20_000, {}, 0.0, 0.0, 2.0, 1, 0),
)
WIDE = (10_000, 20_000, 5.0)  # two-state columns, rows, aim in seconds
THREADS = (1, 4, 16)
#: Where the time of a fit goes: the function, and what it does.
PARTS = (
    ("edgegraft.learn.discovery", "Stages.search", "search"),
    ("edgegraft.grafting.loop", "rank_pairs", "(ranking)"),
    ("edgegraft.learn.discovery", "decide", "tests"),
    ("edgegraft.learn.discovery", "last_fit", "last fits"),
    ("edgegraft.learn.discovery", "match_margins", "shares"),
    ("edgegraft.learn.discovery", "edge_effects", "effects"),
    ("edgegraft.learn.discovery", "score_inactive", "certificate"),
)
OPERATIONS = ("count", "evaluate", "score", "partners", "fit_pairs")
F1_NOISE = 0.005  # a few edges near the cut
CHAINS = ("sweep", "codes", "means", "energies", "edge_terms")


class Run(NamedTuple):
    """One fit."""

    figures: Figures
    edges: set[tuple[int, int]]


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section."""
    if not has_gpu():
        print("no GPU was found: nothing is measured", file=sys.stderr)
        return []
    return [beside(smaller(case, scale), "cuda") for case in CASES]


def smaller(case: Case, scale: float) -> Case:
    """Return a case of fewer columns and rows."""
    return case._replace(n=max(20, int(case.n * scale)), n_rows=int(case.n_rows * scale))


def beside(case: Case, device: str) -> Row:
    """Return the time of a case on a device, beside the processor's where it is not too long."""
    codes, truth = draw(case, 0)
    for where in (device, "cpu"):
        fit(codes[:1000, :20], truth, where)
    threads = os.cpu_count() or 1
    on_gpu = fit(codes, truth, device, threads)
    here = fit(codes, truth, "cpu", threads) if case.rival_seeds else None
    notes = f"Aim: {case.seconds:g} s. {quality(on_gpu.figures)}"
    if here is not None:
        differ = len(on_gpu.edges ^ here.edges)
        notes += f", on the processor {quality(here.figures)}; {differ} edges differ"
    theirs = None if here is None else here.figures.seconds
    seconds = on_gpu.figures.seconds
    return Row(work_of(case), seconds, f"{threads} threads", theirs, "s", None, f"{notes}.")


def quality(figures: Figures) -> str:
    """Return the quality of a fit in words."""
    return f"F1 {figures.f1:.3f}, average precision {figures.precision:.3f}"


def work_of(case: Case) -> str:
    """Return a case in words."""
    kind = "Ising" if case.options else f"{case.n_states} states"
    return f"{case.n:,} variables, {kind}, N={case.n_rows:,}"


def fit(codes: np.ndarray, truth: set[tuple[int, int]], device: str, n_jobs: int = 1) -> Run:
    """Return the figures and edges of one fit."""
    kept: list[GraftedMRF] = []
    figures = grafted(codes, truth, n_jobs, device=device, kept=kept)
    return Run(figures, {(int(i), int(j)) for i, j in kept[0].model_.edges})


def has_gpu() -> bool:
    """Return whether PyTorch finds a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


class Profile:
    """Seconds and calls of functions, by a label."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def watched(self, call: Callable[..., Any], label: str, wait: Callable[[], None]) -> Any:
        """Return a function whose time is added to a label."""

        def watch(*given: Any, **named: Any) -> Any:
            started = perf_counter()
            try:
                return call(*given, **named)
            finally:
                wait()
                self.seconds[label] += perf_counter() - started
                self.calls[label] += 1

        return watch

    def lines(self) -> str:
        """Return labels with their seconds, and calls if there were several."""
        parts = []
        for label, seconds in self.seconds.items():
            calls = self.calls[label]
            parts.append(f"{label} {seconds:.2f}" + (f" ({calls} calls)" if calls > 1 else ""))
        return ", ".join(parts)


@contextmanager
def profiled(device: str) -> Iterator[tuple[Profile, Profile]]:
    """Watch the parts of a fit, and the calls of the device with transfers to and from it."""
    from edgegraft.device import TorchBackend, chains, pair_fit, partners, products
    from edgegraft.device import device as memory

    def wait() -> None:
        if device == "cuda":
            memory.torch_module().cuda.synchronize()

    parts, calls = Profile(), Profile()
    places: list[tuple[Any, str, Profile, str]] = []
    for module, name, label in PARTS:
        owner: Any = import_module(module)
        *outer, name = name.split(".")
        for each in outer:
            owner = getattr(owner, each)
        places.append((owner, name, parts, label))
    places += [(TorchBackend, name, calls, name) for name in OPERATIONS]
    places += [(chains.DeviceChains, name, calls, f"chains.{name}") for name in CHAINS]
    places.append((memory.Device, "put", calls, "to the device"))
    places += [(each, "to_host", calls, "from the device")
               for each in (chains, pair_fit, partners, products)]  # fmt: skip
    before = [(owner, name, getattr(owner, name)) for owner, name, _, _ in places]
    for owner, name, profile, label in places:
        setattr(owner, name, profile.watched(getattr(owner, name), label, wait))
    try:
        yield parts, calls
    finally:
        for owner, name, call in before:
            setattr(owner, name, call)


def show(work: str, device: str, learn: Callable[[], Run]) -> Run:
    """Print the seconds of a fit, its quality and its profile; on a device of a second fit."""
    found = None if device == "cpu" else learn()
    with profiled(device) as (parts, calls):
        again = learn()
    found = found or again
    print(f"{work:52} {found.figures.seconds:8.2f} s   {quality(found.figures)}")
    print(f"    {parts.lines()}")
    if calls.seconds:
        print(f"    device: {calls.lines()}")
    sys.stdout.flush()
    return found


@contextmanager
def ranked_by_the_processor() -> Iterator[None]:
    """Leave out the penalised fit of all pairs: what it gains or costs."""
    from edgegraft.device import TorchBackend

    fit_pairs = TorchBackend.fit_pairs
    TorchBackend.fit_pairs = lambda *_: None
    try:
        yield
    finally:
        TorchBackend.fit_pairs = fit_pairs


def compare(device: str, on_device: Run, here: Run) -> None:
    """Print whether the fit on the device is as good as the processor's."""
    worse = on_device.figures.f1 < here.figures.f1 - F1_NOISE
    differ = len(on_device.edges ^ here.edges)
    print(f"    {device} against cpu: {'WORSE' if worse else 'as good'}, {differ} edges differ, "
          f"{here.figures.seconds / on_device.figures.seconds:.1f} x\n", flush=True)  # fmt: skip


def show_fits(scale: float, device: str) -> None:
    """Print fits on the device, and on the processor by all of its threads."""
    threads = os.cpu_count() or 1
    for case in CASES:
        size = smaller(case, scale)
        codes, truth = draw(size, 0)
        runs = []
        fit(codes[:1000, :20], truth, device)
        with ranked_by_the_processor():
            work = f"{work_of(size)}: {device}, ranked on cpu"
            show(work, device, partial(fit, codes, truth, device, threads))
        for where in (device, "cpu"):
            fit(codes[:1000, :20], truth, where)
            work = f"{work_of(size)}: {where}, {threads} threads"
            runs.append(show(work, where, partial(fit, codes, truth, where, threads)))
        print(f"    aim {case.seconds:g} s")
        compare(device, *runs)


def show_wide(scale: float, device: str) -> None:
    """Print fits of many two-state columns."""
    from benchmarks.wide import draw_blocks

    n, n_rows, aim = WIDE
    n, n_rows = max(100, int(n * scale)), int(n_rows * scale)
    table, truth = draw_blocks(n, n_rows)
    runs = []
    for where in (device, "cpu"):
        learn_table(draw_blocks(1_200, 600)[0], truth, where)
        work = f"{n:,} two-state columns, N={n_rows:,}: {where}"
        runs.append(show(work, where, partial(learn_table, table, truth, where)))
    print(f"    aim {aim:g} s")
    compare(device, *runs)


def learn_table(table: PackedTable, truth: np.ndarray, device: str) -> Run:
    """Return the figures and edges of a packed table's fit, on all threads."""
    plan = Plan(n_jobs=os.cpu_count(), device=device, random_state=0)
    started = perf_counter()
    found = discover(table, plan)
    seconds = perf_counter() - started
    edges = {(int(i), int(j)) for i, j in found.model.edges}
    true = {(int(i), int(j)) for i, j in np.sort(truth, axis=1)}
    f1 = 2 * len(edges & true) / (len(edges) + len(true))
    return Run(Figures(seconds, np.nan, f1), edges)


def show_threads(scale: float, _: str) -> None:
    """Print fits on the processor by 1, 4 and 16 threads, as many as the machine has."""
    for case in CASES:  # the tables of "networks", and a larger one
        size = smaller(case, scale)
        codes, truth = draw(size, 0)
        fit(codes[:1000, :20], truth, "cpu")
        runs = []
        for n_jobs in THREADS:
            if n_jobs <= (os.cpu_count() or 1):
                work = f"{work_of(size)}: {n_jobs} threads"
                runs.append(show(work, "cpu", partial(fit, codes, truth, "cpu", n_jobs)))
                gain = runs[0].figures.seconds / runs[-1].figures.seconds
                same = "the same" if runs[-1].edges == runs[0].edges else "OTHER"
                print(f"    {gain:.2f} x one thread, {same} edges\n", flush=True)


def main() -> None:
    """Print all parts, or one."""
    parts = {"fits": show_fits, "wide": show_wide, "threads": show_threads}
    reader = argparse.ArgumentParser(description="Fits on a GPU, and by threads, with profiles.")
    reader.add_argument("--only", choices=list(parts))
    reader.add_argument("--scale", type=float, default=1.0)
    reader.add_argument("--device", default="cuda")
    given = reader.parse_args()
    if given.device == "cuda" and not has_gpu():
        sys.exit("no GPU was found: nothing is measured (--device torch checks the script)")
    for name, part in parts.items():
        if given.only in (None, name):
            started = perf_counter()
            part(given.scale, given.device)
            print(f"-- {name}: {perf_counter() - started:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
