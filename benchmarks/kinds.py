"""Columns of levels and numbers: edges found, held-out rows and time, beside other methods.

Gaussian networks of one edge per column (1.5 if there are more than 25), couplings .2 to .4 of
either sign, cut into levels at random places. Partial rank correlations are cut by Benjamini and
Hochberg at our level, .005. Times are processor seconds of one thread.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.covariance import GraphicalLassoCV

from edgegraft.config import Plan
from edgegraft.core.pairs import all_pairs
from edgegraft.ingest import pack
from edgegraft.learn import discover

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LEVEL = 0.005
CASES = [(25, 400, 4, 8), (25, 400, 6, 8), (25, 250, 7, 8), (100, 2000, None, 2)]
WIDE = (500, 5000)


def gaussian(n, n_rows, n_levels, seed):
    """Return the edges of a network, and its rows as levels or numbers."""
    rng = np.random.default_rng(seed)
    pairs = all_pairs(n)
    edges = pairs[rng.choice(len(pairs), n if n == 25 else int(1.5 * n), replace=False)]
    precision = np.eye(n)
    for i, j in edges:
        precision[i, j] = precision[j, i] = rng.choice([-1, 1]) * rng.uniform(0.2, 0.4)
    precision += max(0.0, 0.1 - np.linalg.eigvalsh(precision)[0]) * np.eye(n)
    rows = rng.multivariate_normal(np.zeros(n), np.linalg.inv(precision), n_rows)
    rows /= rows.std(axis=0)
    if n_levels is not None:
        for i in range(n):
            shares = np.cumsum(rng.dirichlet(np.full(n_levels, 5.0)))[:-1]
            rows[:, i] = np.searchsorted(norm.ppf(np.clip(shares, 0.02, 0.98)), rows[:, i])
        rows = rows.astype(np.int64)
    return set(map(tuple, edges.tolist())), rows


def ours(rows, kinds):
    """Return the edges of the default fit."""
    found = discover(pack(rows, kinds=kinds), Plan(fdr=LEVEL))
    return set(map(tuple, found.model.edges.tolist()))


def partial_spearman(rows):
    """Return pairs whose partial rank correlation is significant."""
    n_rows, n = rows.shape
    inverse = np.linalg.inv(np.corrcoef(np.apply_along_axis(rankdata, 0, rows).T))
    scale = np.sqrt(np.diag(inverse))
    pairs = all_pairs(n)
    r = (-inverse / np.outer(scale, scale))[pairs[:, 0], pairs[:, 1]]
    p = 2 * norm.sf(np.abs(np.arctanh(r)) * np.sqrt(n_rows - n - 1))
    order = np.argsort(p)
    passing = np.flatnonzero(p[order] <= LEVEL * np.arange(1, len(p) + 1) / len(p))
    return set(map(tuple, pairs[order[: passing.max(initial=-1) + 1]].tolist()))


def lasso(rows):
    """Return the edges of a graphical lasso on normal scores, its penalty cross-validated."""
    scores = norm.ppf((np.apply_along_axis(rankdata, 0, rows) - 0.5) / len(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        precision = GraphicalLassoCV().fit(scores / scores.std(axis=0)).precision_
    pairs = all_pairs(rows.shape[1])
    return set(map(tuple, pairs[np.abs(precision[pairs[:, 0], pairs[:, 1]]) > 1e-8].tolist()))


METHODS = {
    "edgegraft, kinds found": lambda rows: ours(rows, "auto"),
    "edgegraft, nominal": lambda rows: ours(rows, "nominal"),
    "partial Spearman": partial_spearman,
    "GraphicalLassoCV": lasso,
}


def held_out(name, kinds):
    """Return the pseudo-log-likelihood per held-out row of a survey."""
    frame = pd.read_csv(DATA / f"{name}.csv.gz", na_values="?").dropna().astype(int)
    order = np.random.default_rng(0).permutation(len(frame))
    cut = int(0.75 * len(frame))
    table = pack(frame, kinds=kinds)
    found = discover(table.take(order[:cut]))
    return found.model.pseudo_log_likelihood(codes=table.take(order[cut:]).codes()).mean()


def run(scale: float = 1.0) -> list[tuple[str, str, str]]:
    """Return work, method and figure."""
    out = []
    for n, n_rows, n_levels, seeds in CASES:
        work = f"{n} columns, {n_levels or 'Gaussian'} levels, {n_rows:,} rows"
        work = work.replace("Gaussian levels", "numbers")
        for name, method in METHODS.items():
            hits, wrong, spent = 0, 0, 0.0
            n_seeds = max(1, int(seeds * scale))
            for seed in range(n_seeds):
                truth, rows = gaussian(n, n_rows, n_levels, seed)
                start = process_time()
                found = method(rows)
                spent += process_time() - start
                hits, wrong = hits + len(found & truth), wrong + len(found - truth)
            f1 = 2 * hits / (hits + wrong + n_seeds * len(truth))
            figure = f"{hits / n_seeds:.1f} of {len(truth)} found, {wrong / n_seeds:.1f} false"
            out.append((work, name, f"{figure}; F1 {f1:.3f}; {spent / n_seeds:.2f} s"))
    if DATA.exists():
        for name in ("wenchuan", "bfi"):
            for kinds in ("auto", "nominal"):
                work, method = f"{name}, nats per held-out row", f"edgegraft, kinds={kinds!r}"
                out.append((work, method, f"{held_out(name, kinds):.2f}"))
    n, n_rows = (int(size * scale) for size in WIDE)
    truth, rows = gaussian(n, n_rows, None, 0)
    start = process_time()
    found = ours(rows, "auto")
    figure = f"{len(found & truth)} of {len(truth)} found, {len(found - truth)} false"
    spent = process_time() - start
    work = f"{n} columns, numbers, {n_rows:,} rows"
    out.append((work, "edgegraft, kinds found", f"{figure}; {spent:.1f} s"))
    return out


def as_markdown(rows: list[tuple[str, str, str]]) -> str:
    """Return the table."""
    lines = ["| work | method | figure |", "| --- | --- | --- |"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
