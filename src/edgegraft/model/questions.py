"""What users ask of a model, in their own names.

Every question takes evidence (``given``), works on the model that the evidence leaves, and names
the engine that answered. Answers that did not converge warn.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from edgegraft.core.types import Integers
from edgegraft.errors import Argument, ConvergenceWarning, ImpossibleEvidenceError, ModelError
from edgegraft.inference import (
    BeliefPropagation,
    ExactEngine,
    InferenceEngine,
    Info,
    Marginals,
    TreeReweighted,
    affordable,
    annealed_log_partition,
    answering,
    make_engine,
)
from edgegraft.inference.engine import Assignment
from edgegraft.model.answers import LogPartition, MapState, NodeMarginals, PairMarginal
from edgegraft.model.evidence import Conditioned, condition, parse_evidence, variable_index
from edgegraft.model.potentials import NamedPotentials

Engine = str | InferenceEngine
Given = Mapping[str, Any] | None
RandomState = int | np.random.Generator | None


class Questions(NamedPotentials):
    """The questions; :class:`~edgegraft.model.PairwiseMRF` answers them."""

    def marginals(
        self, given: Given = None, *, engine: Engine = "auto", random_state: RandomState = 0
    ) -> NodeMarginals:
        """Return the probability of every category of every variable that is not given.

        Parameters
        ----------
        given : dict of name to category, optional
            Evidence.
        engine : {"auto", "exact", "bp", "trw", "gibbs"} or an engine
        random_state : int or Generator
            For engines that sample.

        Examples
        --------
        >>> from edgegraft.model import PairwiseMRF
        >>> model = PairwiseMRF.from_potentials(
        ...     {"rain": [False, True], "wet": [False, True]},
        ...     edges={("rain", "wet"): [[1, 0], [0, 3]]},
        ... )
        >>> round(model.marginals({"wet": True})["rain"][True], 3)
        0.953
        """
        part = self._condition(given)
        used, found, state, info = self._infer(part, engine, random_state)
        values = found.values[: int(part.layout.node_offset[-1])]
        schema = self.schema.select(part.free.tolist())
        return NodeMarginals(schema, values, engine=answering(used, state), info=info)

    def pair_marginal(
        self,
        first: str,
        second: str,
        given: Given = None,
        *,
        engine: Engine = "auto",
        random_state: RandomState = 0,
    ) -> PairMarginal:
        """Return the joint probability of two variables' categories, joined by an edge or not.

        How a pair without an edge is answered is the engine's business, and the answer's
        ``method`` names it.
        """
        i, j = (variable_index(self.schema, name) for name in (first, second))
        for name in (first, second):
            if name in (given or {}):
                raise ModelError(f"variable {name!r} is given: ask for the other's marginal")
        if i == j:
            raise ModelError(f"a pair has two variables, found {first!r} twice")
        part = self._condition(given)
        used, _, state, info = self._infer(part, engine, random_state)
        pair = np.searchsorted(part.free, [[i, j]])
        table = used.pair_marginals(part.theta, state, pair)[0]
        capabilities = answering(used, state)
        is_edge = (part.layout.edges == np.sort(pair)).all(axis=1).any()
        own = is_edge and not capabilities.exact and capabilities.name != "gibbs"
        return PairMarginal(
            (first, second),
            (self.schema[i].categories, self.schema[j].categories),
            np.array(table),
            "edge belief" if own else capabilities.pair_marginals,
            engine=capabilities,
            info=info,
        )

    def map(self, given: Given = None, *, engine: Engine = "auto") -> MapState:
        """Return the likeliest state of all variables that agrees with the evidence.

        Exact by junction tree if that is affordable (or asked for); otherwise the best that
        max-product belief propagation and single changes find, and ``exact`` is False.
        """
        part = self._condition(given)
        with _naming_evidence(part):
            found, exact = _maximise(part, engine)
        codes = part.complete(found.assignment)
        if found.value == -np.inf:
            raise ModelError(
                "no possible state was found; with forbidden pairs only exact inference is sure "
                "to find one (",
                Argument("engine", "exact"),
                ")",
            )
        labels = {v.name: v.categories[c] for v, c in zip(self.schema, codes, strict=True)}
        return MapState(labels, codes, part.constant + found.value, exact)

    def log_partition(
        self,
        given: Given = None,
        *,
        engine: Engine = "auto",
        random_state: RandomState = 0,
        device: str = "cpu",
        rows: Integers | None = None,
    ) -> LogPartition:
        """Return log Z, the log of the sum of the potentials of all states (given the evidence).

        With "auto": exact if affordable; otherwise estimated by annealed importance sampling,
        with its standard error and the tree-reweighted upper bound. A named engine gives its
        own value: exact, Bethe approximation or upper bound. The chains of the sampling run on
        `device` ("cpu", "cuda", "auto", "torch"). An estimate that misses a mode is noticed from
        `rows` (codes of all variables, without evidence) if that mode has some of them, otherwise
        with luck from the likeliest state; then a warning says that log Z is not known, and its
        standard error is infinite.
        """
        part = self._condition(given)
        if engine == "auto" and affordable(part.layout) is None:
            value, error = _annealed(part, random_state, device, rows)
            kind, trw = "annealed importance sampling", TreeReweighted()
            bound = trw.run(part.theta, trw.init(part.layout))[0].log_partition
            return LogPartition(part.constant + value, kind, error, part.constant + bound)
        used, found, state, _ = self._infer(part, engine, random_state)
        kind = answering(used, state).log_partition
        if kind == "none":
            raise ModelError(
                "this engine gives no log-partition function: use 'exact', 'bp' or 'trw', or "
                "'auto' for an estimate by annealed importance sampling"
            )
        value = part.constant + found.log_partition
        return LogPartition(value, kind, 0.0, np.inf if kind == "Bethe approximation" else value)

    def _condition(self, given: Given) -> Conditioned:
        codes = np.full(self.n_variables, -1, np.int64)
        for i, code in parse_evidence(self.schema, given).items():
            codes[i] = code
        return condition(self.layout, self.theta, codes)

    def _infer(
        self, part: Conditioned, engine: Engine, random_state: RandomState
    ) -> tuple[InferenceEngine, Marginals, Any, Info]:
        """Run an engine on what the evidence leaves; warn if it did not converge."""
        used = make_engine(engine)
        with _naming_evidence(part):
            found, state, info = used.run(
                part.theta, used.init(part.layout), np.random.default_rng(random_state)
            )
        if not info.converged:
            message = info.message or "inference did not converge"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return used, found, state, info


def _annealed(
    part: Conditioned, random_state: RandomState, device: str, rows: Integers | None
) -> tuple[float, float]:
    """Return log Z by annealing and its standard error; warn if it is not known."""
    known = rows if rows is not None and len(part.free) == len(part.codes) else None
    found = annealed_log_partition(
        part.layout, part.theta, random_state=random_state, device=device, rows=known
    )
    if found.reliable:
        return found.value, found.standard_error
    why = "few of its chains carry the weight"
    if found.missed:
        why = f"another way to it differs by {found.missed:.2g} nats"
    warnings.warn(
        "log Z is not known: annealed importance sampling gives "
        f"{part.constant + found.value:.6g}, but {why}",
        ConvergenceWarning,
        stacklevel=3,
    )
    return found.value, np.inf


def _maximise(part: Conditioned, engine: Engine) -> tuple[Assignment, bool]:
    """Return the likeliest assignment that was found, and whether none is likelier."""
    exact = affordable(part.layout) if engine == "auto" else None
    if exact is not None:
        return ExactEngine().map(part.theta, exact), True
    used = make_engine("bp" if engine == "auto" else engine)
    if isinstance(used, ExactEngine | BeliefPropagation):
        return used.map(part.theta, part.layout), used.capabilities.exact
    name = used.capabilities.name
    raise ModelError(f"engine {name!r} does not maximise: use 'auto', 'exact' or 'bp'")


@contextmanager
def _naming_evidence(part: Conditioned) -> Iterator[None]:
    """Turn an engine's word that nothing is possible into one about the evidence."""
    try:
        yield
    except ModelError as error:
        if len(part.free) == len(part.codes):
            raise
        raise ImpossibleEvidenceError(f"the evidence has probability zero: {error}") from error
