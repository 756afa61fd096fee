"""The bootstrap: its time on a survey.

The survey is `bfi` (25 items of 6 states, 2,800 rows, 508 missing cells) in ../shared/data.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter, process_time

from benchmarks.rows import Row, as_markdown
from edgegraft.ingest import pack
from edgegraft.learn import Discovery, discover
from edgegraft.learn.bootstrap import bootstrap
from edgegraft.table import PackedTable

SURVEY = Path(__file__).resolve().parents[2] / "shared" / "data" / "bfi.csv.gz"
REPLICATES, THREADS, REQUIRED_SECONDS = 1000, 2, 60.0


def run(scale: float = 1.0) -> list[Row]:
    """Return the row; `scale` reduces replicates."""
    if not SURVEY.exists():
        print(f"{SURVEY} does not exist: the survey is skipped", flush=True)
        return []
    table = pack(SURVEY, missing_values=["?"])
    return [timing(table, discover(table), scale)]


def timing(table: PackedTable, found: Discovery, scale: float) -> Row:
    n = max(4, round(REPLICATES * scale))
    bootstrap(found.model, table, 4, n_jobs=THREADS)  # compiles
    started, used = perf_counter(), process_time()
    bootstrap(found.model, table, n, ranking=found.ranking, n_jobs=THREADS)
    seconds, used = perf_counter() - started, process_time() - used
    note = (
        f"{THREADS} threads; {used:.1f} s of processor time, {1e3 * used / n:.0f} ms per replicate."
    )
    work = f"bfi, {n:,} replicates"
    return Row(work, seconds, "required", REQUIRED_SECONDS * n / REPLICATES, "s", 1.0, note)


if __name__ == "__main__":
    print(as_markdown(run()))
