"""Golden networks of rows that are packed, on disk, on a cluster, or read by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import edgegraft
from tests.golden.compare import SINGLE
from tests.golden.registry import Result, case, checksum, fit, generators, network, sorted_edges

#: Bytes reserved for the library plus those of the sampled cells: with this limit the smallest
#: sample of a fit (10,000 rows of 8 columns) just fits, and 30,000 rows do not.
TIGHT = (1000 << 20) + 2 * 24 * 8 * 10_000


@cache
def chain_frame(n_rows=30_000, n_variables=8):
    data = generators.make_chain(
        n_variables, n_states=3, n_rows=n_rows, edge_scale=0.5, random_state=0
    )
    letters = np.array(["low", "mid", "top"], object)
    return pd.DataFrame({f"x{i}": letters[column] for i, column in enumerate(data.X.T)})


def survey(n_rows=1200):
    """A table with many kinds of columns and missing cells."""
    rng = np.random.default_rng(0)
    smoker = rng.random(n_rows) < 0.4
    cough = np.where(rng.random(n_rows) < 0.8, smoker, rng.random(n_rows) < 0.5)
    age = rng.integers(18, 60, n_rows) + 30 * smoker
    level = np.where(age > 50, "high", rng.choice(["low", "mid"], n_rows))
    frame = pd.DataFrame(
        {
            "smoker": np.where(smoker, "yes", "no"),
            "cough": cough.astype(np.int64),
            "age": age,
            "weight": np.round(60 + 20 * rng.random(n_rows) + 10 * smoker, 2),
            "level": pd.Categorical(level, ["low", "mid", "high", "never"], ordered=True),
            "flag": rng.random(n_rows) < 0.3,
            "rating": rng.integers(1, 6, n_rows).astype(float),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "rating"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "smoker"] = None
    return frame


def packed(table) -> Result:
    """Return the contents of a packed table."""
    return {
        "names": table.schema.names,
        "categories": [[str(label) for label in variable.categories] for variable in table.schema],
        "states": table.schema.n_states,
        "missing": table.n_missing,
        "codes": checksum(table.codes()),
    }


@case()
def packed_tables(folder: Path) -> Result:
    frame = survey()
    path = folder / "survey.csv"
    frame.to_csv(path, index=False)
    frame.to_parquet(folder / "survey.parquet")
    return {
        "frame": packed(edgegraft.pack(frame)),
        "bins": packed(edgegraft.pack(frame, bins={"age": 3, "weight": 4})),
        "dropped": packed(edgegraft.pack(frame, drop=["age", "weight"])),
        "csv": packed(edgegraft.pack(path, missing_values=["yes"])),
        "parquet": packed(edgegraft.pack(folder / "survey.parquet")),
        "array": packed(edgegraft.pack(frame[["cough", "age"]].to_numpy())),
    }


@case()
def mixed_columns(folder: Path) -> Result:
    return fit(survey())


@case(tolerance=SINGLE)
def out_of_memory(folder: Path) -> Result:
    """A Parquet file of which only a sample fits; the last steps use all rows."""
    path = folder / "rows.parquet"
    chain_frame().to_parquet(path, row_group_size=4096)
    return fit(path, max_memory=TIGHT, cache_dir=folder / "cache")


@case(tolerance=SINGLE)
def out_of_memory_weights(folder: Path) -> Result:
    """A folder of CSV files with row weights."""
    frame, where = chain_frame(), folder / "rows"
    where.mkdir()
    for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_csv(where / f"part-{k}.csv", index=False)
    whole = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(frame))
    return fit(where, max_memory=TIGHT, cache_dir=folder / "cache", sample_weight=whole)


@case()
def out_of_memory_likelihood(folder: Path) -> Result:
    path = folder / "rows.parquet"
    chain_frame().to_parquet(path)
    return fit(path, max_memory=TIGHT, cache_dir=folder / "cache", objective="likelihood")


@case()
def limit_that_holds_all_rows(folder: Path) -> Result:
    path = folder / "rows.csv"
    chain_frame(3000).to_csv(path, index=False)
    return fit(path, max_memory="4 GiB", cache_dir=folder / "cache")


@case("dask", "distributed", marks=("cluster", "slow"), tolerance=SINGLE)
def cluster(folder: Path) -> Result:
    """A Dask frame with more rows than the largest sample, so that the workers are used."""
    import dask.dataframe as dd
    from distributed import Client

    frame = chain_frame(540_000, 5)
    with (
        Client(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as client,
        client.as_current(),
    ):
        parts = dd.from_pandas(frame, npartitions=5, sort=False)
        fitted = edgegraft.GraftedMRF(random_state=0).fit(parts)
    return network(fitted)


# The command line


def edgegraft_command(*arguments):
    command = [sys.executable, "-m", "edgegraft", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@case("typer", "rich")
def command_line(folder: Path) -> Result:
    """`learn`, `query`, `score` and `infer` in separate processes."""
    table, model = folder / "survey.csv", folder / "survey.edgegraft"
    survey().to_csv(table, index=False)
    options = ("--bins", "age=3", "--bins", "weight=4", "--bootstrap", 8, "--json", "--quiet")
    learned = json.loads(edgegraft_command("learn", table, "-o", model, *options))
    edges = sorted(learned["edges"], key=lambda edge: (edge["first"], edge["second"]))
    names = ("first", "second", "strength", "q_value", "frequency")
    asked = edgegraft_command("query", model, "--given", "smoker=yes", "--json")
    return {
        "edges": [[edge[name] for name in names] for edge in edges],
        "reason": learned["details"]["reason"],
        "rows": learned["details"]["source"]["rows"],
        "query": json.loads(asked),
    }


@case("typer", "rich")
def resumed(folder: Path) -> Result:
    """A search that spent its budget, resumed from its checkpoint."""
    rows, model, run = folder / "rows.csv", folder / "m.edgegraft", folder / "run"
    chain_frame(3000).to_csv(rows, index=False)
    edgegraft_command("learn", rows, "-o", model, "--max-edges", 3, "--checkpoint", run, "--quiet")
    first = sorted_edges(edgegraft.load(model))
    edgegraft_command("resume", run, "--force", "--max-edges", 50, "--quiet")
    return {"first": first, "last": sorted_edges(edgegraft.load(model))}
