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
     - the stages that have ended
     - from a checkpoint: the stage that was under way begins again

A run is a sequence of stages: a search over each sample of rows and over all rows, decisions about
edges, the last fit, shares, effects, scores, a model for prediction, replicates. The checkpoint has
the result of each stage that has ended. It is written to a temporary file that is then renamed, so
it is complete or absent, and consists of plain arrays with a checksum. **A run that was killed and
then resumed gives the same bits as one that was never stopped**, for any number of threads, and
repeats at most one stage.

**A search that was interrupted, or whose budget was spent, goes on from its graph** when it is
resumed, in the second case with a larger budget. Its candidates are ranked again, so edges near the
cut may differ from those of a search that was never stopped. ``max_tables`` is not such a budget: a
search that has scored as many pairs has ended.

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
# The file does not contain the rows: give the same table again. Other rows or columns are refused,
# and another plan is; without one it is that of the file.

resumed = resume_discovery(path, table)
whole = discover(table, plan)
print(resumed.search.reason, "with", len(resumed.model.edges), "edges")


def pairs(model):
    return {tuple(edge) for edge in model.edges.tolist()}


print("edges that differ:", len(pairs(resumed.model) ^ pairs(whole.model)))

# %%
# A budget that was spent can be raised:

path = folder / "budget.checkpoint"
stopped = discover(table, Plan(max_edges=8), checkpoint=path)
print(stopped.search.reason, "with", len(stopped.model.edges), "edges")
raised = resume_discovery(path, table, max_edges=100)
whole = discover(table, Plan(max_edges=100))
print("edges that differ:", len(pairs(raised.model) ^ pairs(whole.model)))

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
