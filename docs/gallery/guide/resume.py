"""
Stop and resume
===============

A long search can stop in three ways, and none of them loses the work.

.. list-table::
   :header-rows: 1
   :widths: 24 40 36

   * - what happens
     - what you have
     - how to resume
   * - a budget is spent (``max_time``, ``max_edges``)
     - the network found so far, tested and refitted; ``reason_`` names the budget
     - from a checkpoint, with a larger budget (``resume --max-time``, ``--max-edges``)
   * - Ctrl-C
     - the same, with a ConvergenceWarning and ``reason_`` "interrupted"; a second Ctrl-C aborts
     - from a checkpoint
   * - the process is killed, or the machine goes down
     - the last checkpoint
     - from that checkpoint

A checkpoint is written every 10 activations, to a temporary file that is then renamed, so it is
complete or absent. It consists of plain arrays with a checksum. **A run that was interrupted or
killed and then resumed gives the same bits as one that was never stopped**, for any number of
threads.

**So does a run whose budget was spent and that is resumed with a larger one**: it is the run that
had the larger budget from the beginning. A budget can cut a step short, after which the search
would take another order; the checkpoint therefore also has the search as it was before, and a
larger budget continues from there, for which up to one step is repeated. ``max_tables`` is not such
a budget: a search that has scored as many pairs has ended.

In Python
---------
``GraftedMRF.fit`` calls :func:`~edgegraft.learn.discover`, which takes the path of a checkpoint and
observers. This observer stops the search after a number of activations. (The strategy adds one edge
at a time, so that the search is long enough to be stopped although the table is small.)
"""

import tempfile
from pathlib import Path

from edgegraft import pack
from edgegraft.datasets import make_scale_free
from edgegraft.learn import Plan, discover, resume_discovery

folder = Path(tempfile.mkdtemp())
data = make_scale_free(20, n_states=3, n_rows=3000, random_state=0)
table = pack(data.X)


class StopAfter:
    def __init__(self, n_activations):
        self.n_activations = n_activations

    def on_event(self, event, growth):
        return event.n_activations >= self.n_activations


plan = Plan(strategy="exhaustive")
path = folder / "survey.checkpoint"
stopped = discover(table, plan, checkpoint=path, observers=[StopAfter(25)])
print(stopped.search.reason, "with", len(stopped.model.edges), "edges")

# %%
# The file does not contain the rows: give the same table and plan again. Other rows or columns are
# refused.

resumed = resume_discovery(path, table, plan)
whole = discover(table, plan)
print(resumed.search.reason, "with", len(resumed.model.edges), "edges")
print("the same bits:", resumed.model == whole.model)

# %%
# A budget that was spent can be raised:

path = folder / "budget.checkpoint"
stopped = discover(table, Plan(max_edges=8), checkpoint=path)
print(stopped.search.reason, "with", len(stopped.model.edges), "edges")
raised = resume_discovery(path, table, Plan(max_edges=100), max_edges=100)
print("the same bits:", raised.model == discover(table, Plan(max_edges=100)).model)

# %%
from edgegraft.errors import FileFormatError

path = folder / "survey.checkpoint"
try:
    resume_discovery(path, pack(data.X[:2000]), plan)
except FileFormatError as error:
    print(str(error).replace(str(folder), "..."))

# %%
# The trace of the resumed run covers both parts, and its clock continues from the first part.

from edgegraft.report import plot_trace

plot_trace(resumed.search.trace())

# %%
# On the command line
# -------------------
# ``learn --checkpoint FILE`` writes the checkpoint, and the options beside it; ``resume FILE``
# needs nothing else, and accepts other budgets. Here the process is killed as soon as there is a
# checkpoint, without a chance to clean up.

import shutil
import subprocess
import sys
import time

import pandas as pd

pd.DataFrame(data.X).add_prefix("q").to_csv(folder / "survey.csv", index=False)
command = shutil.which("edgegraft", path=Path(sys.executable).parent) or "edgegraft"
learn = "learn survey.csv -o survey.edgegraft --checkpoint run.checkpoint --strategy exhaustive"

process = subprocess.Popen([command, *learn.split()], cwd=folder, stderr=subprocess.DEVNULL)
written = [folder / "run.checkpoint", folder / "run.checkpoint.json"]
while not all(file.exists() for file in written) and process.poll() is None:
    time.sleep(0.01)
process.kill()
print("killed:", process.wait() != 0, "- model written:", (folder / "survey.edgegraft").exists())

# %%
done = subprocess.run(
    [command, "resume", "run.checkpoint", "--top", "3"],
    cwd=folder,
    capture_output=True,
    text=True,
    check=True,
)
print(done.stdout)

# %%
from edgegraft import load

plan = Plan(strategy="exhaustive")
unbroken = discover(pack(folder / "survey.csv"), plan)
print("the same bits:", load(folder / "survey.edgegraft") == unbroken.model)
