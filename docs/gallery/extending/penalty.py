"""
Add a penalty
=============

A :class:`~edgegraft.objective.Penalty` defines the cost of an edge. One number per edge, the weight
``d_e``, determines both how its table is shrunk and when a pair may enter::

    F = L + penalty * sum_e d_e ||w_e|| + ridge * ||w||^2
    a pair enters if ||grad_e L|| / d_e > penalty

Both must use the same weights, or the search and the objective disagree. In the library both call
``edge_weights``, so a penalty with other weights is a subclass with that one method.

Prior knowledge
---------------
Suppose that columns are places, and that neighbours are more likely to depend on each other. This
penalty makes edges between neighbours cheaper, without forbidding any other edge.
"""

from dataclasses import dataclass, field

import numpy as np

from edgegraft.objective import Penalty


@dataclass(frozen=True)
class PriorPenalty(Penalty):
    """Group-l1 with one factor per pair.

    Parameters
    ----------
    factors : array of float, shape (n, n), symmetric
        Below 1 for pairs that are expected to have an edge.
    """

    factors: np.ndarray = field(default=None, compare=False, repr=False)

    def edge_weights(self, edges, cells):
        return super().edge_weights(edges, cells) * self.factors[edges[:, 0], edges[:, 1]]


# %%
# It is a frozen dataclass because the library makes modified copies (other levels of a path,
# weights from the data) with ``dataclasses.replace``, which keeps additional fields.
#
# The data are a grid of 6 x 6 places with weak couplings and few rows.

from edgegraft import pack
from edgegraft.datasets import make_grid
from edgegraft.learn import Settings, certify, grow
from edgegraft.objective import Pseudolikelihood

side = 6
data = make_grid(
    side, side, n_rows=300, couplings="ising", coupling_range=(0.15, 0.35), random_state=0
)
truth = set(map(tuple, data.edges.tolist()))
row, column = np.divmod(np.arange(side * side), side)
distance = abs(row[:, None] - row) + abs(column[:, None] - column)
factors = np.where(distance <= 2, 1.0, 1.5)  # places within two steps count as neighbours

loss = Pseudolikelihood(pack(data.X))
penalised = Settings(relaxed=False, tol=1e-4)  # the fit uses the penalty as well


def quality(growth):
    found = set(map(tuple, growth.model().edges.tolist()))
    right = len(found & truth)
    return right / max(1, len(found)), right / len(truth)


levels = np.geomspace(0.04, 0.16, 9)
curves = {"plain": [], "with prior": []}
for level in levels:
    curves["plain"].append(quality(grow(loss, Penalty(level), penalised)))
    curves["with prior"].append(
        quality(grow(loss, PriorPenalty(level, factors=factors), penalised))
    )

# %%
# At high recall the prior avoids false edges, and it adds none elsewhere:

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for (name, points), colour in zip(curves.items(), ("#8a8a8a", "#0072b2"), strict=True):
    precision, recall = np.array(points).T
    ax.plot(recall, precision, marker="o", color=colour, label=name)
ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
ax.legend(frameon=False)

# %%
# Check it
# --------
# The certificate holds for the new weights just as for the old: at the end no pair violates *its
# own* condition, and the active groups are stationary.

growth = grow(loss, PriorPenalty(0.08, factors=factors), penalised)
print(certify(growth))

# %%
# A penalty should also satisfy its definition: the proximal step is a minimum.

layout = growth.graph.layout
rng = np.random.default_rng(0)
theta = rng.normal(size=layout.n_parameters)
step, penalty = 0.7, growth.penalty


def proximal_objective(w):
    return ((w - theta) ** 2).sum() / (2 * step) + penalty.value(w, layout)


moved = penalty.prox(theta, step, layout)
nearby = [moved + 1e-3 * rng.normal(size=len(theta)) for _ in range(200)]
print(proximal_objective(moved) <= min(map(proximal_objective, nearby)))

# %%
# Current limits
# --------------
# - Weights can be any positive numbers, but the *form* is fixed. The solver's kernels implement
#   norms of groups and squares (``groups`` of :class:`~edgegraft.objective.Penalty` defines the
#   groups), so a penalty of another form, such as MCP or a nuclear norm, needs its own kernels.
# - ``GraftedMRF`` and ``Plan`` create their own penalty; pass yours to
#   :func:`~edgegraft.learn.grow`, which writes no checkpoint.
