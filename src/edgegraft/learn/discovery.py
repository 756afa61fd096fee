"""From a table to a network and a model, without tuning.

    rank -> admit (best-choice grafting) -> dismiss -> admit again -> dismiss -> fit -> report

The search is relaxed by default (see :class:`~edgegraft.config.Settings`), and its threshold is the
level that chance exceeds about once per variable, so it ends with nearly all true edges and some
false ones; the tests of :mod:`~edgegraft.learn.edge_tests` separate them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.conditional import judge
from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.config import Plan
from edgegraft.core.pairs import find_pairs
from edgegraft.core.threads import Interruption, interruptible, one_blas_thread
from edgegraft.core.types import Floats, Mask, Tree
from edgegraft.errors import ConvergenceWarning, DataError, IdentificationWarning
from edgegraft.grafting.events import Observer
from edgegraft.grafting.problem import last_ridge
from edgegraft.grafting.state import SearchState
from edgegraft.learn.by_likelihood import Refit, refit_by_likelihood
from edgegraft.learn.certificate import Certificate, ScoredPairs, certify, score_inactive
from edgegraft.learn.checkpoint import StageFile
from edgegraft.learn.completion import Completion, decide
from edgegraft.learn.confirm import Confirmation
from edgegraft.learn.edge_tests import EdgeTests, judge_tables
from edgegraft.learn.effects import Effects, edge_effects
from edgegraft.learn.last_fits import last_fit
from edgegraft.learn.margins import Agreement, compare_margins, match_margins
from edgegraft.learn.pair_ranking import PairRanking, rank_all_pairs
from edgegraft.learn.prediction import Prediction, columns_of_all, fit_for_prediction
from edgegraft.learn.stages import Stages
from edgegraft.model import PairwiseMRF
from edgegraft.table import PackedTable
from edgegraft.table.blocks import SAMPLE_ROWS, Rows, TableRows

_MAX_DIFFERENCE = 0.05  # of a share in the model from that in the data
_SECOND_MODE = (
    "It may have a second mode, in which chains stay: its edges hold, but its probabilities are "
    "off; fewer edges (a smaller fdr=) may help"
)
_CONDITIONAL = (
    "It predicts columns given others; for samples and probabilities of whole rows use aim='rows'"
)
_SHOWN = 5  # groups of copies that are warned of
_COMPLETIONS = 2  # fits for prediction to rows whose missing cells the fit before has drawn


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
        has cut may be among them. If nothing is cut, or not refitted, it is that of the search.
        Taken at the parameters of the pseudolikelihood, before shares are matched to the data's.
    converged : bool
        Whether the last fits, of the search and of the model, reached their tolerance.
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
    file : StageFile
        Where the stages of the run are kept, if they are.
    """

    model: PairwiseMRF
    kept: Mask
    tests: EdgeTests
    search_norms: Floats
    search: SearchState
    certificate: Certificate
    converged: bool
    plan: Plan
    interrupted: bool = False
    copies: Sequence[Sequence[str]] = ()
    ranking: PairRanking | None = None
    prediction: Prediction | None = None
    agreement: Agreement | None = None
    file: StageFile = StageFile()

    @property
    def final_model(self) -> PairwiseMRF:
        """The model that answers questions: that for prediction or rows, if that was the aim."""
        return self.model if self.prediction is None else self.prediction.model

    @property
    def penalty(self) -> float:
        """Threshold of the activation tests."""
        return self.search.penalty.penalty

    @property
    def ridge(self) -> float:
        """Weight of the squared norms in the last fit."""
        if not self.plan.refit:
            return self.search.penalty.ridge
        return last_ridge(self.plan, self.search.objective)


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
    with interruptible() as interruption:
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

    Without a plan it is that of the checkpoint. Stages that have ended are not repeated, and the
    result of a run that was killed is, to the last bit, that of one which was not.

    A search that Ctrl-C, an observer or a budget ended goes on from its graph, in the last case if
    its budgets are others: `max_time` seconds and `max_edges` edges of the plan or given here,
    which include the search so far.
    """
    budgets: dict[str, Any] = {"max_time": max_time, "max_edges": max_edges}
    file = StageFile.read(path)
    with interruptible() as interruption, file.proper():
        plan = replace(plan or file.plan, **{k: v for k, v in budgets.items() if v is not None})
        stages = Stages(table, plan, weights, sample_rows, design, file)
        return _learn(stages, observers, interruption)


def _learn(stages: Stages, observers: Sequence[Observer], interruption: Interruption) -> Discovery:
    with one_blas_thread():  # many small matrices, for which threads wait for each other
        found = _conclude(stages.search(observers), stages)
        found = _with_prediction(found, stages, interruption)
    return found._replace(interrupted=interruption.asked)


def _conclude(search: SearchState, stages: Stages) -> Discovery:
    """Dismiss and admit again, fit what is kept, and report."""
    plan, file, ended = stages.plan, stages.file, search
    converged = search.solution.info.converged  # before tests add edges
    search, network = decide(search, stages)
    tests, kept = network.tests, network.kept
    strengths = (search.model() if plan.cuts else network.model).edge_strengths()
    last, fitted, final = last_fit(search, kept, plan, file)
    agreement = None
    if plan.refit and plan.objective == "pseudolikelihood":
        last, agreement = _match_shares(last, search, stages)
        if plan.aim == "network":
            _warn_of_shares(agreement, _SECOND_MODE)
    last = last.with_edge_columns(_edge_columns(last, network.model, tests, stages, search))
    final = final if plan.cuts else search
    scored = ScoredPairs(**file.stage("scores", lambda: score_inactive(final)._asdict()))
    return Discovery(
        last,
        kept,
        tests,
        strengths,
        _over_given_rows(search, ended),
        certify(final, scored, cut=tests.edges[~kept]),
        converged and fitted,
        plan,
        copies=_warn_of_copies(network, last.names),
        ranking=rank_all_pairs(network, scored, search.penalty) if plan.cuts else None,
        agreement=agreement,
        file=file,
    )


def _match_shares(
    model: PairwiseMRF, search: SearchState, stages: Stages
) -> tuple[PairwiseMRF, Agreement | None]:
    """Return the last model with the shares of the data, and how well they agree."""
    plan, features = stages.plan, search.objective.features

    def match() -> Tree:
        ridge, seed = last_ridge(plan, search.objective), plan.random_state
        found, agreement = match_margins(
            model, stages.counts(), ridge, features=features, seed=seed
        )
        return {"theta": found.theta, "agreement": agreement and agreement.tree()}

    tree = stages.file.stage("shares", match)
    matched = PairwiseMRF(model.schema, model.edges, tree["theta"], model.edge_columns)
    return matched, Agreement.of_tree(tree["agreement"])


def _warn_of_shares(agreement: Agreement | None, advice: str) -> None:
    """Warn if the final model's shares of categories are far from the data's."""
    if agreement is not None and agreement.columns > _MAX_DIFFERENCE:
        warnings.warn(f"{agreement} {advice}".rstrip(), ConvergenceWarning, stacklevel=6)


def _over_given_rows(search: SearchState, ended: SearchState) -> SearchState:
    """Return a search over rows with drawn cells, which nobody else has, over those given."""
    if search is ended:
        return search
    found = search.warm(replace(search.problem, objective=ended.objective))
    found.reason, found.events = ended.reason, ended.events
    return found


def _with_prediction(found: Discovery, stages: Stages, interruption: Interruption) -> Discovery:
    """Add the model for prediction, if the plan aims at it."""
    if stages.plan.aim == "network":
        return found
    loss = found.search.objective
    whole = loss if loss.stand_in is not None else None  # rows beyond memory
    file, schema = stages.file, found.model.schema

    def stopped() -> bool:
        return interruption.asked

    def fit(rows: TableRows, name: str) -> Prediction:
        def work_out() -> Tree:
            return fit_for_prediction(rows, stages.plan, whole=whole, stop=stopped).tree()

        tree = file.stage(name, work_out, complete=lambda: not stopped())
        return Prediction.of_tree(tree, schema)

    rows = stages.sample
    made = fit(rows, "prediction")
    if stages.filled is not None:
        # The network's edges alone would make weak dependences weaker: this model draws its own.
        completion = Completion.of(stages)
        for k in range(_COMPLETIONS):
            rows = completion.draw(made.model)
            made = fit(rows, f"prediction {k + 1}")
    if stages.plan.aim == "rows":
        more = 1.0 if whole is None else whole.n_rows / rows.n_rows  # whose noise is smaller
        made = _refit_to_rows(made, rows, more, stages, stopped)

    def compare() -> Tree:
        seed = stages.plan.random_state
        agreement = compare_margins(made.model, stages.counts(), seed=seed)
        return {"agreement": agreement and agreement.tree()}

    agreement = Agreement.of_tree(file.stage("prediction shares", compare)["agreement"])
    _warn_of_shares(agreement, _CONDITIONAL if stages.plan.aim == "prediction" else "")
    known = columns_of_all(found.model, made.model, found.model.edge_columns)
    made = made._replace(model=made.model.with_edge_columns(known))
    converged = found.converged and made.converged
    return found._replace(prediction=made, converged=converged, agreement=agreement)


def _refit_to_rows(
    made: Prediction,
    rows: TableRows,
    more: float,
    stages: Stages,
    stopped: Callable[[], bool],
) -> Prediction:
    """Fit the model for prediction again by likelihood, if complete rows can judge that.

    It was fitted to `more` times as many rows.
    """
    plan, old = stages.plan, made.model

    def fit() -> Tree:
        model, fitted = refit_by_likelihood(
            old,
            rows.table,
            made.penalty * more**0.5,
            made.ridge * more,
            weights=rows.weights,
            n_jobs=plan.n_jobs,
            device=plan.device,
            random_state=plan.random_state,
            stop=stopped,
        )
        return fitted.arrays() | {"theta": model.theta}

    try:
        tree = stages.file.stage("refit", fit, complete=lambda: not stopped())
    except DataError as error:
        warnings.warn(
            f"the model is that for prediction: {error}", ConvergenceWarning, stacklevel=5
        )
        return made
    model = PairwiseMRF(old.schema, old.edges, tree["theta"], old.edge_columns)
    return made._replace(model=model, refit=Refit.from_arrays(tree))


def _warn_of_copies(confirmed: Confirmation, names: Sequence[str]) -> list[list[str]]:
    """Return the columns that are copies of each other; warn of what rows cannot tell apart."""
    copies = [[names[i] for i in group] for group in confirmed.copies.groups()]
    for group in copies[:_SHOWN]:
        warnings.warn(
            f"columns {', '.join(map(repr, group))} are copies of each other: their links are "
            f"shown once, at {group[0]!r}; leave out the others with drop=",
            IdentificationWarning,
            stacklevel=5,
        )
    if confirmed.doubtful:
        n_edges = len(confirmed.kept)
        warnings.warn(
            f"{confirmed.untestable:.0%} of the {n_edges:,} pairs that the search found cannot be "
            "tested beside each other: their columns are nearly determined by other columns, or "
            "known together in too few rows. Edges may be missing, and more of those kept may be "
            "false than fdr allows; pair_ranking_ ranks all pairs",
            IdentificationWarning,
            stacklevel=5,
        )
    return copies


def _edge_columns(
    last: PairwiseMRF,
    tested: PairwiseMRF,
    tests: EdgeTests,
    stages: Stages,
    search: SearchState,
) -> dict[str, Any]:
    """Return strengths, effects and tests of the edges of the last model, in its order."""
    file, features = stages.file, search.objective.features
    n = last.layout.n_variables
    at = find_pairs(tested.edges, tests.edges, n)
    unknown = np.full(len(tests.edges), np.nan)
    numbers = tests.statistic, tests.dof, tests.p_value, *(tests.groups or (unknown, unknown))
    verdicts = judge.Verdicts(*(values[at] for values in numbers))

    def work_out() -> Tree:
        rows = stages.filled or stages.sample
        given = ConditionalRows(
            rows.table, rows.weights, features, **stages.variance, drawn=stages.drawn
        )
        return edge_effects(tested, given, verdicts, stages.plan.n_jobs)._asdict()

    effects = Effects(**file.stage("effects", work_out)).columns()
    place, at = (find_pairs(last.edges, other.edges, n) for other in (tested, tests))
    columns: dict[str, Any] = {name: values[place] for name, values in effects.items()}
    for name in ("statistic", "dof", "p_value", "q_value"):
        columns[name] = getattr(tests, name)[at]
    if tests.groups is None:
        return columns

    def test_whole() -> Tree:
        found = judge_tables(tested, stages.sample, stages.plan.n_jobs, **stages.variance)
        return {"p_table": found}

    whole = file.stage("tables", test_whole)["p_table"][place]
    return columns | tests.groups.columns(at) | {"p_table": whole}
