"""Surveys of levels and ratings as numbers: held-out rows, and edges that other rows find again."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks import kinds
from edgegraft.conditional import features
from edgegraft.config import Plan
from edgegraft.ingest import pack
from edgegraft.learn import discover
from edgegraft.table.numbers import scores_of

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
JOKES, RATERS = 40, 5000  # of Jester, the most rated


def survey(name):
    """Return the complete rows of a survey as numbers."""
    if name == "Jester":
        with np.load(DATA / "jester_ratings.npz") as file:
            ratings = file["ratings_hundredths"].astype(np.float64) / 100
        known = ratings >= -10
        columns = np.sort(np.argsort(-known.sum(axis=0), kind="stable")[:JOKES])
        return ratings[known[:, columns].all(axis=1)][:RATERS][:, columns]
    frame = pd.read_csv(DATA / f"{name}.csv.gz", na_values="?").dropna()
    if name == "jonas":
        frame["group"] = frame["group"].astype("category").cat.codes
    return frame.to_numpy(np.int64)


def held_out(name, named, ridge, scores=scores_of):
    """Return the pseudo-log-likelihood per held-out row, 75 % of the rows fitted."""
    rows = survey(name)
    order, cut = np.random.default_rng(0).permutation(len(rows)), int(0.75 * len(rows))
    table = pack(rows, kinds=named)
    with warnings.catch_warnings(), patch.object(features, "scores_of", scores):
        warnings.simplefilter("ignore")
        plan = Plan(ridge=ridge if ridge == "auto" else ridge / cut)
        found = discover(table.take(order[:cut]), plan)
    held = found.model.pseudo_log_likelihood(codes=table.take(order[cut:]).codes())
    return f"{held.mean():.2f}, {len(found.model.edges)} edges"


def spaced(margin, n_scores, kind):
    """Return scores of equal steps: the middle ranks of states that are equally common."""
    p, step = margin / margin.sum(), np.arange(len(margin)) / len(margin)
    out = np.zeros((len(p), n_scores))
    for k in range(n_scores):
        score = (step - p @ step) ** (k + 1)
        for earlier in (np.ones(len(p)), *out.T[:k]):
            score = score - (p @ (score * earlier)) * earlier
        spread = np.sqrt(p @ score**2)
        out[:, k] = score / spread if spread > 1e-9 else 0.0
    return out


SCORES = {
    "middle ranks": ("ordinal", scores_of),
    "normal quantiles": ("numeric", scores_of),
    "equal steps": ("ordinal", spaced),
}


def found_again(name, method, seed):
    """Return the edges of two halves of the rows, those of both, and seconds per half."""
    rows = survey(name)
    order, cut = np.random.default_rng(seed).permutation(len(rows)), len(rows) // 2
    start = process_time()
    first, second = (
        kinds.methods()[method](rows[half], ()) for half in (order[:cut], order[cut : 2 * cut])
    )
    return len(first), len(second), len(first & second), (process_time() - start) / 2


def _again(parts):
    first, second, both, spent = np.mean(parts, axis=0)
    edges = (first + second) / 2
    share = f" ({both / edges:.2f})" if edges else ""
    return f"{edges:.1f} edges, {both:.1f} in both halves{share}; {spent:.2g} s"


def survey_lines(n_seeds):
    """Return the lines of the surveys; none if they are not there."""
    if not DATA.exists():
        return []
    out = []
    for name, n in (("wenchuan", 17), ("bfi", 25), ("jonas", 11), ("Jester", JOKES)):
        more = f", {JOKES} jokes as numbers" if name == "Jester" else ""
        for method in kinds.methods(n):
            seeds = range(n_seeds)[: kinds.few(method)]
            halves = [partial(found_again, name, method, seed) for seed in seeds]
            out.append(
                kinds.Line(f"{name}{more}, halves of the rows", method, halves, _again, True)
            )
    plans = [
        (name, named, "auto")
        for name in ("wenchuan", "bfi", "jonas", "Jester")
        for named in ("auto", "nominal")
        if (name, named) != ("Jester", "nominal")  # its bins are other columns
    ]
    for name, named, ridge in [*plans, ("wenchuan", "auto", 20), ("bfi", "auto", 20)]:
        work = f"{name}, nats per held-out row"
        method = f"edgegraft, kinds={named!r}" + (", two scores" if ridge != "auto" else "")
        out.append(kinds.Line(work, method, [partial(held_out, name, named, ridge)]))
    for name, ridge in product(("wenchuan", "bfi"), (20, "auto")):
        for words, (named, scores) in SCORES.items():
            work = f"{name}, nats per held-out row" + (", two scores alone" if ridge == 20 else "")
            part = partial(held_out, name, named, ridge, scores)
            out.append(kinds.Line(work, f"edgegraft, {words}", [part]))
    return out
