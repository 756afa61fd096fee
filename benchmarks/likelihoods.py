"""Test log-likelihood of whole rows, beside published models.

Ours is the model for prediction (:func:`edgegraft.learn.fit_for_prediction`), then fitted again by
likelihood (:func:`edgegraft.refit_by_likelihood`), on a GPU if there is one. Log Z is exact if that
is affordable, and otherwise estimated by annealed importance sampling with 4,096 chains. Published
are ACMN, Markov networks with features of any size and exact inference (Lowd and Rooshenas, AISTATS
2013), the best Markov networks known to us on these tables, and ID-SPN, circuits with them as
leaves (Rooshenas and Lowd, ICML 2014). Both are given to two decimals, and chose their strengths by
the published validation rows, which ours does not use.

Annealing cannot see a mode that no chain finds. Log Z is checked from the training rows as well
(:func:`~edgegraft.inference.annealed_log_partition`), and no figure is given if the ways differ, or
if test rows come out likelier as a whole than the sum of their cells given the others.
"""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np

from benchmarks.prediction import FOLDER, Codes, fit, read
from benchmarks.rows import Row
from edgegraft import PackedTable, PairwiseMRF, refit_by_likelihood
from edgegraft.inference import affordable, annealed_log_partition

PUBLISHED = {
    "nltcs": (-6.00, -6.02),
    "plants": (-12.80, -12.54),
    "baudio": (-40.33, -39.79),
    "jester": (-53.31, -52.86),
    "dna": (-80.03, -81.21),
    "pumsb_star": (-23.55, -22.40),
    "msweb": (-9.77, -9.73),
}
RIVAL = "ACMN"
CHAINS = 4096


def run(scale: float = 1.0) -> list[Row]:
    """Return one row per table; `scale` is the share of the rows."""
    if not FOLDER.is_dir():
        return []
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PUBLISHED:
            train, test = read(name)
            rows.append(measure(name, train[: max(200, round(scale * len(train)))], test))
    return rows


def measure(name: str, train: Codes, test: Codes) -> Row:
    """Return the likelihood of test rows before and after the fit by likelihood."""
    made = fit(train)
    table = PackedTable.from_codes(train.astype(np.int64), made.model.schema)
    began = perf_counter()
    model, refit = refit_by_likelihood(made.model, table, made.penalty, made.ridge, device="auto")
    seconds = perf_counter() - began
    first, last = (_likelihood(each, train, test) for each in (made.model, model))
    published, circuits = PUBLISHED[name]
    used = "used" if np.isfinite(refit.penalty) else "not used"
    note = (
        f"by pseudolikelihood {_shown(first)}, by likelihood {_shown(last)}; held-out rows gain "
        f"{refit.gain.value:.3f} +- {refit.gain.error:.3f}, {used}; {seconds:.0f} s; "
        f"{model.n_edges:,} edges; ID-SPN {circuits}"
    )
    value = last[0] if last is not None else np.nan
    work = f"{name}: {train.shape[1]} columns, {len(train):,} rows"
    return Row(work, value, RIVAL, published, "nats", None, note, higher_is_better=True)


def _likelihood(model: PairwiseMRF, train: Codes, test: Codes) -> tuple[float, float] | None:
    """Return the mean test log-likelihood and the error of log Z; None if that is not known."""
    rows = test.astype(np.int64)
    energy = float(model.energy(codes=rows).mean())
    if affordable(model.layout) is not None:
        return energy - model.log_partition().value, 0.0
    found = annealed_log_partition(
        model.layout, model.theta, n_chains=CHAINS, random_state=0, device="auto", rows=train
    )
    value = energy - found.value
    cells = float(model.pseudo_log_likelihood(codes=rows).mean())
    return (value, found.standard_error) if found.reliable and value < cells else None


def _shown(found: tuple[float, float] | None) -> str:
    if found is None:
        return "not known"
    return f"{found[0]:.3f}" + (f" +- {found[1]:.3f}" if found[1] else " (exact log Z)")
