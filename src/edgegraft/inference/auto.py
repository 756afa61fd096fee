"""Which engine to use, for those who do not want to choose.

Exact inference if the graph allows it. Otherwise belief propagation, the better approximation
if it settles; if it does not, tree-reweighted belief propagation, which has one optimum to settle
in. That messages settle does not make them right: on the networks of a hundred columns that dense
data give, they settle a tenth off and more. So answers are checked by Gibbs chains: if these differ
from the messages by more than their errors, they answer. Answers name the engine that gave them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core import Layout
from edgegraft.core.pairs import PairTables
from edgegraft.core.types import Edges, Floats
from edgegraft.errors import ModelError
from edgegraft.inference.affordability import (
    ONE_ANSWER,
    REPEATED,
    ExactBudget,
    ExactState,
    affordable,
    describe_cost,
    exact_cost,
)
from edgegraft.inference.bp import BeliefPropagation
from edgegraft.inference.engine import Capabilities, InferenceEngine, Info, Marginals, State
from edgegraft.inference.exact import ExactEngine
from edgegraft.inference.gibbs import GibbsEngine, GibbsState
from edgegraft.inference.messages import MessageState
from edgegraft.inference.trw import TreeReweighted


@dataclass(frozen=True)
class _Rule:
    """When chains check an answer, and when they contradict it."""

    look_ups: float = 2e9  # of neighbours by all chains, at most: some seconds
    slack: float = 0.01  # of a probability: a smaller difference does not matter,
    sure: float = 4.0  # nor does one of fewer standard errors more


_RULE = _Rule()


class AutoState(NamedTuple):
    """States of the engines that have a part in the graph at hand; None for the others."""

    layout: Layout
    exact: ExactState | None
    bp: MessageState | None
    trw: MessageState | None
    gibbs: GibbsState | None
    answer: str  # name of the engine that answered, or that is tried first


@dataclass(frozen=True)
class AutoEngine:
    """Exact inference if affordable, else belief propagation, its tree-reweighted form or chains.

    Parameters
    ----------
    budget : ExactBudget
        What a run may take for inference to be exact: 30 seconds and half of the machine's memory
        by default. Callers that run it many times allow less.
    bp : BeliefPropagation
        Settings for graphs on which exact inference is too expensive.
    trw : TreeReweighted
        Settings for models on which belief propagation does not converge.
    gibbs : GibbsEngine, optional
        Chains that check the answers of the two, and answer if they differ. They give no log Z, so
        that a likelihood has none. Models with zero entries, which chains may not get around in,
        and those whose chains would take many seconds are not checked.

    Examples
    --------
    >>> engine = AutoEngine()
    >>> state = engine.init(Layout([2, 2], [(0, 1)]))
    >>> marginals, state, info = engine.run(np.zeros(8), state)
    >>> engine.answered(state).name, round(marginals.log_partition, 4)
    ('exact', 1.3863)
    """

    budget: ExactBudget = ONE_ANSWER
    bp: BeliefPropagation = field(default_factory=BeliefPropagation)
    trw: TreeReweighted = field(default_factory=TreeReweighted)
    gibbs: GibbsEngine | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What answers can be; :meth:`answered` returns what one is."""
        return Capabilities(
            "auto",
            False,
            "exact if affordable, else Bethe approximation or upper bound",
            f"exact if affordable, else {self.bp.capabilities.pair_marginals}",
        )

    def answered(self, state: AutoState) -> Capabilities:
        """Return what the answer of the run that returned `state` is.

        Of a state that has not run: what the engine that is tried first would give.
        """
        return self._engine(state.answer).capabilities

    def init(self, layout: Layout) -> AutoState:
        """Return a cold state of the first engine that can handle the graph."""
        exact = affordable(layout, self.budget)
        bp = self.bp.init(layout) if exact is None else None
        return AutoState(layout, exact, bp, None, None, "bp" if exact is None else "exact")

    def grow(self, state: AutoState, layout: Layout) -> AutoState:
        """Return a state for another graph, with the messages of the edges in both."""
        fresh = self.init(layout)
        if fresh.exact is not None:
            return fresh
        bp = fresh.bp if state.bp is None else self.bp.grow(state.bp, layout)
        trw = None if state.trw is None else self.trw.grow(state.trw, layout)
        return fresh._replace(bp=bp, trw=trw)

    def run(
        self,
        theta: Floats,
        state: AutoState,
        rng: np.random.Generator | None = None,
    ) -> tuple[Marginals, AutoState, Info]:
        """Return an answer, the state for the next run, and how it went.

        ``info.diagnostics["engine"]`` names the engine that answered, and ``["exact"]`` is what
        exact inference would have taken if it was not affordable. ``info.message`` reports that
        belief propagation was tried in vain.
        """
        if state.exact is not None:
            marginals, exact, info = _EXACT.run(theta, state.exact)
            return marginals, state._replace(exact=exact), _named(info, engine="exact")
        marginals, after, info = self._pass_messages(theta, state)
        cost = describe_cost(exact_cost(state.layout, self.budget))
        if self.gibbs is not None and _can_check(self.gibbs, state.layout, theta):
            chains, gibbs, run = self.gibbs.run(theta, self.gibbs.init(state.layout), rng)
            if not _agree(state.layout, marginals, chains, run):
                marginals, info = chains, _named(run, engine="gibbs")
                after = after._replace(gibbs=gibbs, answer="gibbs")
        return marginals, after, _named(info, exact=cost)

    def _pass_messages(self, theta: Floats, state: AutoState) -> tuple[Marginals, AutoState, Info]:
        """Return the answer of belief propagation, or of its tree-reweighted form."""
        warm = self.bp.init(state.layout) if state.bp is None else state.bp
        marginals, bp, info = self.bp.run(theta, warm)
        if info.converged:
            return marginals, state._replace(bp=bp, answer="bp"), _named(info, engine="bp")
        trw = self.trw.init(state.layout) if state.trw is None else state.trw
        marginals, trw, safe = self.trw.run(theta, trw)
        message = (
            f"belief propagation did not converge in {info.n_iter} sweeps, so tree-reweighted "
            f"belief propagation answered. {safe.message}"
        ).strip()
        # Messages that oscillated are a worse start than none.
        after = state._replace(bp=None, trw=trw, answer="trw")
        return marginals, after, _named(safe._replace(message=message), engine="trw")

    def pair_marginals(self, theta: Floats, state: AutoState, edges: Edges) -> PairTables:
        """Return joint marginals of any pairs from the engine that answered."""
        own: Any = getattr(state, state.answer)
        return self._engine(state.answer).pair_marginals(theta, own, edges)

    def _engine(self, name: str) -> InferenceEngine:
        engines: dict[str, InferenceEngine] = {"exact": _EXACT, "bp": self.bp, "trw": self.trw}
        return self.gibbs if name == "gibbs" and self.gibbs is not None else engines[name]


_EXACT = ExactEngine()


def _named(info: Info, **words: str) -> Info:
    return info._replace(diagnostics={**(info.diagnostics or {}), **words})


def _can_check(gibbs: GibbsEngine, layout: Layout, theta: Floats) -> bool:
    """Return whether chains can go everywhere in a model, and do so in a few seconds."""
    n_sweeps = gibbs.n_chains * (gibbs.burn_in + gibbs.n_sweeps)
    look_ups = n_sweeps * (layout.n_variables + 2 * layout.n_edges) * layout.states.mean() / 2
    return bool(look_ups <= _RULE.look_ups and np.isfinite(theta).all())


def _agree(layout: Layout, found: Marginals, chains: Marginals, run: Info) -> bool:
    """Return whether marginals are those of chains, but for their errors."""
    n_nodes = int(layout.node_offset[-1])
    p, q = found.values[:n_nodes], chains.values[:n_nodes]
    draws = np.repeat((run.diagnostics or {})["ess_of"], layout.states)
    return bool((np.abs(p - q) <= _RULE.slack + _RULE.sure * np.sqrt(q * (1.0 - q) / draws)).all())


def _checked_engine(**settings: Any) -> AutoEngine:
    return AutoEngine(**{"gibbs": GibbsEngine(), **settings})


ENGINES: dict[str, Callable[..., InferenceEngine]] = {
    "auto": _checked_engine,
    "exact": ExactEngine,
    "bp": BeliefPropagation,
    "trw": TreeReweighted,
    "gibbs": GibbsEngine,
}
#: The engines that give log Z, which the likelihood needs.
LIKELIHOOD_ENGINES = ("auto", "exact", "bp", "trw")


def make_engine(engine: str | InferenceEngine = "auto", **settings: Any) -> InferenceEngine:
    """Return the engine that a name stands for; an engine is returned as it is.

    `settings` are arguments of the engine that is named.

    Examples
    --------
    >>> make_engine("bp", damping=0.5).damping
    0.5
    >>> make_engine("junction tree")
    Traceback (most recent call last):
    ValueError: there is no engine 'junction tree': use 'auto', 'exact', 'bp', 'trw' or 'gibbs'
    """
    if isinstance(engine, str):
        if engine in ENGINES:
            return ENGINES[engine](**settings)
        raise ValueError(f"there is no engine {engine!r}: use {_listed(ENGINES)}")
    if not all(hasattr(engine, name) for name in ("capabilities", "init", "grow", "run")):
        raise TypeError(f"{engine!r} is neither the name of an engine nor an engine")
    if settings:
        raise ValueError(f"{engine!r} is made already: {', '.join(settings)} came too late")
    return engine


def likelihood_engine(engine: str | InferenceEngine = "auto", **settings: Any) -> InferenceEngine:
    """Return the engine of :func:`make_engine` for a likelihood, which runs it many times.

    The likelihood needs log Z, so only :data:`LIKELIHOOD_ENGINES` and engines whose capabilities
    name one will do; "auto" is exact only if a run takes about a second.

    Examples
    --------
    >>> likelihood_engine().budget.seconds
    1.5
    >>> likelihood_engine("gibbs")
    Traceback (most recent call last):
    edgegraft.errors.ModelError: engine 'gibbs' gives no log-partition function, which the \
likelihood needs: use 'auto', 'exact', 'bp' or 'trw', or the pseudolikelihood
    """
    if engine == "auto":
        settings = {"budget": REPEATED, "gibbs": None} | settings
    return with_log_partition(make_engine(engine, **settings))


def with_log_partition(engine: InferenceEngine) -> InferenceEngine:
    """Return an engine that gives log Z, refusing another."""
    if engine.capabilities.log_partition == "none":
        raise ModelError(
            f"engine {engine.capabilities.name!r} gives no log-partition function, which the "
            f"likelihood needs: use {_listed(LIKELIHOOD_ENGINES)}, or the pseudolikelihood"
        )
    return engine


def _listed(names: Iterable[str]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}"


def answering(engine: InferenceEngine, state: State) -> Capabilities:
    """Return what the answer of the run that returned `state` is.

    An engine's `capabilities`, unless it is one that chooses others.

    Examples
    --------
    >>> engine = make_engine("auto")
    >>> answering(engine, engine.init(Layout([2, 2], [(0, 1)]))).exact
    True
    """
    return engine.answered(state) if isinstance(engine, AutoEngine) else engine.capabilities
