"""One evaluation of the pseudolikelihood, value and gradient, and scores of other pairs.

Rivals: one-hot matrix products in double precision with SciPy's log-sum-exp, as one would write it
in NumPy; the same in single precision; and a plain numba loop that gathers a row of each
neighbour's table. Their layout (one-hot matrices, transposed tables) is prepared beforehand and not
timed. Our time includes everything that `evaluate` does. One thread each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from benchmarks.rows import Row, best_of
from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable

REPEATS = 5
CASES = (
    # variables, states, rows, edges (None for all pairs), time limit in seconds
    (200, 5, 19_000, 600, 0.12),
    (100, 5, 10_000, None, 0.20),
    (200, 2, 10_000, None, 0.04),
)


def run(scale: float = 1.0) -> list[Row]:
    """Return all rows of the section."""
    rows: list[Row] = []
    with threadpool_limits(1):
        for n, states, n_rows, n_edges, limit in CASES:
            case = make_case(n, states, int(n_rows * scale), n_edges)
            rows += evaluations(case, limit * scale)
        rows += pair_scores(make_case(200, 5, int(19_000 * scale), 600))
        rows.append(two_threads(make_case(200, 5, int(19_000 * scale), 600)))
    return rows


class Case:
    """A random table, graph and point."""

    def __init__(self, codes: np.ndarray, layout: Layout, theta: np.ndarray) -> None:
        self.codes, self.layout, self.theta = codes, layout, theta
        self.table = PackedTable.from_codes(codes)
        n, n_rows = layout.n_variables, len(codes)
        graph = "all pairs" if layout.n_edges == n * (n - 1) // 2 else f"{layout.n_edges} edges"
        self.name = f"{n} variables, {layout.states[0]} states, {graph}, N={n_rows:,}"


def make_case(n: int, states: int, n_rows: int, n_edges: int | None) -> Case:
    rng = np.random.default_rng(0)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    if n_edges is not None:
        pairs = pairs[np.sort(rng.choice(len(pairs), n_edges, replace=False))]
    layout = Layout([states] * n, pairs)
    codes = rng.integers(0, states, (n_rows, n))
    codes[0] = states - 1
    return Case(codes, layout, rng.normal(scale=0.3, size=layout.n_parameters))


def evaluations(case: Case, limit: float) -> list[Row]:
    sides: list[Callable[[], object]] = []
    for precision in ("double", "single"):
        objective = Pseudolikelihood(case.table, precision=precision)
        sides.append(bind(objective, case))
    double, single, gather = one_hot(case, np.float64), one_hot(case, np.float32), gathered(case)
    value, gradient = double()
    for side, tolerance in ((sides[0], 1e-10), (sides[1], 1e-6), (gather, 1e-10)):
        found = side()
        assert abs(found[0] - value) < tolerance * abs(value), case.name
        assert np.abs(found[1] - gradient).max() < tolerance, case.name
    ours, ours_single, *theirs = best_of(REPEATS, *sides, double, single, gather)
    note = (
        f"Limit: {limit:.2g} s. Vector bound {bound(case) * 1e3:.1f} ms: N (2m (s-1) adds, "
        "twice, and n s exponentials of 20 operations), eight doubles per operation, one "
        "operation per cycle at 3 GHz, without look-ups, moves and horizontal sums."
    )
    return [
        Row(case.name, ours, "one-hot products, NumPy, double", theirs[0], "s", None, note),
        Row(f"{case.name}, single", ours_single, "the same, single", theirs[1], "s"),
        Row(case.name, ours, "a numba loop that gathers table rows, double", theirs[2], "s"),
    ]


def bind(objective: Pseudolikelihood, case: Case) -> Callable[[], tuple[float, np.ndarray]]:
    state = objective.init(case.layout)
    return lambda: objective.evaluate(case.theta, state)[:2]


def bound(case: Case) -> float:
    s, m, n = int(case.layout.states[0]), case.layout.n_edges, case.layout.n_variables
    operations = 2 * 2 * m * (s - 1) + 20 * n * s
    return len(case.codes) * operations / 8 / 3e9


def one_hot(case: Case, dtype: type) -> Callable[[], tuple[float, np.ndarray]]:
    layout, n_rows = case.layout, len(case.codes)
    s, n = int(layout.states[0]), layout.n_variables
    one = (case.codes[:, :, None] == np.arange(s)).reshape(n_rows, -1).astype(dtype)
    # Cells of the (n s, n s) matrix of all tables, and their positions in the parameters.
    i, j = layout.edges.T
    a, b = np.divmod(np.arange(s * s), s)
    row, column = (i[:, None] * s + a).ravel(), (j[:, None] * s + b).ravel()
    matrix = np.zeros((n * s, n * s), dtype)

    def evaluate() -> tuple[float, np.ndarray]:
        matrix[row, column] = matrix[column, row] = case.theta[n * s :]
        logits = (one @ matrix + case.theta[: n * s].astype(dtype)).reshape(n_rows, n, s)
        log_p = logits - logsumexp(logits, axis=2, keepdims=True)
        left = one - np.exp(log_p).reshape(n_rows, -1)
        sums = one.T @ left
        table = sums[column, row] + sums[row, column]
        gradient = np.concatenate((left.sum(axis=0), table)) / -n_rows
        return -float((one * log_p.reshape(n_rows, -1)).sum()) / n_rows, gradient

    return evaluate


def gathered(case: Case) -> Callable[[], tuple[float, np.ndarray]]:
    layout = case.layout
    codes = np.ascontiguousarray(case.codes, np.uint8)
    neighbours = neighbours_of(layout)

    def evaluate() -> tuple[float, np.ndarray]:
        gradient = np.zeros(layout.n_parameters)
        loss = gather_loop(
            case.theta, codes, layout.states, layout.node_offset, neighbours, gradient
        )
        return loss / len(codes), gradient / -len(codes)

    return evaluate


@njit(cache=True)
def gather_loop(theta, codes, states, node_offset, neighbours, gradient):
    """Work row by row: gather, softmax, scatter."""
    loss = 0.0
    z = np.empty(states.max())
    for r in range(codes.shape[0]):
        for i in range(states.shape[0]):
            s = states[i]
            for a in range(s):
                z[a] = theta[node_offset[i] + a]
            for e in range(neighbours.start[i], neighbours.start[i + 1]):
                at = neighbours.table[e] + codes[r, neighbours.other[e]] * neighbours.step[e]
                for a in range(s):
                    z[a] += theta[at + a * neighbours.own_step[e]]
            top = z[:s].max()
            total = 0.0
            loss += top - z[codes[r, i]]
            for a in range(s):
                z[a] = np.exp(z[a] - top)
                total += z[a]
            loss += np.log(total)
            for a in range(s):
                z[a] = (1.0 if codes[r, i] == a else 0.0) - z[a] / total
                gradient[node_offset[i] + a] += z[a]
            for e in range(neighbours.start[i], neighbours.start[i + 1]):
                at = neighbours.table[e] + codes[r, neighbours.other[e]] * neighbours.step[e]
                for a in range(s):
                    gradient[at + a * neighbours.own_step[e]] += z[a]
    return loss


def pair_scores(case: Case) -> list[Row]:
    """Score all pairs, and a batch with cached residuals, in microseconds per pair."""
    objective = Pseudolikelihood(case.table)
    state = objective.evaluate(case.theta, objective.init(case.layout)).state
    pairs = np.stack(np.triu_indices(case.layout.n_variables, 1), axis=1)
    batch = pairs[np.random.default_rng(1).choice(len(pairs), 500, replace=False)]
    codes, n_rows = case.codes, len(case.codes)
    s = int(case.layout.states[0])
    left = np.random.default_rng(0).normal(size=(2, s, n_rows))

    def weighted_bincounts() -> None:
        for i, j in pairs[:20]:
            for a in range(s):
                np.bincount(codes[:, j], left[0, a], s)
                np.bincount(codes[:, i], left[1, a], s)

    cold = state._replace(residuals=None)
    objective.edge_gradients(case.theta, state, batch)
    every, kept, theirs = best_of(
        3,
        lambda: objective.edge_gradients(case.theta, cold, pairs),
        lambda: objective.edge_gradients(case.theta, state, batch),
        weighted_bincounts,
    )
    rival = "weighted np.bincount of given residuals"
    scores, theirs = "gradient of a pair outside the model", theirs / 20 * 1e6
    note = "Residuals are computed on the way. The aim was 5 us per 1,000 rows: 95 us here."
    return [
        Row(f"{scores}, all pairs", every / len(pairs) * 1e6, rival, theirs, "us", None, note),
        Row(f"{scores}, 500 pairs, residuals cached", kept / 500 * 1e6, rival, theirs, "us"),
    ]


def two_threads(case: Case) -> Row:
    one, two = (bind(Pseudolikelihood(case.table, n_jobs=k), case) for k in (1, 2))
    one(), two()
    theirs, ours = best_of(REPEATS, one, two)
    return Row(f"two threads, {case.name}", ours, "one thread", theirs, "s")
