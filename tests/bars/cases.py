"""The cases: tables with known networks, hard ones, real ones, every kind of column and setting."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import kinds_data
from benchmarks.hard import cases as hard_cases

import edgegraft
from edgegraft import GraftingSettings, datasets
from tests.bars.draws import (
    chain,
    copying,
    counts,
    hard,
    kinds,
    known,
    many_states,
    on_disk,
    questionnaire,
    recorded,
    scale_free,
    wide,
    with_frequencies,
    with_holes,
    with_selection,
    with_test,
)
from tests.bars.measures import NETWORKS, Bar, Case, pairs

#: Bytes reserved for the library plus those of the sampled cells: with this limit the smallest
#: sample of a fit (10,000 rows of 8 columns) just fits, and 30,000 rows do not.
TIGHT = (1000 << 20) + 2 * 24 * 8 * 10_000
PAPER = GraftingSettings(
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
NOMINAL = {"kinds": "nominal"}
THREE = scale_free(25, 3, 4000, node_scale=0.5)
SMALL = scale_free(12, 3, 2000, node_scale=0.5)
# fmt: off
CASES = (
    # Generators
    Case("scale-free, 3 states", THREE, Bar(f1=0.77, precision=0.84, false=1),
         "f1 1 0.821 0.805; precision 1 0.872 0.944; false 0", seed=2),
    Case("scale-free, 5 states", scale_free(40, 5, 4000), Bar(f1=0.95, precision=0.97, false=1),
         "f1 1 1 0.987; precision 1; false 0", seed=2),
    Case("Ising, 60 columns", scale_free(60, 2, 3000, couplings="ising"),
         Bar(f1=0.92, precision=0.95, false=3),
         "f1 0.956 0.969 0.996; precision 0.988 0.995 1; false 2 0 1"),
    Case("chain of mixed states", chain([2, 3, 4, 2, 3, 5, 2, 3], 3000),
         Bar(f1=0.89, false=1, shares=0.04),
         "f1 0.923 1 0.923; false 0; shares 0.0234 0.0125 0.0167"),
    Case("grid, 3 x 4",
         known(datasets.make_grid, 3, 4, n_rows=4000, edge_scale=1.0, node_scale=0.5),
         Bar(f1=0.55, precision=0.71, false=1, shares=0.03),
         "f1 0.583 0.903 0.692; precision 0.854 0.929 0.74; false 0; shares 0.0193 0.0181 0.0177"),
    Case("copying columns", copying, Bar(exact=True), "exact"),
    # Hard
    Case("star of 60, coupling .6, N=500", hard(hard_cases.star(0.6, 60)),
         Bar(f1=0.96, precision=0.97, false=2), "f1 0.992 1 1; precision 1; false 1 0 0",
         options=NOMINAL),
    Case("star of 60, coupling .8, N=1,000", hard(hard_cases.star(0.8, 60, 1000)),
         Bar(f1=0.96, precision=0.97, false=2), "f1 0.992 1 1; precision 1; false 1 0 0",
         options=NOMINAL),
    Case("ferromagnet 6 x 6, beta .6, N=1,000", hard(hard_cases.ising_grid(0.6, 6, 1000)),
         Bar(f1=0.94, precision=0.96, false=2),
         "f1 0.992 0.975 0.983; precision 1 0.999 0.999; false 1", seed=1, options=NOMINAL),
    Case("ferromagnet 6 x 6, beta .8, N=5,000", hard(hard_cases.ising_grid(0.8, 6)),
         Bar(f1=0.9, precision=0.96, false=3),
         "f1 0.957 0.957 0.939; precision 0.998 0.992 0.995; false 1", seed=2, options=NOMINAL),
    Case("glass 6 x 6, beta 1, N=3,000", hard(hard_cases.ising_grid(1.0, 6, 3000, glass=True)),
         Bar(f1=0.96, precision=0.97, false=1), "f1 1 0.992 1; precision 1; false 0", seed=1,
         options=NOMINAL),
    Case("Potts 4 x 4, 5 states, beta 1.7, N=3,000",
         hard(hard_cases.potts_grid(1.7, 4, n_rows=3000)), Bar(f1=0.95, precision=0.97, false=2),
         "f1 1 1 0.98; precision 1; false 0 0 1", seed=2, options=NOMINAL),
    Case("chain with a copied column", hard(hard_cases.copied_column),
         Bar(f1=0.97, precision=0.97, false=1), "f1 1; precision 1; false 0", options=NOMINAL),
    Case("tree of 98 % copies, N=5,000", hard(hard_cases.tree_of_copies),
         Bar(f1=0.93, precision=0.91, false=1),
         "f1 0.96 0.96 0.974; precision 0.968 0.948 0.983; false 0", options=NOMINAL),
    Case("opposite near-copies, N=1,000", hard(hard_cases.opposite_effects),
         Bar(f1=0.93, precision=0.96, false=1), "f1 1 1 0.966; precision 1 1 0.99; false 0",
         seed=2, options=NOMINAL),
    Case("null: rates .001 to .5", hard(hard_cases.null_rates), Bar(false=1), "false 0",
         options=NOMINAL),
    Case("null: rate .1", hard(hard_cases.null_rare), Bar(false=1), "false 0", options=NOMINAL),
    Case("null: survey weights", hard(hard_cases.null_weighted(1.0)), Bar(false=1), "false 0",
         options=NOMINAL),
    Case("null: population weights", hard(hard_cases.null_weighted(1000.0)), Bar(false=1),
         "false 0", options=NOMINAL),
    Case("tree of 30, half of the cells missing", hard(hard_cases.missing_half),
         Bar(f1=0.93, precision=0.96, false=1), "f1 0.982 0.964 1; precision 1 0.994 1; false 0",
         seed=1, options=NOMINAL),
    # Real
    Case("bfi", recorded("bfi.csv.gz", 2000),
         Bar(gain=6.1, over_tree=1.65, overlap=0.8, edges=(80, 130)),
         "gain 6.34 6.48 6.49; over_tree 1.81 1.84 1.96; edges 100 98 101"),
    Case("house votes", recorded("house_votes_84.csv.gz", 300),
         Bar(gain=4.0, over_tree=-0.1, overlap=0.8, edges=(14, 32)),
         "gain 4.75 4.17 4.72; over_tree 0.0895 0.0437 0.317; edges 24 21 25", seed=1),
    Case("nltcs", recorded("debd/nltcs.npz", 4000),
         Bar(nats=-6.1, gain=4.05, over_tree=0.7, overlap=0.8, edges=(38, 75)),
         "nats -6.06 -6.06 -6.05; gain 4.22 4.22 4.28; over_tree 0.84 0.771 0.821; edges 52 47 55"),
    # Cells and weights
    Case("missing cells", with_holes(scale_free(25, 3, 5000, node_scale=0.5), 0.15),
         Bar(f1=0.75, precision=0.83, false=1),
         "f1 1 0.805 0.789; precision 1 0.861 0.926; false 0", seed=2),
    Case("missing cells of a chain", with_holes(chain(3, 2000), 0.2),
         Bar(f1=0.97, false=1, shares=0.04), "f1 1; false 0; shares 0.0202 0.0251 0.0191"),
    Case("frequencies of rows", with_frequencies(scale_free(16, 2, 8000, node_scale=0.5)),
         Bar(f1=0.8, precision=0.88, false=1),
         "f1 0.902 0.833 0.923; precision 0.934 0.911 0.946; false 0", seed=1),
    Case("sampling weights", with_selection(chain(3, 6000)), Bar(f1=0.97, false=1, shares=0.04),
         "f1 1; false 0; shares 0.0144 0.016 0.0279"),
    # Kinds
    Case("ordered columns", kinds(kinds_data.leveled, 20, 500, 5, at=3),
         Bar(f1=0.92, precision=0.96, false=2), "f1 1 0.95 1; precision 1 0.995 1; false 0 1 0",
         seed=1, options={"kinds": "ordinal"}),
    Case("numbers", kinds(kinds_data.gaussian, 25, 400, None, at=3),
         Bar(f1=0.95, precision=0.97, false=2), "f1 1 0.98 0.98; precision 1; false 0 1 1", seed=1),
    Case("counts", counts, Bar(f1=0.95, precision=0.97, false=1), "f1 1; precision 1; false 0"),
    Case("mixed kinds", kinds(kinds_data.mixed, 1000, at=1), Bar(f1=0.85, precision=0.84, false=2),
         "f1 0.936 0.909 0.884; precision 0.948 0.921 0.871; false 1 0 0", seed=2),
    Case("questionnaire", questionnaire, Bar(f1=0.99, false=1), "f1 1; false 0"),
    # Shapes
    Case("few rows", scale_free(40, 4, 200, node_scale=0.5), Bar(f1=0.55, false=8),
         "f1 0.716 0.742 0.639; false 10 2 5", seed=2, options={"fdr": 0.2}),
    Case("many states", many_states, Bar(f1=0.66, false=1), "f1 0.667 0.667 1; false 0",
         options=NOMINAL),
    Case("wide", wide, Bar(f1=0.97, false=2), "f1 1; false 0 1 1", slow=True),
    Case("out of memory", on_disk(chain(3, 30_000)), Bar(exact=True), "exact",
         options={"max_memory": TIGHT}),
    # Settings
    Case("first-hit", THREE, Bar(f1=0.77, false=1), "f1 1 0.805 0.821; false 0", seed=1,
         options={"search": GraftingSettings(strategy="first-hit")}),
    Case("exhaustive", THREE, Bar(f1=0.77, false=1), "f1 1 0.805 0.835; false 0", seed=1,
         options={"search": GraftingSettings(strategy="exhaustive")}),
    Case("priority uniform", THREE, Bar(f1=0.77, false=1), "f1 1 0.821 0.805; false 0", seed=2,
         options={"search": GraftingSettings(priority="uniform")}),
    Case("penalised", THREE, Bar(f1=0.79, false=1), "f1 1 0.821 0.835; false 0", seed=1,
         options={"search": GraftingSettings(relaxed=False)}),
    Case("the paper's settings", THREE, Bar(f1=0.6, false=1), "f1 0.966 0.74 0.667; false 0",
         seed=2, options={"search": PAPER}),
    Case("prediction", with_test(scale_free(12, 3, 2800, node_scale=0.5), 800),
         Bar(f1=0.82, false=1, gain=1.7, over_tree=0.08),
         "f1 0.974 0.857 0.889; false 0; gain 3.36 1.8 1.87; over_tree 0.538 0.144 0.236", seed=1,
         options={"aim": "prediction"}),
    Case("likelihood", SMALL, Bar(f1=0.88, false=1, shares=0.04),
         "f1 0.974 0.947 0.919; false 0; shares 0.029 0.0286 0.0198", seed=2,
         options={"search": GraftingSettings(objective="likelihood")}),
    Case("likelihood by propagation", SMALL, Bar(f1=0.88, false=1, shares=0.45),
         "f1 0.974 0.974 0.947; false 0; shares 0.122 0.402 0.142", seed=1,
         options={"search": GraftingSettings(objective="likelihood", inference="bp")}),
)
# fmt: on


def write_networks() -> None:
    """Store the networks that real tables have today, for `overlap`."""
    found = {}
    for case in CASES:
        if case.bar.overlap is not None:
            fitted = edgegraft.GraftedMRF(random_state=case.seed).fit(
                case.draw(case.seed, Path()).X
            )
            found[case.name] = sorted(pairs(fitted.edges_))
    lines = [f"{json.dumps(name)}: {json.dumps(edges)}" for name, edges in found.items()]
    NETWORKS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
