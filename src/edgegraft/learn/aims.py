"""The model for another aim than the network: predicting columns, or whole rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from edgegraft.core.types import Tree
from edgegraft.errors import ConvergenceWarning, DataError
from edgegraft.learn.by_likelihood import Refit, refit_by_likelihood
from edgegraft.learn.completion import Completion
from edgegraft.learn.margins import Agreement, compare_margins, warn_of_shares
from edgegraft.learn.prediction import Prediction, fit_for_prediction
from edgegraft.learn.stages import Stages
from edgegraft.model import PairwiseMRF
from edgegraft.objective.objective import Objective
from edgegraft.table.blocks import TableRows

_CONDITIONAL = (
    "It predicts columns given others; for samples and probabilities of whole rows use aim='rows'"
)
_COMPLETIONS = 2  # fits to rows whose missing cells the fit before has drawn


def fit_for_aim(
    stages: Stages, loss: Objective, stopped: Callable[[], bool]
) -> tuple[Prediction, Agreement | None]:
    """Return the model for prediction or whole rows, and how its shares agree with the data's.

    `loss` is the search's.
    """
    plan, file = stages.plan, stages.file
    whole = loss if loss.stand_in is not None else None  # rows beyond memory

    def fit(rows: TableRows, name: str) -> Prediction:
        def work_out() -> Tree:
            return fit_for_prediction(rows, plan, whole=whole, stop=stopped).tree()

        tree = file.stage(name, work_out, complete=lambda: not stopped())
        return Prediction.of_tree(tree, rows.schema)

    rows = stages.sample
    made = fit(rows, "prediction")
    if stages.filled is not None:
        # The network's edges alone would make weak dependences weaker: this model draws its own.
        completion = Completion.of(stages)
        for k in range(_COMPLETIONS):
            rows = completion.draw(made.model)
            made = fit(rows, f"prediction {k + 1}")
    if plan.aim == "rows":
        more = 1.0 if whole is None else whole.n_rows / rows.n_rows  # whose noise is smaller
        made = _refit_to_rows(made, rows, more, stages, stopped)

    def compare() -> Tree:
        agreement = compare_margins(made.model, stages.counts(), seed=plan.random_state)
        return {"agreement": agreement and agreement.tree()}

    agreement = Agreement.of_tree(file.stage("prediction shares", compare)["agreement"])
    warn_of_shares(agreement, _CONDITIONAL if plan.aim == "prediction" else "")
    return made, agreement


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
            f"the model for prediction is kept: {error}", ConvergenceWarning, stacklevel=5
        )
        return made
    model = PairwiseMRF(old.schema, old.edges, tree["theta"], old.edge_columns)
    return made._replace(model=model, refit=Refit.from_arrays(tree))
