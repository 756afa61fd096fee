"""Content of the explorer: answers given evidence and without, tables of a variable, exports.

This module does not depend on a web page: :mod:`edgegraft.report.explorer_app` serves it. Answers
do not depend on earlier requests, so returning to earlier evidence gives the earlier numbers.
"""

from __future__ import annotations

import csv
import io
import json
import time
import warnings
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core.types import Floats
from edgegraft.errors import ConvergenceWarning, ModelError
from edgegraft.inference import ExactBudget, InferenceEngine, make_engine
from edgegraft.model import PairwiseMRF
from edgegraft.model.evidence import parse_evidence, with_evidence
from edgegraft.report.network import build_network, drawing
from edgegraft.report.style import LIMITS, for_json, strongest_part
from edgegraft.table.numbers import numbers_of

Json = dict[str, Any]

#: Budget of exact inference: answers are expected immediately.
INTERACTIVE = ExactBudget(seconds=0.1)
MAX_CATEGORIES = 24  # rows and columns of an interaction table: the width of a screen
_SHARES = (0.05, 0.5, 0.95)
_CACHED = 64  # answers that undo and redo find again: a budget of 64 times the probabilities


class Answer(NamedTuple):
    """Marginals of every variable given evidence, and how far they can be trusted."""

    given: dict[int, int]  # the category of each observed variable, both by number
    probabilities: Floats  # of all variables in turn; 1 at the category of an observed one
    engine: str
    reliability: str  # exact, converged or not converged
    message: str  # the engine's, about its run
    seconds: float


class Explorer:
    """Answers about one model, each with its counterpart without evidence.

    The engine is by default exact inference if it takes less than 100 ms, otherwise belief
    propagation, its tree-reweighted form if that does not converge, or Gibbs chains if they
    contradict both. `shares` is the sentence on how far the model's shares are from the data's that
    model files keep.

    >>> model = PairwiseMRF.from_potentials(
    ...     {"rain": [False, True], "wet": [False, True]},
    ...     edges={("rain", "wet"): [[1, 0], [0, 3]]},
    ... )
    >>> explorer = Explorer(model)
    >>> answer = explorer.ask(explorer.read_link('{"wet":true}'))
    >>> answer.reliability, answer.probabilities.round(3)
    ('exact', array([0.047, 0.953, 0.   , 1.   ]))
    """

    def __init__(
        self,
        model: PairwiseMRF,
        *,
        title: str = "model",
        engine: InferenceEngine | None = None,
        shares: str = "",
    ) -> None:
        self.model = model
        self.title, self.shares = title, shares
        self.engine = make_engine("auto", budget=INTERACTIVE) if engine is None else engine
        self._lock = Lock()
        self._cached = lru_cache(_CACHED)(self._infer)
        self.prior = self.ask({})
        self._network = drawing(build_network(model, top=LIMITS.drawn))
        self._shown = model.zero_sum()
        self._strengths = model.edge_strengths()
        self._numbers = [numbers_of(variable) for variable in model.schema]

    def ask(self, given: Mapping[int, int]) -> Answer:
        """Return the marginals given evidence, from the cache if possible."""
        # One at a time: inference is short, and warning filters apply to the whole process.
        with self._lock:
            return self._cached(tuple(sorted(given.items())))

    def _infer(self, pairs: tuple[tuple[int, int], ...]) -> Answer:
        start, given = time.perf_counter(), dict(pairs)
        labels = self.labels(given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the answer reports it
            answer = self.model.marginals(labels, engine=self.engine)
        seconds = time.perf_counter() - start
        values = with_evidence(answer, self.model.schema, labels).probabilities
        reliability = "converged" if answer.info.converged else "not converged"
        reliability = "exact" if answer.engine.exact else reliability
        return Answer(given, values, answer.engine.name, reliability, answer.info.message, seconds)

    def change(self, answer: Answer) -> Floats:
        """Return the total variation distance of each variable from its prior, from 0 to 1."""
        gap = np.abs(answer.probabilities - self.prior.probabilities)
        return 0.5 * np.add.reduceat(gap, self.model.layout.node_offset[:-1])

    def numbers(self, answer: Answer) -> list[list[float] | None]:
        """Return mean, 5 % quantile, median and 95 % quantile of each variable that has numbers."""
        return [
            None
            if numbers is None
            else [float(numbers.expectation(p)), *numbers.quantiles(p, _SHARES).tolist()]
            for numbers, p in zip(self._numbers, self._of_each(answer), strict=True)
        ]

    def _of_each(self, answer: Answer) -> list[Floats]:
        """Return the probabilities of each variable."""
        return np.split(answer.probabilities, self.model.layout.node_offset[1:-1])

    def labels(self, given: Mapping[int, int]) -> dict[str, Any]:
        """Return evidence as names and categories."""
        schema = self.model.schema
        return {schema.names[i]: schema[i].categories[code] for i, code in given.items()}

    def codes(self, pairs: Any) -> dict[int, int]:
        """Return evidence from pairs of numbers, as the page sends it."""
        given: dict[int, int] = {}
        for pair in pairs if isinstance(pairs, list) else [pairs]:
            whole = isinstance(pair, list) and len(pair) == 2
            if not whole or any(type(number) is not int for number in pair):
                raise ModelError(f"evidence is a list of [variable, category], found {pair!r}")
            i, code = pair
            states = self.model.layout.states
            if not (0 <= i < len(states) and 0 <= code < states[i]):
                raise ModelError(f"the model has no category {code} of a variable {i}")
            given[i] = code
        return given

    def link(self, given: Mapping[int, int]) -> str:
        """Return evidence as the text of a link."""
        return json.dumps(self.labels(given), ensure_ascii=False, separators=(",", ":"))

    def read_link(self, text: str) -> dict[int, int]:
        """Return the evidence of a link, refusing what :meth:`link` does not write."""
        try:
            given = read_json(text) if text else {}
        except ValueError as error:
            raise ModelError(f"the link's evidence cannot be read: {error}") from error
        if not isinstance(given, dict):
            raise ModelError("the link's evidence cannot be read: it has no names of variables")
        return parse_evidence(self.model.schema, given)

    def overview(self) -> Json:
        """Return the initial content of the page."""
        model, prior = self.model, self.prior
        each = zip(model.schema, self._of_each(prior), self.numbers(prior), strict=True)
        return {
            "title": self.title,
            "shares": self.shares,
            "variables": [
                {
                    "name": variable.name,
                    "categories": [str(label) for label in variable.categories],
                    "kind": variable.kind,
                    "prior": own.tolist(),
                    "numbers": numbers,
                }
                for variable, own, numbers in each
            ],
            "n_edges": model.n_edges,
            "network": self._network,
        }

    def answer(self, given: Mapping[int, int]) -> Json:
        """Return an answer in the form that the page expects."""
        answer = self.ask(given)
        return {
            "given": [[i, code] for i, code in given.items()],
            "link": self.link(given),
            "probabilities": answer.probabilities.tolist(),
            "change": self.change(answer).tolist(),
            "numbers": self.numbers(answer),
            "engine": answer.engine,
            "prior_engine": self.prior.engine,
            "reliability": answer.reliability,
            "message": answer.message,
            "milliseconds": 1e3 * answer.seconds,
        }

    def variable(self, i: int) -> Json:
        """Return a variable's neighbours, strongest first, with the tables of their edges.

        Rows are the categories of the variable. A forbidden pair is None, and so is the strength of
        its edge. For variables with many categories, those with the largest entries are shown.
        """
        if not 0 <= i < self.model.n_variables:
            raise ModelError(f"the model has no variable {i}: it has {self.model.n_variables}")
        own = np.flatnonzero((self.model.edges == i).any(axis=1))
        own = own[np.argsort(-self._strengths[own], kind="stable")]
        return {"variable": i, "neighbours": [self._neighbour(i, k) for k in own.tolist()]}

    def _neighbour(self, i: int, edge: int) -> Json:
        ends = self.model.edges[edge]
        table = self._shown.layout.edge(self._shown.theta, edge)
        if ends[0] != i:
            table = table.T
        rows, columns = strongest_part(table, MAX_CATEGORIES)
        return {
            "variable": int(ends.sum() - i),
            "strength": for_json(self._strengths[edge], 17),
            **{
                name: for_json(float(self.model.edge_columns[name][edge]), 3)
                for name in ("sign", "effect_low", "effect_high")
                if name in self.model.edge_columns
            },
            "rows": rows.tolist(),
            "columns": columns.tolist(),
            "table": [[for_json(x, 17) for x in row] for row in table[np.ix_(rows, columns)]],
        }

    def export_csv(self, given: Mapping[int, int]) -> str:
        """Return one line per category: its probability with and without evidence."""
        out, answer = io.StringIO(), self.ask(given)
        writer = csv.writer(out, lineterminator="\n")
        columns = ("variable", "category", "observed", "probability", "without_evidence")
        writer.writerow([*columns, "engine", "reliability"])
        each = zip(self.model.schema, self._of_each(answer), self._of_each(self.prior), strict=True)
        for i, (variable, now, before) in enumerate(each):
            states = zip(variable.categories, now.tolist(), before.tolist(), strict=True)
            for category, p, q in states:
                row = [variable.name, category, int(i in given), p, q]
                writer.writerow([*row, answer.engine, answer.reliability])
        return out.getvalue()


def read_json(text: str) -> Any:
    """Return JSON that a client sent, which may be nested without end."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("values are nested too deeply") from None
