"""Golden answers of models, and files written before the packages were reorganised.

``files/old.edgegraft`` and ``files/old.packed`` were written by commit 71c4c98 and are never
written again: users have such files, and later code must load them with the same answers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import edgegraft
from tests.golden.registry import FILES, Result, case, checksum, fit, generators, parameters
from tests.golden.sources import packed, survey

MODEL, TABLE = FILES / "old.edgegraft", FILES / "old.packed"
CATEGORIES = {
    "rain": ["no", "yes"],
    "wind": ["calm", "breeze", "storm"],
    "mood": ["low", "mid", "high"],
    "walk": ["no", "yes"],
    "bus": ["early", "late", "never"],
    "tea": ["no", "yes"],
}
PAIRS = (
    ("rain", "wind"),
    ("rain", "mood"),
    ("wind", "mood"),
    ("mood", "walk"),
    ("walk", "bus"),
    ("wind", "bus"),
    ("bus", "tea"),
)


def small_model():
    """A loopy model with named categories and moderate potentials."""
    rng = np.random.default_rng(12)
    nodes = {name: rng.normal(0, 0.5, len(labels)) for name, labels in CATEGORIES.items()}
    edges = {(a, b): rng.normal(0, 0.8, (len(CATEGORIES[a]), len(CATEGORIES[b]))) for a, b in PAIRS}
    return edgegraft.PairwiseMRF.from_potentials(CATEGORIES, nodes, edges)


def small_table(n_rows=700):
    """Columns that are stored as planes, as planes and codes, and as codes only."""
    frame = survey(n_rows)[["smoker", "cough", "level", "flag", "rating"]]
    rng = np.random.default_rng(9)
    twenty, hundred = rng.integers(0, 20, n_rows), rng.integers(0, 100, n_rows)
    return frame.assign(twenty=[f"t{k:02}" for k in twenty], hundred=[f"h{k:02}" for k in hundred])


def write_files() -> None:
    """Write the files that stand for those of users; see `make.py`."""
    FILES.mkdir(exist_ok=True)
    model = small_model()
    model.save(
        MODEL,
        details={"note": "written by commit 71c4c98", "rows": 700},
        edge_columns={"q_value": np.linspace(0.0, 0.003, model.n_edges)},
    )
    edgegraft.pack(small_table()).save(TABLE)


def table_of(arrow) -> dict[str, list[str]]:
    """Return the cells of an Arrow table, abbreviated to their first letters."""
    return {name: "".join(str(c)[0] for c in arrow[name].to_pylist()) for name in CATEGORIES}


def holes(model):
    """Rows of the model as a frame with missing cells."""
    frame = model.sample(40, random_state=5).to_pandas().astype(object)
    return frame.mask(np.random.default_rng(6).random(frame.shape) < 0.3, None)


@case()
def probabilities(folder: Path) -> Result:
    model, given = small_model(), {"wind": "storm", "tea": "yes"}
    found = {}
    for engine in ("auto", "exact", "bp", "trw", "gibbs"):
        free, tied = (model.marginals(e, engine=engine) for e in (None, given))
        found[engine] = {
            "marginals": free.probabilities,
            "given": tied.probabilities,
            "pair": model.pair_marginal("rain", "mood", given, engine=engine).table,
            "apart": model.pair_marginal("rain", "tea", engine=engine).table,
        }
    for engine in ("auto", "exact", "bp", "trw"):
        found[engine]["log Z"] = float(model.log_partition(engine=engine))
        found[engine]["log Z given"] = float(model.log_partition(given, engine=engine))
    return found


@case()
def likeliest_states(folder: Path) -> Result:
    model = small_model()
    found = {}
    for engine in ("auto", "exact", "bp"):
        for given in (None, {"walk": "yes", "bus": "never"}):
            state = model.map(given, engine=engine)
            found[f"{engine} {given}"] = [dict(state), state.value]
    return found


@case()
def rows_of_a_model(folder: Path) -> Result:
    """Seeded samples, imputation, scores and predictions of labelled rows."""
    model = small_model()
    frame = holes(model)
    likely = model.log_likelihood(frame)
    return {
        "exact": table_of(model.sample(60, engine="exact", random_state=1)),
        "exact given": table_of(model.sample(20, {"bus": "late"}, random_state=2)),
        "gibbs": table_of(model.sample(60, engine="gibbs", random_state=3)),
        "imputed": table_of(model.impute(frame)),
        "drawn": table_of(model.impute(frame, method="draw", random_state=4)),
        "pseudo": model.pseudo_log_likelihood(frame),
        "likelihood": likely.rows,
        "log Z": likely.log_partition.value,
        "predicted": model.predict_proba(frame, "mood")[:8],
        "strengths": model.edge_strengths(),
        "without": model.edge_strengths(without=["no", "low"], correction="apc"),
    }


@case()
def rows_of_an_estimator(folder: Path) -> Result:
    frame = survey(600)
    fitted = edgegraft.GraftedMRF(random_state=0).fit(frame)
    part = frame.iloc[:30]
    drawn = fitted.sample(25, random_state=1)
    given = fitted.sample(10, given={"flag": True}, random_state=2)
    return {
        "scores": fitted.score_samples(part),
        "score": fitted.score(frame),
        "one": fitted.predict_proba(part, "smoker")[:5],
        "all": fitted.predict_proba(part)[0],
        "imputed": fitted.impute(part).astype(str).to_numpy(),
        "drawn": drawn.astype(str).to_numpy(),
        "given": given.astype(str).to_numpy(),
    }


@case()
def large_model(folder: Path) -> Result:
    """A grid that is too wide for exact inference: belief propagation, and an estimate of log Z."""
    data = generators.make_grid(34, 34, n_rows=1, n_states=2, edge_scale=0.3, random_state=0)
    model = data.model
    propagated = model.marginals(engine="bp").probabilities
    return {
        "bp": float(propagated[::2].sum()),
        "Bethe": float(model.log_partition(engine="bp")),
        "bound": float(model.log_partition(engine="trw")),
        "annealed": list(model.log_partition(random_state=1))[::2],
        "drawn": checksum(model.sample_codes(20, random_state=1)),
    }


@case()
def old_files(folder: Path) -> Result:
    """Files of old code still load, with the same answers."""
    stored, model, table = (
        edgegraft.read_details(MODEL),
        edgegraft.load(MODEL),
        edgegraft.PackedTable.open(TABLE),
    )
    assert model == small_model()
    return {
        "details": stored.details,
        "q_value": stored.edge_columns["q_value"] + 1e-3,
        "marginals": model.marginals({"rain": "yes"}).probabilities,
        "model": parameters(model),
        "packed": packed(table),
        "network": fit(table),
    }
