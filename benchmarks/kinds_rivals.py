"""Other methods for networks of levels, numbers and mixed columns: rows in, a set of pairs out.

Those that need another package (latentcor, gglasso, skein-glm) are left out where it is not
installed. Rows are numbers; `nominal` names the columns whose numbers are codes without an order.
"""

from __future__ import annotations

import importlib.util
import warnings
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
from scipy.stats import norm, rankdata
from sklearn.covariance import GraphicalLassoCV
from sklearn.linear_model import LogisticRegression, lasso_path

from edgegraft.core.pairs import all_pairs

LEVEL = 0.005
_GAMMA = 0.25  # of the extended BIC, as in mgm
_ZERO = 1e-8
_RESAMPLES = 20_000  # its p-values are at least 2 by these, and the level is .005 of few pairs


def normal_scores(rows):
    """Return ranks as normal quantiles of mean 0 and variance 1."""
    scores = norm.ppf((np.apply_along_axis(rankdata, 0, rows) - 0.5) / len(rows))
    return (scores - scores.mean(axis=0)) / scores.std(axis=0)


def _pairs(matrix):
    pairs = all_pairs(len(matrix))
    return set(map(tuple, pairs[np.abs(matrix[pairs[:, 0], pairs[:, 1]]) > _ZERO].tolist()))


def partial_spearman(rows, nominal=()):
    """Return pairs whose partial rank correlation is significant by Benjamini and Hochberg."""
    n_rows, n = rows.shape
    inverse = np.linalg.inv(np.corrcoef(np.apply_along_axis(rankdata, 0, rows).T))
    scale = np.sqrt(np.diag(inverse))
    pairs = all_pairs(n)
    r = (-inverse / np.outer(scale, scale))[pairs[:, 0], pairs[:, 1]]
    p = 2 * norm.sf(np.abs(np.arctanh(r)) * np.sqrt(n_rows - n - 1))
    order = np.argsort(p)
    passing = np.flatnonzero(p[order] <= LEVEL * np.arange(1, len(p) + 1) / len(p))
    return set(map(tuple, pairs[order[: passing.max(initial=-1) + 1]].tolist()))


def graphical_lasso(rows, nominal=()):
    """Return the edges of a graphical lasso on normal scores, its penalty cross-validated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _pairs(GraphicalLassoCV().fit(normal_scores(rows)).precision_)


def latent_lasso(rows, nominal=()):
    """Return the edges of a graphical lasso on latent correlations, chosen by extended BIC."""
    from gglasso.problem import glasso_problem
    from latentcor import latentcor

    n_levels = [len(np.unique(column)) for column in rows.T]
    types = ["bin" if s == 2 else "ter" if s == 3 else "con" for s in n_levels]
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        found = np.asarray(latentcor(rows, tps=types, method="original")["R"])
        problem = glasso_problem(found, len(rows), reg_params={"lambda1": 0.1}, latent=False)
        problem.model_selection({"lambda1_range": np.logspace(0, -2, 20)}, method="eBIC", gamma=0.1)
    return _pairs(problem.solution.precision_)


def polychoric_lasso(rows, nominal=()):
    """Return the edges of skein-glm's graphical lasso on polychoric correlations, by EBIC."""
    import skein_glm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(skein_glm.polychoric_covariance_matrix(rows))
        path = skein_glm.ebic_path(
            found, skein_glm.GraphicalLasso, np.logspace(0, -2, 20), n=len(rows)
        )
    return _pairs(np.asarray(path.best_estimator.precision_))


def polychoric_fdr(rows, nominal=()):
    """Return the edges that skein-glm's own false discovery rate keeps.

    The penalty is the one above; its resamples are of normal scores, as it resamples numbers only.
    """
    import skein_glm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.asarray(skein_glm.polychoric_covariance_matrix(rows))
        path = skein_glm.ebic_path(
            found, skein_glm.GraphicalLasso, np.logspace(0, -2, 20), n=len(rows)
        )
        drawn = skein_glm.GraphicalBootstrap(
            path.best_estimator, n_bootstraps=_RESAMPLES, random_state=0
        ).fit(normal_scores(rows))
        return _pairs(skein_glm.edge_fdr_threshold(drawn, fdr=LEVEL)["reject"])


def nodewise(rows, nominal=()):
    """Return pairs that both of their lasso regressions choose, each by extended BIC (as mgm).

    Columns without an order, and those of two values, have logistic regressions and indicators.
    """
    n = rows.shape[1]
    states = [np.unique(column) for column in rows.T]
    whole = [i in nominal or len(states[i]) == 2 for i in range(n)]
    scores = normal_scores(rows)
    blocks = [
        (rows[:, [i]] == states[i][1:]).astype(float) if whole[i] else scores[:, [i]]
        for i in range(n)
    ]
    blocks = [(block - block.mean(axis=0)) / block.std(axis=0) for block in blocks]
    owner = np.repeat(np.arange(n), [block.shape[1] for block in blocks])
    design = np.concatenate(blocks, axis=1)
    chosen = np.zeros((n, n), bool)
    for i in range(n):
        others = owner != i
        if whole[i]:
            weights = [_logistic(design[:, others], rows[:, i] == s) for s in states[i][1:]]
            used = np.any(np.abs(weights) > _ZERO, axis=0)
        else:
            used = np.abs(_lasso(design[:, others], scores[:, i])) > _ZERO
        chosen[i, np.unique(owner[others][used])] = True
    return _pairs(chosen & chosen.T)


def _lasso(design, target):
    _, paths, _ = lasso_path(design, target, n_alphas=40, eps=0.01)
    n_rows, n = design.shape
    size = (np.abs(paths) > _ZERO).sum(axis=0)
    loss = n_rows * np.log(np.square(target[:, None] - design @ paths).mean(axis=0))
    return paths[:, np.argmin(loss + size * (np.log(n_rows) + 2 * _GAMMA * np.log(n)))]


def _logistic(design, target):
    n_rows, n = design.shape
    best, kept = np.inf, np.zeros(n)
    for c in np.logspace(-2, 0, 10):
        found = LogisticRegression(
            l1_ratio=1.0, C=c * 100 / n_rows, solver="liblinear", intercept_scaling=10.0
        ).fit(design, target)
        p = found.predict_proba(design)[np.arange(n_rows), target.astype(int)]
        size = (np.abs(found.coef_[0]) > _ZERO).sum()
        value = -2 * np.log(p).sum() + size * (np.log(n_rows) + 2 * _GAMMA * np.log(n))
        if value < best:
            best, kept = value, found.coef_[0]
    return kept


RIVALS = {
    "partial Spearman": (partial_spearman, ()),
    "GraphicalLassoCV, normal scores": (graphical_lasso, ()),
    "nodewise lasso, EBIC": (nodewise, ()),
    "latentcor and GGLasso, EBIC": (latent_lasso, ("latentcor", "gglasso")),
    "skein-glm, polychoric, EBIC": (polychoric_lasso, ("skein_glm",)),
    "skein-glm, its FDR": (polychoric_fdr, ("skein_glm",)),
}


def rivals():
    """Return the methods whose packages are installed, by name."""
    return {
        name: method
        for name, (method, needed) in RIVALS.items()
        if all(importlib.util.find_spec(package) for package in needed)
    }
