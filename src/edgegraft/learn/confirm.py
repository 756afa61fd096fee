"""Which edges of a search are kept: none that has not passed a test.

    test all edges -> keep -> let the kept model take back what it needs -> test what changed

Edges that were found together can hide each other: two copies of a column explain each other's
links away, and in a cold model a column that its neighbours nearly determine leaves no information
to test an edge with. So what the first tests cut is tested again on the model of what they kept,
as an edge that is added to it. The strongest come first, in batches of edges that share no column,
and each that passes is part of the model that the next ones are tested on.

A spanning tree of the strongest dependences is kept while the other edges are tested on it, then
tested itself: without the edges of a hub, pairs of its leaves stand in for them and pass any test.

If many edges of the search cannot be tested, a fit of all pairs
(:mod:`~edgegraft.learn.second_look`) gives further candidates, and the network is built from
nothing in the order of its strengths: columns are so alike that a tree of them is of chance.

Tests are made on a fit with a ridge that weighs as a tenth of a row: what a larger ridge leaves
unexplained makes copies of edges significant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgegraft.core.pairs import all_pairs
from edgegraft.core.types import Edges, Floats, Mask
from edgegraft.counts import PairCounts
from edgegraft.learn import steps
from edgegraft.learn.certificate import MAX_PAIRS
from edgegraft.learn.copies import Copies, find_copies
from edgegraft.learn.edge_tests import EdgeTests, make_tester
from edgegraft.learn.events import StopReason
from edgegraft.learn.journal import Journal
from edgegraft.learn.kept_network import Cut, KeptNetwork
from edgegraft.learn.problem import ALL_PAIRS
from edgegraft.learn.second_look import JointStrengths, fit_jointly, is_affordable
from edgegraft.learn.stages import Stages
from edgegraft.learn.state import SearchState
from edgegraft.model import PairwiseMRF
from edgegraft.objective.penalties import NoisePenalty, noise_weights
from edgegraft.search.correlations import Correlations
from edgegraft.search.structure import spanning_tree
from edgegraft.table.blocks import TableRows

_DETERMINED = 0.3  # share of a column's variance that its neighbours leave unexplained
_COMPLETE = StopReason.OPTIMAL, StopReason.GIVEN_UP, StopReason.SECOND_LOOK
_MANY_DETERMINED = 0.3  # share of the columns
_MAX_LOOKS = 3  # at pairs outside of the search
_FEW = 10  # untestable edges that are not worth a warning
_MANY_UNTESTABLE = 0.1  # share of the edges of a search


class Confirmation(NamedTuple):
    """The edges of a search after their tests."""

    tests: EdgeTests  # the last test of each edge of the search, in its order
    kept: Mask
    #: in the model of all edges of the search; zero for pairs that were added later
    strengths: Floats
    #: share of edges whose test had no information, at first or at last, if that is more
    untestable: float
    copies: Copies
    joint: JointStrengths | None  # strengths of all pairs, if the network was built in their order
    model: PairwiseMRF  # of the kept edges, hardly shrunk

    @property
    def doubtful(self) -> bool:
        """Whether tests could not decide about many of the edges."""
        many = self.joint is not None or _are_many(self.untestable, len(self.kept))
        return many and bool(self.kept.any())


def confirm(search: SearchState, stages: Stages, drawn: Mask | None = None) -> Confirmation:
    """Test the edges of a search, and return which of them are kept at the level of a plan.

    Edges that the search lacks, of the spanning tree or of the fit of all pairs, are added to it.
    If missing cells have been `drawn`, the search is over the rows that are filled in so.
    """
    plan = stages.plan
    # A given threshold holds for every edge, and so does a spent budget.
    widen = plan.penalty == "auto" and search.reason in _COMPLETE
    journal = search.problem.journal
    tree, copies = _tree(stages.sample, widen, journal)
    joint = None
    found = search.graph.layout.edges
    required = search.problem.rules.required
    steps.adopt(search, np.concatenate((tree, copies.stand_ins(found), required)))
    features = search.objective.features
    rows = stages.filled or stages.sample
    tester = make_tester(features, rows, plan.n_jobs, **stages.variance, drawn=drawn)
    cut = Cut.of(plan, search.objective, search.problem.rules)
    network = KeptNetwork(search, tester, cut, copies)
    network.test_all()
    untestable = network.untestable
    hard = _are_many(untestable, len(network.edges))
    if widen and (hard or _many_determined(search)) and is_affordable(search.objective):
        joint = fit_jointly(search.solution.objective, journal)
        steps.adopt(search, copies.stand_ins(joint.strongest(len(search.graph))))
        network = KeptNetwork(search, tester, cut, copies)
        network.test_all()
    strengths = network.model().edge_strengths()
    ranked_by = joint if hard else None
    if ranked_by is None:
        network.keep_tree(tree)
    else:
        network.clear()
    network.take_back(ranked_by)
    network.test_changed()
    if widen and ranked_by is None:
        _look_outside(search, network, copies)
        strengths = np.pad(strengths, (0, len(network.edges) - len(strengths)))
    if ranked_by is None:
        untestable = max(untestable, network.untestable)
    return Confirmation(
        network.tests(), network.kept, strengths, untestable, copies, ranked_by, network.model()
    )


def _look_outside(search: SearchState, network: KeptNetwork, copies: Copies) -> None:
    """Test pairs that the search left out and the kept model lacks, until there are none."""
    n = len(search.objective.schema)
    if n * (n - 1) // 2 > MAX_PAIRS:
        return
    for _ in range(_MAX_LOOKS):
        pairs = all_pairs(n)
        rules = search.problem.rules
        pairs = pairs[~search.graph.contains(pairs) & copies.shown(pairs) & rules.allows(pairs)]
        new = pairs[search.exceeds(network.scores(pairs), pairs)] if len(pairs) else pairs
        if not len(new):
            return
        steps.adopt(search, new)
        network.extend(new)
        network.take_back()
        network.test_changed()


def _tree(rows: TableRows, wanted: bool, journal: Journal) -> tuple[Edges, Copies]:
    """Return the spanning forest of significant dependences, and the copies among the columns.

    Neither is looked for if it is not wanted, or if there are too many columns to compare all.
    """
    n = len(rows.schema)
    if not wanted or n * (n - 1) // 2 > ALL_PAIRS:
        return np.empty((0, 2), np.int64), Copies(np.arange(n))

    def find() -> Floats:
        counts = PairCounts(rows)
        tree = spanning_tree(Correlations(counts))
        return np.concatenate((find_copies(counts, tree).first, tree.ravel())).astype(float)

    found = journal.step(find).astype(np.int64)
    copies = Copies(found[:n])
    return copies.stand_ins(found[n:].reshape(-1, 2)), copies


def _are_many(share: float, n_edges: int) -> bool:
    return share > _MANY_UNTESTABLE and share * n_edges >= _FEW


def _many_determined(search: SearchState) -> bool:
    """Return whether a second look found many columns that their neighbours nearly determine."""
    rule = search.penalty
    if not search.sharpened or not isinstance(rule, NoisePenalty) or rule.noise is None:
        return False
    margins = noise_weights(search.objective).spread
    determined = np.square(rule.noise.spread) < _DETERMINED * np.square(margins)
    return bool(determined.mean() > _MANY_DETERMINED)
