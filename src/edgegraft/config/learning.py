"""Settings of learning a network.

Paper symbols: selectivity is alpha, reservoir_size |R|, max_tests t_max, hub_threshold c-hat,
max_edges EdgeNum (Chaabene and Huang 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from edgegraft.config.declare import NETWORK, RUN, Options, check_settings, setting, settings_of

Strategy = Literal["best-choice", "first-hit", "exhaustive"]
Priority = Literal["auto", "uniform"]
Loss = Literal["pseudolikelihood", "likelihood"]
Engine = Literal["auto", "exact", "bp", "trw"]
GroupWeight = Literal["noise", "sqrt", "states"]
WeightMeaning = Literal["auto", "frequency", "sampling"]
Aim = Literal["network", "prediction", "rows"]
DeviceName = Literal["cpu", "cuda", "auto", "torch"]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchSettings(Options):
    """Settings of the search that are the same whoever asks for it."""

    strategy: Strategy = setting("best-choice", "How the search chooses edges.", "--strategy")
    relaxed: bool = setting(True)
    selectivity: float = setting(0.0, minimum=0, maximum=1)
    reservoir_size: int | Literal["unlimited"] | None = setting(None, minimum=1)
    max_tests: int | None = setting(None, minimum=1)
    hub_threshold: float | Literal["auto", "mean"] | None = setting("auto", minimum=0, maximum=1)
    max_edges: int | None = setting(
        None, "End the search at this many edges.", "--max-edges", minimum=0
    )
    max_tables: int | None = setting(None, minimum=0)
    priority: Priority = setting("auto")
    tol: float = setting(1e-3, above=0)
    max_touching: int | None = setting(None, minimum=1)
    requeue: bool = setting(True)
    keep_zeros: bool = setting(False)
    growth_iterations: int | None = setting(None, minimum=1)

    def __post_init__(self) -> None:
        for name in settings_of(type(self)):
            value = getattr(self, name)
            if hasattr(value, "item"):  # a NumPy number: settings are written to files
                object.__setattr__(self, name, value.item())
        check_settings(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class GraftingSettings(SearchSettings):
    """Settings of the method: `search` of the estimators, with the names of the paper.

    The defaults are intended to work without tuning. Values are checked when it is made;
    `dataclasses.replace` copies it.

    Parameters
    ----------
    strategy : {"best-choice", "first-hit", "exhaustive"}
        Edges from a bounded reservoir; the first edge that passes the test; the best of all pairs.
    objective : {"pseudolikelihood", "likelihood"}
        What is fitted. The likelihood needs inference and is for small or sparse networks.
    inference : {"auto", "exact", "bp", "trw"}
        Engine of the likelihood.
    penalty : float or "auto"
        Threshold that a pair's score must pass to become an edge, and weight of the norms if the
        search is not relaxed. "auto" is the threshold that about one null pair per column exceeds.
    ridge : float or "auto"
        Weight of the squared norms. "auto" is worth 10 pseudo-rows while searching, which keeps
        edges of chance small, and 2 in the final fit; at most 0.1 and 0.02.
    group_weight : {"noise", "sqrt", "states"}
        What makes scores of different pairs comparable: the noise of each, or the number of its
        states. ``penalty="auto"`` needs "noise".
    penalize_nodes : bool, default False
        Penalise the vectors of single columns like edges, as the paper does.
    relaxed : bool, default True
        Use the penalty as the threshold of the activation test alone, and fit the active edges
        with the ridge. Nothing is shrunk, so the active edges explain all that they can and
        fewer indirect pairs pass the test; edges that should not have entered are left to
        :func:`~edgegraft.learn.edge_tests`. If the data rank the pairs, best choice begins with
        all significant pairs of the ranking, and takes a last handful together.
    refit : bool, default True
        Fit the kept edges once more with the ridge alone, so that strengths are not shrunk.
    selectivity : float, default 0.0
        1 activates the best edge alone, 0 all of at least the mean score; 0.5 in the paper.
    reservoir_size : int or "unlimited", optional
        Number of candidates held; as many as there are variables by default.
    max_tests : int, optional
        Pairs tested between two activations. By default a quarter of the variables, at least 32;
        if the run is relaxed, at least half as many as there are active edges; and more while the
        reservoir is nearly empty.
    hub_threshold : "auto", "mean", float or None
        Centrality above which a variable's edges are tested earlier: the mean of the variables
        that have an edge ("mean", as in the paper), a number, or None to leave the order alone.
        "auto" is the mean if pairs come in random order, and None if the data rank them.
    max_edges : int, optional
        Stop when this many edges are active; the last fit may set some of them to zero.
    max_tables : int, optional
        Stop when this many pairs were scored.
    priority : {"auto", "uniform"}
        Test promising pairs of the data first, or pairs in random order as the paper does.
    tol : float, default 1e-3
        Largest violation of a group's optimality condition at the end.
    max_touching : int, optional
        Edges of one variable activated together: 16 by default, 4 if the run is not relaxed; 1 in
        the paper.
    requeue : bool, default True
        Queue violating edges that do not fit the reservoir again, strongest first, instead of
        freezing them as the paper does.
    keep_zeros : bool, default False
        Keep edges that the penalty sets back to zero active, as the paper does.
    growth_iterations : int, optional
        Solver iterations after an activation: 5 by default, 2 if the run is not relaxed; the last
        fit continues to `tol`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> search = GraftingSettings(penalty=0.1, max_edges=20)
    >>> replace(search, max_edges=10)
    GraftingSettings(max_edges=10, penalty=0.1)
    """

    objective: Loss = setting("pseudolikelihood", "What is fitted.", "--objective")
    inference: Engine = setting("auto")
    penalty: float | Literal["auto"] = setting(
        "auto", "Threshold of the test that a pair must pass, or 'auto'.", "--penalty", minimum=0
    )
    ridge: float | Literal["auto"] = setting(
        "auto", "Weight of the squared parameters in the fits, or 'auto'.", "--ridge", minimum=0
    )
    group_weight: GroupWeight = setting("noise")
    penalize_nodes: bool = setting(False)
    refit: bool = setting(True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.penalty == "auto" and self.group_weight != "noise":
            raise ValueError(
                "penalty='auto' needs group_weight='noise': with other weights no single penalty "
                "means the same for every pair; give a number"
            )


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(SearchSettings):
    """Settings of one run of the search: of the method, its budget of time, rules and seed.

    Values are checked when it is made; `dataclasses.replace` copies it. Those of the method are
    described at :class:`GraftingSettings`.

    Parameters
    ----------
    strategy, relaxed, selectivity, reservoir_size, max_tests, hub_threshold, max_edges, \
max_tables, priority, tol, max_touching, requeue, keep_zeros, growth_iterations
        See :class:`GraftingSettings`.
    max_time : float, optional
        Stop after this many seconds.
    rules : list of str, optional
        What is known of pairs, such as ``"forbid mood* -- age"``; see
        :mod:`edgegraft.grafting.pair_rules`.
    random_state : int, default 0
    """

    rules: Sequence[str] | None = setting(
        None,
        "What is known of pairs, as 'forbid A -- B*'; repeat. Also 'require A -- B', "
        "'only A -- B*', 'tiers A, B < C', 'gap 4', 'weight 3 A -- B' and 'file PATH'.",
        "--rule",
        group=NETWORK,
    )
    max_time: float | None = setting(
        None, "End the search after this many seconds.", "--max-time", minimum=0, group=RUN
    )
    random_state: int = setting(0, "The same seed gives the same result.", "--seed", minimum=0)

    def as_dict(self) -> dict[str, Any]:
        """Return all settings that results depend on as plain values, for files."""
        values = asdict(self)
        for where in ("n_jobs", "device"):
            values.pop(where, None)
        return values

    @classmethod
    def from_options(cls, *options: object, **others: Any) -> Self:
        """Return the settings whose values `options` have as attributes; `others` take precedence.

        >>> Settings.from_options(Plan(max_edges=3), tol=0.1)
        Settings(max_edges=3, tol=0.1)
        """
        values = {
            name: getattr(each, name)
            for each in options
            for name in settings_of(cls)
            if hasattr(each, name)
        }
        return cls(**values | others)


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(GraftingSettings, Settings):
    """Every choice of learning a network.

    The settings of the method are described at :class:`GraftingSettings`, those of a run at
    :class:`Settings`, and `aim`, `fdr`, `fwer`, `weights_are`, `n_jobs` and `device` at
    :class:`~edgegraft.estimators.GraftedMRF`, whose parameters they are as well.
    """

    aim: Aim = setting(
        "network",
        "What the model is for: network, prediction or rows. 'prediction' fits all pairs that "
        "help to predict held-out rows; 'rows' fits them again by likelihood, for samples and "
        "probabilities of whole rows.",
        "--aim",
        group=NETWORK,
    )
    fdr: float | None = setting(
        0.005,
        "Share of false edges allowed (0.005), or 'none' for no limit.",
        "--fdr",
        above=0,
        maximum=1,
        group=NETWORK,
    )
    fwer: float | Literal["auto"] | None = setting(
        None,
        "Chance of any false edge, in place of --fdr; 'auto' is a chance that falls as rows are "
        "added.",
        "--fwer",
        above=0,
        maximum=1,
    )
    weights_are: WeightMeaning = setting(
        "auto", "Meaning of row weights: frequencies, or weights of a sample.", "--weights-are"
    )
    n_jobs: int | None = setting(
        None, "Threads; all cores by default. Results do not depend on it.", "--jobs -j", group=RUN
    )
    device: DeviceName = setting(
        "cpu",
        "Where sums over rows are computed: 'cpu', 'cuda' (a GPU), 'auto' (a GPU if there is one), "
        "'torch' (PyTorch on the processor) or a plug-in.",
        "--device",
        plugins=True,
    )

    @property
    def cuts(self) -> bool:
        """Whether edges are cut by their tests."""
        return self.fdr is not None or self.fwer is not None
