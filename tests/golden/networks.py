"""Golden networks of tables in memory: generators, real tables, strategies, objectives."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import edgegraft
from tests.golden.registry import (
    SHARED,
    Result,
    case,
    checksum,
    choose_penalty,
    fit,
    generators,
    learn,
    network,
    parameters,
    sorted_edges,
)


@cache
def scale_free_data(n_variables=25, n_states=3, n_rows=2000, seed=3, couplings="normal"):
    return generators.make_scale_free(
        n_variables, n_states, n_rows, couplings=couplings, random_state=seed
    )


def frame_of(codes, words="abcdefgh"):
    """Return codes as a frame of text columns; -1 is a missing cell."""
    letters = np.array([*words, None], object)
    return pd.DataFrame({f"v{i:02}": letters[column] for i, column in enumerate(codes.T)})


def nltcs(n_rows):
    with np.load(SHARED / "debd" / "nltcs.npz") as file:
        return file["train"][:n_rows].astype(np.int64)


def with_holes(codes, share, seed):
    holes = np.random.default_rng(seed).random(codes.shape) < share
    return np.where(holes, -1, codes.astype(np.int64))


# Tables


@case()
def generated_tables(folder: Path) -> Result:
    made = {
        "scale free": scale_free_data(),
        "Ising": scale_free_data(40, 2, 500, 1, "ising"),
        "chain": generators.make_chain(6, n_states=[2, 3, 4, 2, 3, 5], n_rows=300, random_state=0),
        "grid": generators.make_grid(3, 4, n_rows=300, random_state=0),
    }
    return {
        name: {
            "rows": checksum(data.X),
            "edges": data.edges,
            "theta": float(np.linalg.norm(data.theta)),
        }
        for name, data in made.items()
    }


@case()
def scale_free_five_states(folder: Path) -> Result:
    return fit(scale_free_data(60, 5, 6000, 0).X)


@case()
def ising(folder: Path) -> Result:
    return fit(scale_free_data(80, 2, 5000, 1, "ising").X)


@case("bfi.csv.gz")
def bfi(folder: Path) -> Result:
    return fit(pd.read_csv(SHARED / "bfi.csv.gz"))


@case("house_votes_84.csv.gz")
def house_votes(folder: Path) -> Result:
    return fit(pd.read_csv(SHARED / "house_votes_84.csv.gz", na_values="?"))


@case("debd/nltcs.npz")
def nltcs_4000(folder: Path) -> Result:
    return fit(nltcs(4000))


@case()
def missing_cells(folder: Path) -> Result:
    codes = with_holes(scale_free_data(n_rows=4000).X, 0.15, seed=0)
    return fit(frame_of(codes))


@case()
def weights(folder: Path) -> Result:
    codes = scale_free_data().X
    whole = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0, 3.25], len(codes))
    return fit(frame_of(codes), sample_weight=whole)


@case()
def many_states(folder: Path) -> Result:
    """Columns of more than 16 and of more than 64 states, which are stored as codes."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, 70, 6000)
    second = np.where(rng.random(6000) < 0.7, first // 4, rng.integers(0, 18, 6000))
    third = np.where(rng.random(6000) < 0.6, second % 2, rng.integers(0, 2, 6000))
    rows = np.stack([first, second, third, rng.integers(0, 3, 6000)], axis=1)
    return fit(rows, kinds="nominal")


@case()
def few_rows(folder: Path) -> Result:
    """Fewer rows than the ranking by one inverse needs."""
    return fit(scale_free_data(60, 5, 120, 4).X, fdr=0.2)


@case(marks=("slow",))
def wide(folder: Path) -> Result:
    """Too many pairs to test all: ranked by screening, certified by a sample."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (300, 2004))
    for i in range(1, 2004):
        if i % 4:  # chains of four columns
            rows[:, i] = rows[:, i - 1] ^ (rng.random(300) < 0.2)
    found = fit(rows)
    found["table"] = {name: values[::40] for name, values in found["table"].items()}
    return {**found, "strengths": found["strengths"][::40], "edges": checksum(found["edges"])}


@case()
def copies(folder: Path) -> Result:
    """Columns that determine each other: edges without a test, and repeatedly dropped edges."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 1500)
    near = first ^ (rng.random(1500) < 0.01)
    other = np.where(rng.random(1500) < 0.7, first, rng.integers(0, 2, 1500))
    return fit(np.stack([first, first, first, near, other], axis=1))


# Strategies and settings


@case()
def first_hit(folder: Path) -> Result:
    return fit(scale_free_data().X, strategy="first-hit")


@case()
def exhaustive(folder: Path) -> Result:
    return fit(scale_free_data().X, strategy="exhaustive")


@case()
def feature(folder: Path) -> Result:
    data = scale_free_data(12, 3, 1000)
    return fit(data.X, strategy="feature", relaxed=False)


@case()
def feature_light(folder: Path) -> Result:
    data = scale_free_data(12, 3, 1000)
    return fit(data.X, strategy="feature-light", relaxed=False)


@case()
def penalised(folder: Path) -> Result:
    return fit(scale_free_data().X, relaxed=False)


@case()
def penalised_without_refit(folder: Path) -> Result:
    return fit(scale_free_data().X, relaxed=False, refit=False, fdr=None, penalize_nodes=True)


@case()
def paper_settings(folder: Path) -> Result:
    """Unseen pairs in random order, with hubs boosted."""
    return fit(
        scale_free_data().X,
        relaxed=False,
        group_weight="sqrt",
        penalty=0.01,
        ridge=0.001,
        selectivity=0.5,
        hub_threshold="mean",
        priority="uniform",
        reservoir_size=40,
        max_tests=60,
    )


@case()
def relaxed_uniform(folder: Path) -> Result:
    return fit(scale_free_data().X, priority="uniform", random_state=7)


@case()
def budgets(folder: Path) -> Result:
    data = scale_free_data().X
    return {
        "edges": fit(data, max_edges=10),
        "tables": fit(data, max_tables=150, priority="uniform"),
        "time": str(edgegraft.GraftedMRF(max_time=0.0, random_state=0).fit(data).reason_),
    }


# Objectives


@case()
def likelihood(folder: Path) -> Result:
    return fit(scale_free_data(12, 3, 2000).X, objective="likelihood")


@case()
def likelihood_propagated(folder: Path) -> Result:
    return fit(scale_free_data(12, 2, 2000).X, objective="likelihood", inference="bp")


@case()
def likelihood_penalised(folder: Path) -> Result:
    codes = with_holes(scale_free_data(10, 3, 2000).X, 0.1, seed=1)
    return fit(frame_of(codes), objective="likelihood", inference="exact", relaxed=False)


@case()
def fitted_parameters(folder: Path) -> Result:
    data = scale_free_data(12, 3, 2000)
    rows, edges = data.X.astype(np.int64), data.edges
    whole = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(rows))
    holes = frame_of(with_holes(rows, 0.1, seed=2))
    asked = {
        "pseudolikelihood": (rows, {"edges": edges, "ridge": 1e-3}),
        "group penalty": (rows, {"penalty": 0.02}),
        "l1 and nodes": (
            rows,
            {"penalty": 0.005, "ridge": 1e-3, "kind": "l1", "penalize_nodes": True},
        ),
        "ridge on all pairs": (rows, {"ridge": 0.01}),
        "weights": (rows, {"edges": edges, "ridge": 1e-3, "weights": whole}),
        "missing": (holes, {"edges": edges, "ridge": 1e-3}),
        "likelihood": (rows, {"edges": edges, "objective": "likelihood", "ridge": 1e-3}),
        "likelihood, bp": (
            rows,
            {"edges": edges, "objective": "likelihood", "engine": "bp", "penalty": 0.01},
        ),
        "likelihood, missing": (holes, {"edges": edges, "objective": "likelihood", "ridge": 1e-3}),
    }
    return {name: _fitted(X, options) for name, (X, options) in asked.items()}


def _fitted(X, options):
    model, info = edgegraft.fit_parameters(X, tol=1e-4, **options)
    return {
        "edges": model.edges,
        "objective": info.objective,
        "n_iter": info.n_iter,
        "n_evaluations": info.n_evaluations,
        "converged": info.converged,
        "model": parameters(model),
    }


# Selection, bootstrap and edge tests


@case()
def prediction(folder: Path) -> Result:
    data = scale_free_data(12, 3, 800)
    fitted = edgegraft.GraftedMRF(aim="prediction", random_state=0).fit(data.X)
    made = fitted.prediction_
    return {**network(fitted), "trials": np.array(made.trials), "model": parameters(made.model)}


@case()
def chosen_penalty(folder: Path) -> Result:
    data = scale_free_data(12, 3, 800)
    return choose_penalty(data.X.astype(np.int64))._asdict()


@case()
def path_of_penalties(folder: Path) -> Result:
    data = scale_free_data(12, 3, 800)
    table = edgegraft.PackedTable.from_codes(data.X.astype(np.int64))
    points = learn.penalty_path(table, penalties=5)
    return {
        "grid": [point.penalty for point in points],
        "ebic": [point.ebic for point in points],
        "objective": [point.objective for point in points],
        "models": [sorted_edges(point.model) for point in points],
    }


@case()
def bootstrapped(folder: Path) -> Result:
    frame = frame_of(scale_free_data(12, 3, 800).X.astype(np.int64))
    fitted = edgegraft.GraftedMRF(random_state=0).fit(frame)
    found = fitted.bootstrap(frame, 12, random_state=0)
    order = np.lexsort((found["second"].astype(str), found["first"].astype(str)))
    return {name: values[order] for name, values in found.items()}
