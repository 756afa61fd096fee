"""
Large data
==========

Three things can be large: the rows, the columns, and the categories of a column. For each, this
page says what it costs, what is done about it, and what you can set. (The sizes here are small, so
that the page is built in seconds; :doc:`Benchmarks </benchmarks>` has large ones.)

Many rows
---------
A file is read in batches and packed into bit planes: one bit a cell for a binary column, ``s - 1``
bits for ``s`` states. Memory is the planes plus a few batches, whatever the size of the file.
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
# Pack once, use often: a packed table can be saved, and is then mapped into memory, not read. Only
# what is counted is touched, and several processes share one copy.

table.save(folder / "survey.packed")
mapped = PackedTable.open(folder / "survey.packed")
print(mapped.schema == table.schema, mapped.n_rows)

# %%
# Everything that takes a table takes the packed one, :class:`~edgegraft.GraftedMRF` included.
#
# Counting a pair of columns is AND and popcount over the planes. All 435 pairs, over 50,000 rows:

from time import perf_counter

import numpy as np

from edgegraft import PairCounts

counts = PairCounts(mapped)
every_pair = np.stack(np.triu_indices(30, 1), axis=1)
counts.pairs(every_pair[:1])  # the first call of a process loads the kernel
began = perf_counter()
counts.pairs(every_pair)
print(f"{1e6 * (perf_counter() - began) / len(every_pair):.1f} microseconds a pair")

# %%
# The pseudolikelihood visits the rows at every evaluation, so its time grows with them; the
# likelihood needs the counts alone (:ref:`choosing <sphx_glr_tutorials_guide_choosing.py>`). Where
# rows abound, a network of a sample is often as good: edges that 100,000 rows do not show are weak.
#
# Rows that do not fit in memory
# ------------------------------
# Several files are one table: give their folder, or a pattern. ``max_memory`` says what a fit may
# take (by default half of the machine's memory, for files above an eighth of it). Where the rows do
# not fit, one pass over the files writes their bit planes to disk; the search begins on a sample
# that fits and ends over all rows, block by block. The tests of edges are those of the sample, and
# all the rest, the last fit and the certificate among them, is of all rows.

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
print(*done.stderr.replace(str(folder), "...").splitlines()[-16:], sep="\n")

# %%
# In Python that is ``GraftedMRF(max_memory="1020 MiB", n_jobs=1, cache_dir="planes").fit("rows")``;
# a pattern (``"rows/*.csv"``, on a shell in quotes), an Arrow stream or a single file do as well.
# The limit is shared out by estimates, and not enforced. The sample depends on the limit alone; so
# that the result does not depend on threads, those that the limit has no room for are not started.
#
# The planes stay in the folder, by default in the user's cache (or what the environment variable
# ``EDGEGRAFT_CACHE`` names), and are found again as long as the files are the same; those not used
# for longest make way when all take more than ``cache_size``, 32 GiB if nothing is said. A terminal
# shows the rows read, their speed and the time left. Ctrl-C during that pass leaves nothing behind;
# later it ends the search with the model so far, and ``resume`` goes on with the same sample.
#
# ``--dry-run`` says beforehand whether all rows fit. It reads the files for that, and the planes
# that it makes are those that the run finds. Replicates (``--bootstrap``) need all rows in memory,
# and are refused where these do not fit.
#
# Many columns
# ------------
# Pairs grow with the square of the columns. The search tests the pairs that the data rank first,
# then those near the edges found so far, then the rest. Up to two million pairs (2,000 columns) all
# are tested; beyond, 300 a column. Each of these can be set:
#
# - ``max_tables``: stop when so many different pairs have been scored;
# - ``max_edges``: stop at so many active edges;
# - ``max_time``: stop after so many seconds (the one budget whose result depends on the machine).
#
# A budget ends the search, not the work: what was found is still tested, cut and refitted.

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
    print(f"max_tables={max_tables}: {found.growth.n_tables:,} of 19,900 pairs scored,")
    print(f"  {len(edges & truth)} of {len(truth)} true edges, {len(edges - truth)} false;")
    print(f"  {found.growth.reason}")

# %%
# Most of what there is to find is found among the pairs that are tested first:

import matplotlib.pyplot as plt

course = watch.columns()
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(course["n_tables"], course["recall"], color="#0072b2", marker=".")
ax.set(xlabel="pairs scored, of 19,900", ylabel="recall before the cut", ylim=(0, 1.02))
ax.set_xscale("symlog", linthresh=100)

# %%
# What did the budget miss? The certificate answers. It scores the pairs outside the model at the
# fitted parameters: all of them up to 200,000, otherwise as many at random, with an upper bound
# (95 % confidence) of the share that violates. ``largest`` is how far beyond the threshold the
# worst one is.

print(runs[1_500].certificate)
print(runs[None].certificate)
print(certify(runs[1_500].growth, max_pairs=3_000))

# %%
# The last line is what a sample of 3,000 pairs says: an estimate with its bound, not a proof.
#
# From a shell, ``edgegraft learn survey.csv -o survey.edgegraft --dry-run`` tells memory and time
# beforehand. ``n_jobs`` (``--jobs``) sets threads and changes no result.
#
# Many categories
# ---------------
# A table of an edge has ``s_i * s_j`` cells, and a rare category has few rows to tell about any of
# them. Columns with more than 65,535 categories are refused, as are those whose states would take
# more than 1 GiB to compare; a text column in which every row differs is taken for an identifier.
# Each message names the column and the remedy.

from edgegraft.errors import DataError

try:
    pack({"name": [f"person {k}" for k in range(100)], "smoker": ["no", "yes"] * 50})
except DataError as error:
    print(error)

# %%
# Numbers are cut into bins, as many as you say.

ages = pack({"age": [18, 25, 31, 40, 52, 67] * 20, "smoker": ["no", "yes"] * 60}, bins={"age": 3})
print(ages.schema["age"].categories)

# %%
# Rows that do not fit one disk are for a cluster: :doc:`/cluster`.
