"""Make the bundled survey, src/edgegraft/datasets/survey.csv: `python tools/make_survey.py`.

No person answered it. The rows are drawn from a pairwise model with the direct dependencies below,
so that the true network is known; then people are selected by age, which the weights undo, and some
cells are removed.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from edgegraft import PairwiseMRF

N_ROWS = 2000
SEED = 20
FILE = Path(__file__).resolve().parents[1] / "src" / "edgegraft" / "datasets" / "survey.csv"

SCALE = (1, 2, 3, 4, 5)
#: Shares of the answers in the population.
QUESTIONS: dict[str, dict[object, float]] = {
    "age": {"18-29": 0.18, "30-44": 0.25, "45-59": 0.26, "60-74": 0.21, "75+": 0.10},
    "sex": {"female": 0.51, "male": 0.49},
    "region": {"east": 0.2, "north": 0.25, "south": 0.3, "west": 0.25},
    "education": {1: 0.15, 2: 0.40, 3: 0.20, 4: 0.25},
    "job": {"full time": 0.46, "none": 0.16, "part time": 0.17, "retired": 0.21},
    "children": {0: 0.32, 1: 0.22, 2: 0.31, 3: 0.15},
    "income": dict(zip(SCALE, (0.2, 0.25, 0.25, 0.2, 0.1), strict=True)),
    "workload": dict(zip(SCALE, (0.12, 0.22, 0.3, 0.24, 0.12), strict=True)),
    "stress": dict(zip(SCALE, (0.12, 0.24, 0.3, 0.22, 0.12), strict=True)),
    "screens": dict(zip(SCALE, (0.15, 0.2, 0.25, 0.25, 0.15), strict=True)),
    "sleep": dict(zip(SCALE, (0.09, 0.18, 0.28, 0.29, 0.16), strict=True)),
    "tired": dict(zip(SCALE, (0.13, 0.25, 0.3, 0.21, 0.11), strict=True)),
    "headache": dict(zip(SCALE, (0.3, 0.28, 0.22, 0.13, 0.07), strict=True)),
    "smoker": {"no": 0.76, "yes": 0.24},
    "exercise": dict(zip(SCALE, (0.2, 0.2, 0.22, 0.23, 0.15), strict=True)),
    "health": dict(zip(SCALE, (0.06, 0.14, 0.3, 0.33, 0.17), strict=True)),
    "friends": dict(zip(SCALE, (0.1, 0.2, 0.3, 0.25, 0.15), strict=True)),
    "lonely": dict(zip(SCALE, (0.32, 0.28, 0.2, 0.13, 0.07), strict=True)),
    "trust": dict(zip(SCALE, (0.1, 0.22, 0.32, 0.25, 0.11), strict=True)),
    "volunteer": {"no": 0.67, "yes": 0.33},
    "satisfied": dict(zip(SCALE, (0.06, 0.13, 0.26, 0.34, 0.21), strict=True)),
}
#: Direct dependencies of ordered answers: the log-potential per product of standardised answers.
SLOPES = {
    ("age", "health"): -0.35,
    ("age", "screens"): -0.4,
    ("education", "income"): 0.5,
    ("education", "smoker"): -0.35,
    ("education", "trust"): 0.4,
    ("workload", "stress"): 0.7,
    ("stress", "sleep"): -0.55,
    ("stress", "headache"): 0.45,
    ("screens", "sleep"): -0.4,
    ("sleep", "tired"): -0.8,
    ("tired", "headache"): 0.4,
    ("tired", "exercise"): -0.35,
    ("smoker", "health"): -0.35,
    ("exercise", "health"): 0.5,
    ("exercise", "friends"): 0.35,
    ("friends", "lonely"): -0.7,
    ("friends", "volunteer"): 0.4,
    ("trust", "volunteer"): 0.4,
    ("trust", "satisfied"): 0.35,
    ("lonely", "satisfied"): -0.55,
    ("health", "satisfied"): 0.5,
    ("income", "satisfied"): 0.35,
}
#: The others, as log-potentials: a row per answer of the first.
TABLES = {
    ("age", "job"): [
        [0.6, 0, 0.6, -3], [0.9, 0, 0.6, -3], [0.9, 0, 0.5, -1], [-2, 0, -1, 2], [-4, 0, -3, 3],
    ],
    ("age", "children"): [
        [1.8, 0, -1, -2], [0, 0, 0.3, 0], [-0.4, 0, 0.4, 0.3], [-0.4, 0, 0.4, 0.3],
        [-0.4, 0, 0.4, 0.5],
    ],
    ("sex", "job"): [[-0.4, 0, 0.7, 0], [0.4, 0, -0.7, 0]],
    ("sex", "headache"): [[-0.35, -0.15, 0, 0.2, 0.35], [0.35, 0.15, 0, -0.2, -0.35]],
    ("job", "income"): [
        [-0.9, -0.2, 0.3, 0.5, 0.5], [1.4, 0.4, -0.3, -0.8, -1], [0.4, 0.4, 0, -0.3, -0.5],
        [0, 0.2, 0, -0.1, -0.2],
    ],
    ("job", "workload"): [
        [-0.6, -0.2, 0.1, 0.3, 0.4], [0.4, 0.2, 0, -0.2, -0.3], [0, 0.1, 0.1, 0, -0.1],
        [0.8, 0.3, -0.1, -0.5, -0.6],
    ],
}  # fmt: skip


def make_model() -> PairwiseMRF:
    """Return the model of the population, whose margins are those of `QUESTIONS`."""
    scores = {}
    for name, shares in QUESTIONS.items():
        levels, p = np.arange(len(shares)), np.array(list(shares.values()))
        mean = levels @ p
        scores[name] = (levels - mean) / np.sqrt((levels - mean) ** 2 @ p)
    edges = {pair: slope * np.outer(*map(scores.get, pair)) for pair, slope in SLOPES.items()}
    edges |= {pair: np.array(table, float) for pair, table in TABLES.items()}
    nodes = {name: np.zeros(len(shares)) for name, shares in QUESTIONS.items()}
    categories = {name: list(shares) for name, shares in QUESTIONS.items()}
    for _ in range(60):  # iterative fitting of the margins
        model = PairwiseMRF.from_potentials(categories, nodes=nodes, edges=edges)
        found = model.marginals()
        for name, shares in QUESTIONS.items():
            nodes[name] = nodes[name] + 0.5 * np.log(list(shares.values()) / found.array(name))
    return model


def make_rows(model: PairwiseMRF) -> list[list[object]]:
    """Return the header and the rows of the file."""
    rng = np.random.default_rng(SEED)
    codes = model.sample_codes(4 * N_ROWS, random_state=SEED)
    # Older people answer surveys more often.
    chance = np.array([0.3, 0.45, 0.6, 0.9, 0.6])[codes[:, list(QUESTIONS).index("age")]]
    took_part = np.flatnonzero(rng.random(len(codes)) < chance)[:N_ROWS]
    codes, weights = codes[took_part], 1 / chance[took_part]
    hidden = rng.random(codes.shape) < 0.012
    income = list(QUESTIONS).index("income")
    hidden[:, income] = rng.random(N_ROWS) < 0.05 + 0.02 * codes[:, income]
    answers = [list(shares) for shares in QUESTIONS.values()]
    rows: list[list[object]] = [[*QUESTIONS, "weight"]]
    for row, gaps, weight in zip(codes, hidden, weights / weights.mean(), strict=True):
        cells = [
            "" if gap else answers[k][c] for k, (c, gap) in enumerate(zip(row, gaps, strict=True))
        ]
        rows.append([*cells, f"{weight:.3f}"])
    return rows


if __name__ == "__main__":
    with FILE.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows(make_rows(make_model()))
