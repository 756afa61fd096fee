"""
Large data
==========

A table can have many rows, many columns, or columns with many categories. For each case, this page
explains the cost, what the library does about it, and what you can set. (The tables here are small,
so that the page builds in seconds; :doc:`Benchmarks </benchmarks>` has large ones.)

Many rows
---------
A file is read in batches and packed: one byte per cell, or two if a column has more than 255
states. Reading needs memory for the packed cells and a few batches, however large the file is.
"""

import tempfile
from pathlib import Path

import pandas as pd

from edgegraft import PackedTable, pack
from edgegraft.datasets import make_scale_free

folder = Path(tempfile.mkdtemp())
data = make_scale_free(30, n_states=3, n_rows=50_000, random_state=0)
frame = pd.DataFrame(data.X).map("answer {}".format).add_prefix("q")
frame.to_csv(folder / "survey.csv", index=False)

table = pack(folder / "survey.csv", batch_rows=10_000)
print(f"file {(folder / 'survey.csv').stat().st_size:,} bytes, packed {table.nbytes:,} bytes")
print(table)

# %%
# A table needs to be packed only once: it can be saved, and is then memory-mapped instead of read.
# Only the columns that are counted are loaded, and several processes share one copy.

table.save(folder / "survey.packed")
mapped = PackedTable.open(folder / "survey.packed")
print(mapped.schema == table.schema, mapped.n_rows)

# %%
# Every function that takes a table takes a packed one, and so does :class:`~edgegraft.GraftedMRF`.
#
# Pairs of columns are counted over bit planes, one bit per row and state, which are built on first
# use. The time for all 435 pairs of 50,000 rows:

from time import perf_counter

import numpy as np

from edgegraft import PairCounts

counts = PairCounts(mapped)
every_pair = np.stack(np.triu_indices(30, 1), axis=1)
counts.pairs(every_pair[:1])  # the first call of a process loads the kernel
began = perf_counter()
counts.pairs(every_pair)
print(f"{1e6 * (perf_counter() - began) / len(every_pair):.1f} microseconds per pair")

# %%
# The pseudolikelihood visits all rows at every evaluation, so its time grows with them; the
# likelihood needs only the counts (:ref:`choosing <sphx_glr_tutorials_guide_choosing.py>`). If
# there are very many rows, a network learned from a sample is often as good: edges that 100,000
# rows do not show are weak.
#
# Rows that do not fit in memory
# ------------------------------
# Several files can form one table: give their folder, or a pattern. ``max_memory`` limits the
# memory of a fit (by default to half of the machine's memory, for files larger than an eighth of
# it). If the rows do not fit, one pass over the files writes their codes to disk. The search
# begins on a sample that fits and ends on all rows, block by block. Edges are tested on the sample;
# everything else, including the last fit and the certificate, uses all rows.

rows = folder / "rows"
rows.mkdir()
for k in range(5):
    frame[10_000 * k :][:10_000].to_csv(rows / f"part-{k}.csv", index=False)

import shutil
import subprocess
import sys

command = shutil.which("edgegraft", path=Path(sys.executable).parent) or "edgegraft"
learn = "learn rows -o survey.edgegraft --max-memory 1020MiB --jobs 1 --cache-dir planes --top 3"
done = subprocess.run(
    [command, *learn.split()], cwd=folder, capture_output=True, text=True, check=True
)
print(done.stderr.replace(str(folder), "...").splitlines()[-2], done.stdout, sep="\n")

# %%
# In Python that is ``GraftedMRF(max_memory="1020 MiB", n_jobs=1, reading=planes).fit("rows")``
# with ``planes = ReadingOptions(cache_dir="planes")``. A pattern (``"rows/*.csv"``, quoted in a
# shell), an Arrow stream or a single file work as well.
# The limit is divided according to estimates and not enforced. The sample depends only on the
# limit; so that the result does not depend on the number of threads, threads that would exceed the
# limit are not started.
#
# The planes stay in the cache folder (``cache_dir``, the environment variable ``EDGEGRAFT_CACHE``,
# or the user's cache) and are reused as long as the files are unchanged. If all planes together
# exceed ``cache_size``, 32 GiB by default, the least recently used are deleted. A terminal shows
# the rows read, the speed and the time left. Ctrl-C during that pass leaves nothing behind; later
# it ends the search with the model so far, and ``resume`` continues with the same sample.
#
# ``--dry-run`` reports beforehand whether all rows fit. It has to read the files, but the later run
# reuses the planes that it writes. Replicates (``--bootstrap``) need all rows in memory and are
# refused if they do not fit.
#
# Many columns
# ------------
# The number of pairs grows with the square of the number of columns. The search first tests the
# pairs that the data rank highest, then those near the edges found so far, then the rest. Up to two
# million pairs (2,000 columns), all are tested; beyond that, two million, or 10 per column if that
# is more. These budgets can be set:
#
# - ``max_tables``: stop when this many different pairs have been scored;
# - ``max_edges``: stop at this many active edges;
# - ``max_time``: stop after this many seconds (the only budget whose result depends on the
#   machine).
#
# A budget ends only the search: the edges found so far are still tested, cut and refitted.

from edgegraft.learn import Monitor, Plan, certify, discover

wide = make_scale_free(
    200, n_states=2, n_rows=2000, couplings="ising", coupling_range=(0.2, 0.5), random_state=0
)
packed = pack(wide.X)
truth = set(map(tuple, wide.edges.tolist()))
runs, watch = {}, Monitor(truth=wide.edges)
for max_tables in (1_500, 5_000, None):
    plan = Plan(max_tables=max_tables)
    observers = [watch] if max_tables is None else []
    found = runs[max_tables] = discover(packed, plan, observers=observers)
    edges = set(map(tuple, found.model.edges.tolist()))
    print(f"max_tables={max_tables}: {found.search.n_tables:,} of 19,900 pairs scored,")
    print(f"  {len(edges & truth)} of {len(truth)} true edges, {len(edges - truth)} false;")
    print(f"  {found.search.reason}")

# %%
# Most true edges are among the pairs that are tested first:

import matplotlib.pyplot as plt

trajectory = watch.columns()
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(trajectory["n_tables"], trajectory["recall"], color="#0072b2", marker=".")
ax.set(xlabel="pairs scored, of 19,900", ylabel="recall before the cut", ylim=(0, 1.02))
ax.set_xscale("symlog", linthresh=100)

# %%
# The certificate shows what the budget missed. It scores the pairs outside the model at the fitted
# parameters: all of them up to 200,000, otherwise a random sample of that size, with an upper bound
# (95 % confidence) on the share of violating pairs. ``largest`` is the largest excess over the
# threshold.

print(runs[1_500].certificate)
print(runs[None].certificate)
print(certify(runs[1_500].search, max_pairs=3_000))

# %%
# The last line is based on a sample of 3,000 pairs: an estimate with a bound, not a proof.
#
# From a shell, ``edgegraft learn survey.csv -o survey.edgegraft --dry-run`` reports memory and time
# beforehand. ``n_jobs`` (``--jobs``) sets the number of threads and never changes the result.
#
# Many categories
# ---------------
# The table of an edge has ``s_i * s_j`` cells, and a rare category has few rows to estimate any of
# them. Columns with more than 65,535 categories are refused, and so are columns whose states would
# need more than 1 GiB to compare. A text column with a different value in every row is treated as
# an identifier. Each message names the column and a remedy.

from edgegraft.errors import DataError

try:
    pack({"name": [f"person {k}" for k in range(100)], "smoker": ["no", "yes"] * 50})
except DataError as error:
    print(error)

# %%
# Numbers are binned; you choose the number of bins.

ages = pack({"age": [18, 25, 31, 40, 52, 67] * 20, "smoker": ["no", "yes"] * 60}, bins={"age": 3})
print(ages.schema["age"].categories)

# %%
# If the rows do not fit on one disk, use a cluster: :doc:`/cluster`.
