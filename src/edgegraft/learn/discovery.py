"""From a table to a network and a model, without tuning.

    rank -> admit (best-choice grafting) -> dismiss -> admit again -> dismiss -> fit -> report

The search is relaxed by default (see :class:`~edgegraft.config.Settings`), and its threshold is the
level that chance exceeds about once per variable, so it ends with nearly all true edges and some
false ones; the tests of :mod:`~edgegraft.learn.edge_tests` separate them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.config import Plan
from edgegraft.core.pairs import find_pairs
from edgegraft.core.threads import Interruption, interruptible, one_blas_thread
from edgegraft.core.types import Edges, Floats, Mask, Tree
from edgegraft.errors import IdentificationWarning
from edgegraft.grafting.events import Observer
from edgegraft.grafting.problem import last_ridge
from edgegraft.grafting.state import SearchState
from edgegraft.learn.aims import fit_for_aim
from edgegraft.learn.certificate import Certificate, ScoredPairs, certify, score_inactive
from edgegraft.learn.checkpoint import StageFile
from edgegraft.learn.completion import decide
from edgegraft.learn.confirm import Confirmation
from edgegraft.learn.edge_tests import EdgeTests, judge_tables
from edgegraft.learn.effects import LEVEL, Effects, edge_effects
from edgegraft.learn.last_fits import last_fit
from edgegraft.learn.margins import Agreement, match_margins, warn_of_shares
from edgegraft.learn.pair_ranking import PairRanking, rank_all_pairs
from edgegraft.learn.prediction import Prediction
from edgegraft.learn.stages import Stages
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable
from edgegraft.table.blocks import SAMPLE_ROWS, Rows

_SECOND_MODE = (
    "It may have a second mode, in which chains stay: its edges hold, but its probabilities are "
    "off; fewer edges (a smaller fdr=) may help"
)
_SHOWN = 5  # groups of copies that are warned of: more would hide other warnings


class Discovery(NamedTuple):
    """A network, its model, and how both were learned.

    Attributes
    ----------
    model : PairwiseMRF
        The model of the kept edges.
    kept : array of bool
        Which of the edges that the search found are kept.
    tests : EdgeTests
        Tests of all edges that the search found, in its order.
    search_norms : array of float
        Norms of the tables of those edges in the search's own model, before the cut; strengths of
        the network are ``model.edge_strengths()``.
    search : SearchState
        The search: trajectory, reason, counters.
    certificate : Certificate
        Of the network: which pairs outside of it the search would still take. Pairs that a test
        has cut may be among them. If nothing is cut, or not refitted, it is the search's.
        Taken at the parameters of the pseudolikelihood, before shares are matched to the data's.
    converged : bool
        Whether the last fits, of the search and of the model, reached their tolerance.
    ridge : float
        Weight of the squared norms in the last fit.
    plan : Plan
        Settings of the discovery.
    interrupted : bool
        Whether Ctrl-C was pressed.
    copies : list of lists of str
        Columns that are copies of each other; their links are shown at the first of them.
    ranking : PairRanking or None
        All pairs in the order of evidence; None if edges were not cut by tests.
    prediction : Prediction or None
        The model that predicts new rows best, if the plan aims at that or at whole rows.
    agreement : Agreement or None
        How far the shares of the final model are from the data's, if it was computed.
    """

    model: PairwiseMRF
    kept: Mask
    tests: EdgeTests
    search_norms: Floats
    search: SearchState
    certificate: Certificate
    converged: bool
    ridge: float
    plan: Plan
    interrupted: bool = False
    copies: Sequence[Sequence[str]] = ()
    ranking: PairRanking | None = None
    prediction: Prediction | None = None
    agreement: Agreement | None = None

    @property
    def final_model(self) -> PairwiseMRF:
        """The model that answers questions: that for prediction or rows, if that was the aim."""
        return self.model if self.prediction is None else self.prediction.model


def discover(
    table: PackedTable | Rows,
    plan: Plan | None = None,
    *,
    weights: ArrayLike | None = None,
    design: SurveyDesign | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    observers: Sequence[Observer] = (),
    sample_rows: int = SAMPLE_ROWS,
) -> Discovery:
    """Learn the network of a table's columns, and a model of its rows.

    Parameters
    ----------
    table : PackedTable or Rows
        Rows in memory, or in blocks on disk or on a cluster. Blocks are learned from first by a
        sample and then by all rows (see :mod:`~edgegraft.learn.stages`).
    plan : Plan, optional
    weights : array of float, shape (n_rows,), optional
        Row weights of a table: a row of weight 2 counts as two rows. `Rows` have their own weights.
    design : SurveyDesign, optional
        Strata and clusters of the rows of a table, for the tests of edges.
    checkpoint : path, optional
        File for :func:`resume_discovery`, written when a stage ends.
    observers : sequence of Observer
        Notified of every step of the search; each may end it.
    sample_rows : int, default 524288
        Rows in blocks are sampled: this many are read into memory, for the first steps and for the
        edge tests. If there are no more rows than that, they are treated like a table in memory.

    Notes
    -----
    The first Ctrl-C ends the search after the current step; edges found so far are tested and
    fitted as usual. A second one raises KeyboardInterrupt.

    Examples
    --------
    >>> from edgegraft.datasets import make_chain
    >>> data = make_chain(6, n_states=3, n_rows=3000, random_state=0)
    >>> found = discover(PackedTable.from_codes(data.X.astype(int)))
    >>> sorted(map(tuple, found.model.edges.tolist()))
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    """
    with interruptible() as interruption, one_blas_thread():  # tests use the threads
        file = StageFile(checkpoint)
        stages = Stages(table, plan or Plan(), weights, sample_rows, design, file)
        return _learn(stages, observers, interruption)


def resume_discovery(
    path: str | os.PathLike[str],
    table: PackedTable | Rows,
    plan: Plan | None = None,
    *,
    weights: ArrayLike | None = None,
    design: SurveyDesign | None = None,
    observers: Sequence[Observer] = (),
    max_time: float | None = None,
    max_edges: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
) -> Discovery:
    """Resume from a checkpoint of :func:`discover`, over the same rows and with the same plan.

    Without a plan the checkpoint's is used. Stages that have ended are not repeated, and the
    result of a run that was killed is, to the last bit, the result of an uninterrupted one.

    A search that Ctrl-C, an observer or a budget ended goes on from its graph, in the last case if
    its budgets are others: `max_time` seconds and `max_edges` edges of the plan or given here,
    which include the search so far.
    """
    budgets: dict[str, Any] = {"max_time": max_time, "max_edges": max_edges}
    file = StageFile.read(path)
    with interruptible() as interruption, one_blas_thread(), file.proper():
        plan = replace(plan or file.plan, **{k: v for k, v in budgets.items() if v is not None})
        stages = Stages(table, plan, weights, sample_rows, design, file)
        return _learn(stages, observers, interruption)


def _learn(stages: Stages, observers: Sequence[Observer], interruption: Interruption) -> Discovery:
    plan, file = stages.plan, stages.file
    ended = stages.search(observers)  # rank, admit
    converged = ended.solution.info.converged  # before tests add edges
    search, network = decide(ended, stages)  # dismiss, admit again, dismiss
    tests, kept = network.tests, network.kept
    fitted, fit_converged, final = last_fit(search, kept, plan, file)
    converged = converged and fit_converged
    matched, agreement = _match_shares(fitted, search, stages)
    model = matched.with_edge_columns(
        _edge_columns(matched.edges, network.model, tests, stages, search)
    )
    made = None
    if plan.aim != "network":
        made, agreement = fit_for_aim(stages, ended.objective, lambda: interruption.asked)
        made = made.with_columns_of(model)
        converged = converged and made.converged
    final = final if plan.cuts else search
    scored = ScoredPairs(**file.stage("scores", lambda: score_inactive(final)._asdict()))
    return Discovery(
        model,
        kept,
        tests,
        (search.model() if plan.cuts else network.model).edge_strengths(),
        _over_given_rows(search, ended),
        certify(final, scored, cut=tests.edges[~kept]),
        converged,
        last_ridge(plan, search.objective) if plan.refit else search.penalty.ridge,
        plan,
        interrupted=interruption.asked,
        copies=_warn_of_copies(network, model.names),
        ranking=rank_all_pairs(network, scored, search.penalty) if plan.cuts else None,
        prediction=made,
        agreement=agreement,
    )


def _match_shares(
    model: PairwiseMRF, search: SearchState, stages: Stages
) -> tuple[PairwiseMRF, Agreement | None]:
    """Return the last model with the shares of the data, and how well they agree."""
    plan, features = stages.plan, search.objective.features
    if not plan.refit or plan.objective != "pseudolikelihood":
        return model, None

    def match() -> Tree:
        ridge, seed = last_ridge(plan, search.objective), plan.random_state
        found, agreement = match_margins(
            model, stages.counts(), ridge, features=features, seed=seed
        )
        return {"theta": found.theta, "agreement": agreement and agreement.tree()}

    tree = stages.file.stage("shares", match)
    matched = PairwiseMRF(model.schema, model.edges, tree["theta"], model.edge_columns)
    agreement = Agreement.of_tree(tree["agreement"])
    if plan.aim == "network":
        warn_of_shares(agreement, _SECOND_MODE)
    return matched, agreement


def _over_given_rows(search: SearchState, ended: SearchState) -> SearchState:
    """Return a search over rows with drawn cells, which nobody else has, over those given."""
    if search is ended:
        return search
    found = search.warm(replace(search.problem, objective=ended.objective))
    found.reason, found.events = ended.reason, ended.events
    return found


def _warn_of_copies(confirmed: Confirmation, names: Sequence[str]) -> list[list[str]]:
    """Return the columns that are copies of each other; warn of what rows cannot distinguish."""
    copies = [[names[i] for i in group] for group in confirmed.copies.groups()]
    for group in copies[:_SHOWN]:
        warnings.warn(
            f"columns {', '.join(map(repr, group))} are copies of each other: their links are "
            f"shown once, at {group[0]!r}; leave out the others with drop=",
            IdentificationWarning,
            stacklevel=5,
        )
    if confirmed.rivals:
        pairs = [f"{names[i]!r} and {names[j]!r}" for i, j in confirmed.rivals[:_SHOWN]]
        more = len(confirmed.rivals) - len(pairs)
        listed = "; ".join(pairs) + (f"; and {more:,} others" if more else "")
        warnings.warn(
            "the rows hardly tell which of their columns are linked: more pairs nearly pass their "
            f"tests than chance explains, of those that are no edges {listed}. Edges may be "
            "missing, and more of those kept may be false than fdr allows; pair_ranking_ ranks all "
            "pairs",
            IdentificationWarning,
            stacklevel=5,
        )
    return copies


def _edge_columns(
    edges: Edges, tested: PairwiseMRF, tests: EdgeTests, stages: Stages, search: SearchState
) -> dict[str, Any]:
    """Return strengths, effects and tests of edges of the last model, in its order."""
    n, jobs = tested.layout.n_variables, stages.plan.n_jobs
    place, at = (find_pairs(edges, other.edges, n) for other in (tested, tests))

    def work_out() -> Tree:
        rows, p_rest = stages.filled or stages.sample, None
        if tests.groups is not None:
            p_rest = tests.groups.p_rest[find_pairs(tested.edges, tests.edges, n)]
        given = ConditionalRows(
            rows.table,
            rows.weights,
            search.objective.features,
            **stages.variance,
            drawn=stages.drawn,
        )
        return edge_effects(tested, given, LEVEL, p_rest=p_rest, n_jobs=jobs)._asdict()

    effects = Effects(**stages.file.stage("effects", work_out)).columns()
    columns: dict[str, Any] = {name: values[place] for name, values in effects.items()}
    for name in ("statistic", "dof", "p_value", "q_value"):
        columns[name] = getattr(tests, name)[at]
    if tests.groups is None:
        return columns

    def test_whole() -> Tree:
        return {"p_table": judge_tables(tested, stages.sample, jobs, **stages.variance)}

    whole = stages.file.stage("tables", test_whole)["p_table"][place]
    return columns | tests.groups.columns(at) | {"p_table": whole}
