"""Every setting of learning and of reading tables, declared once.

A setting is a field of a dataclass. Its type states the kinds of value and the words that it takes;
its metadata state the bounds, the help text and the command-line option. The rest is derived:
checks (:class:`Settings`, :class:`Plan`), the constructor of the estimators, the options of
``edgegraft learn``, and the JSON of checkpoints and model files. A new setting is therefore a field
here and the code that acts on it.

This module imports the standard library alone, so that ``edgegraft learn --help`` is
immediate.

Paper symbols: selectivity is alpha, reservoir_size |R|, max_tests t_max, hub_threshold c-hat,
max_edges EdgeNum (Chaabene and Huang 2018).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from os import PathLike
from types import NoneType
from typing import Any, Literal, NamedTuple, Self, cast, get_args, get_origin, get_type_hints

from edgegraft.errors import SettingError

Strategy = Literal["best-choice", "first-hit", "exhaustive"]
Priority = Literal["auto", "uniform"]
Loss = Literal["pseudolikelihood", "likelihood"]
Engine = Literal["auto", "exact", "bp", "trw"]
GroupWeight = Literal["noise", "sqrt", "states"]
WeightMeaning = Literal["auto", "frequency", "sampling"]
Aim = Literal["network", "prediction", "rows"]
DeviceName = Literal["cpu", "cuda", "auto", "torch"]
BinRule = Literal["quantile", "uniform"]
Unseen = Literal["error", "missing"]


class Setting(NamedTuple):
    """What a setting may be, and how it is offered."""

    name: str
    default: Any
    kinds: tuple[type, ...]  # among bool, int and float; empty if only words are taken
    words: tuple[str, ...]  # words that are taken, instead of or besides numbers
    optional: bool  # whether None is taken
    minimum: float | None = None  # bounds of numbers, themselves allowed
    maximum: float | None = None
    above: float | None = None  # bound of numbers, itself not allowed
    help: str = ""  # one sentence for the command line
    #: the command-line option and its short form, such as "--jobs -j"; None if it has none
    flag: str | None = None
    #: of reading: whether it may change the cells that are read, not time and memory alone
    cells: bool = True
    texts: bool = False  # whether lists of texts are taken
    plugins: bool = False  # whether names of plug-ins are taken, checked when one is looked up

    def allows(self, value: object) -> bool:
        """Return whether a value is one of those that the setting takes."""
        if value is None:
            return self.optional
        if isinstance(value, str):
            return self.plugins or value in self.words
        if isinstance(value, list | tuple):
            return self.texts and all(isinstance(text, str) for text in value)
        if isinstance(value, bool):
            return bool in self.kinds
        if not isinstance(value, Real if float in self.kinds else Integral):
            return False
        number = float(value)
        return (
            bool({int, float} & set(self.kinds))
            and math.isfinite(number)
            and (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
        )

    @property
    def expected(self) -> str:
        """What the setting takes, in words.

        >>> settings_of(Settings)["reservoir_size"].expected
        "an integer of at least 1, 'unlimited' or None"
        """
        if len(self.words) > 1 and not self.kinds and not self.optional:
            return f"one of {', '.join(self.words)}"
        parts = [f"{_NOUNS[kind]}{self._bounds}" for kind in self.kinds]
        parts += ["a list of texts"] * self.texts
        parts += [repr(word) for word in self.words] + ["None"] * self.optional
        return " or ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

    @property
    def _bounds(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum:g} to {self.maximum:g}"
        bounds = [] if self.above is None else [f"above {self.above:g}"]
        bounds += [] if self.minimum is None else [f"of at least {self.minimum:g}"]
        bounds += [] if self.maximum is None else [f"at most {self.maximum:g}"]
        return " " + " and ".join(bounds) if bounds else ""


_NOUNS: dict[type, str] = {bool: "True or False", int: "an integer", float: "a number"}


def setting(default: Any, help: str = "", *, flag: str | None = None, **others: float) -> Any:
    """Return a dataclass field that declares a setting; others are bounds and so on of `Setting`.

    `flag` offers it on the command line.
    """
    return field(default=default, metadata={"help": help, "flag": flag, **others})


def settings_of(config: type) -> dict[str, Setting]:
    """Return the settings that a dataclass declares or inherits, by name.

    >>> found = settings_of(Plan)["max_edges"]
    >>> found.kinds, found.minimum, found.optional, found.flag
    ((<class 'int'>,), 0, True, '--max-edges')
    """
    return _settings_of(cast(Hashable, config))


@cache
def _settings_of(config: Any) -> dict[str, Setting]:
    hints = get_type_hints(config)
    found = {}
    for declared in fields(config):
        if declared.metadata:
            kinds = _parts(hints[declared.name])
            found[declared.name] = Setting(
                declared.name,
                declared.default,
                tuple(kind for kind in kinds if kind in (bool, int, float)),
                tuple(word for word in kinds if isinstance(word, str)),
                NoneType in kinds,
                texts=str in kinds,
                **declared.metadata,
            )
    return found


def check_settings(options: Any, names: Iterable[str] | None = None) -> None:
    """Refuse values that the settings of a dataclass, or those that are named, do not take."""
    declared = settings_of(type(options))
    for name in declared if names is None else names:
        if not declared[name].allows(value := getattr(options, name)):
            raise SettingError(name, f"must be {declared[name].expected}, found {value!r}")


def _parts(hint: Any) -> list[Any]:
    """Return the types and the literal words of a type hint, in order."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [part for one in get_args(hint) for part in _parts(one)] or [hint]


@dataclass(frozen=True)
class TableOptions:
    """How a table is read; in full at :func:`edgegraft.ingest.pack`."""

    columns: Sequence[str | int] | None = setting(
        None, "Columns to use, separated by commas, or repeat.", flag="--columns"
    )
    drop: Sequence[str | int] | None = setting(
        None, "Columns to leave out, likewise.", flag="--drop"
    )
    bins: int | Mapping[str, int] | None = setting(
        None, "Bins of numeric columns: 5, or age=4; repeat.", flag="--bins"
    )
    bin_rule: BinRule = setting("quantile", "Bins of nearly equal counts, or of equal widths.")
    max_numeric_states: int = setting(
        32,
        "Distinct values up to which a numeric column keeps them as categories.",
        flag="--max-numeric-states",
        minimum=1,
    )
    kinds: str | Mapping[str, str] = setting(
        "auto",
        "What columns are: 'auto', one kind for all, or kinds by name (nominal, ordinal, count, "
        "numeric).",
    )
    max_categories: int = setting(
        128,
        "Categories of an unordered column; the rarest of more are pooled as one.",
        flag="--max-categories",
        minimum=2,
    )
    nominal: Sequence[str] | None = setting(
        None, "Columns of unordered categories, separated by commas, or repeat.", flag="--nominal"
    )
    ordinal: Sequence[str] | None = setting(None, "Columns of levels, likewise.", flag="--ordinal")
    count: Sequence[str] | None = setting(None, "Columns of counts, likewise.", flag="--count")
    numeric: Sequence[str] | None = setting(
        None, "Columns of measured numbers, likewise.", flag="--numeric"
    )
    order: Sequence[str] | None = setting(
        None,
        "An order of categories, 'none<school<bachelor', for all columns that have them, or "
        "'NAME=none<school<bachelor' for one; repeat.",
        flag="--order",
    )
    missing_values: Collection[Any] = setting(
        (), "A cell that means missing; repeat.", flag="--missing"
    )
    unseen: Unseen = setting(
        "error", "What a category is that the model does not know.", flag="--unseen"
    )
    delimiter: str | None = setting(
        None, "What separates the columns of a text file, such as ; or tab.", flag="--delimiter"
    )
    header: bool = setting(
        True, "Whether a text file's first row has names.", flag="--header/--no-header"
    )
    encoding: str = setting("utf8", "Encoding of text files.", flag="--encoding")
    max_memory: int | str | None = setting(
        None,
        "Memory that the run may take, such as '2 GiB'; half of the machine's for files above an "
        "eighth of it. Rows that do not fit are kept on disk as bit planes: the search begins on "
        "a sample, which also tests the edges, and ends over all rows. The sample gets what the "
        "threads (--jobs) leave.",
        flag="--max-memory",
        cells=False,
    )
    cache_dir: str | PathLike[str] | None = setting(
        None,
        "Folder of the bit planes, which are found again while the files are the same; "
        "$EDGEGRAFT_CACHE, or the user's cache.",
        flag="--cache-dir",
        cells=False,
    )
    cache_size: int | str | None = setting(
        None,
        "Space that all bit planes in the folder may take, 32 GiB; the oldest are removed.",
        flag="--cache-size",
        cells=False,
    )


@dataclass(kw_only=True, eq=False)
class SearchOptions:
    """What may be chosen of the search, by users of the estimators as well."""

    strategy: Strategy = setting("best-choice", "How the search chooses edges.", flag="--strategy")
    relaxed: bool = setting(True, "Use the penalty for the activation test alone.")
    selectivity: float = setting(0.0, "1 activates the best edge alone.", minimum=0, maximum=1)
    reservoir_size: int | Literal["unlimited"] | None = setting(
        None, "Candidates held at a time.", minimum=1
    )
    max_tests: int | Literal["auto"] | None = setting(
        None, "Pairs tested between two activations.", minimum=1
    )
    hub_threshold: float | Literal["auto", "mean"] | None = setting(
        "auto",
        "Centrality above which a variable's edges are tested earlier.",
        minimum=0,
        maximum=1,
    )
    max_edges: int | None = setting(
        None, "End the search at this many edges.", flag="--max-edges", minimum=0
    )
    max_time: float | None = setting(
        None, "End the search after this many seconds.", flag="--max-time", minimum=0
    )
    max_tables: int | None = setting(None, "End the search at this many pairs.", minimum=0)
    priority: Priority = setting("auto", "The order in which pairs are tested.")
    rules: Sequence[str] | None = setting(
        None,
        "What is known of pairs: 'require A -- B', 'forbid A* -- B', 'only A -- B*', "
        "'tiers A, B < C', 'gap 4', 'weight 3 A -- B' or 'file PATH'; repeat.",
        flag="--rule",
    )
    tol: float = setting(1e-3, "Largest violation of optimality at the end.", above=0)


@dataclass(kw_only=True, eq=False)
class ModelOptions(SearchOptions):
    """What may be chosen of the model, but for its penalties."""

    aim: Aim = setting(
        "network",
        "What the model is for: 'prediction' fits all pairs that help to predict held-out rows; "
        "'rows' fits them again by likelihood, for samples and probabilities of whole rows.",
        flag="--aim",
    )
    objective: Loss = setting("pseudolikelihood", "What is fitted.", flag="--objective")
    inference: Engine = setting("auto", "Inference engine of the likelihood.")
    group_weight: GroupWeight = setting("noise", "What makes scores of pairs comparable.")
    penalize_nodes: bool = setting(False, "Penalise the vectors of single columns as well.")
    fdr: float | None = setting(
        0.005,
        "Share of false edges allowed among those kept, or 'none' for no such cut.",
        flag="--fdr",
        above=0,
        maximum=1,
    )
    fwer: float | Literal["auto"] | None = setting(
        None,
        "Chance of any false edge, instead of --fdr; 'auto' is a chance that falls with the rows.",
        flag="--fwer",
        above=0,
        maximum=1,
    )
    weights_are: WeightMeaning = setting(
        "auto", "What row weights are: frequencies or a sample's.", flag="--weights-are"
    )
    refit: bool = setting(True, "Fit the kept edges once more with the ridge alone.")
    n_jobs: int | None = setting(
        None, "Threads; -1 for all cores. Results do not depend on it.", flag="--jobs -j"
    )
    device: DeviceName = setting(
        "cpu",
        "Where sums over rows are computed: 'cpu', 'cuda' (a GPU), 'auto' (a GPU if there is one), "
        "'torch' (PyTorch on the processor) or a plug-in.",
        flag="--device",
        plugins=True,
    )


@dataclass(kw_only=True, eq=False)
class PenaltyOptions:
    """The weights of the penalty, or "auto" for what the data ask for."""

    penalty: float | Literal["auto"] = setting(
        "auto",
        "Threshold of the test that a pair must pass, or 'auto'.",
        flag="--penalty",
        minimum=0,
    )
    ridge: float | Literal["auto"] = setting(
        "auto",
        "Weight of the squared parameters in the fits, or 'auto'.",
        flag="--ridge",
        minimum=0,
    )


@dataclass(kw_only=True)
class Settings(SearchOptions):
    """Settings of the search. Values are checked when it is made; `dataclasses.replace` copies it.

    Parameters
    ----------
    strategy : {"best-choice", "first-hit", "exhaustive"}
        Edges from a bounded reservoir; the first edge that passes the test; the best of all pairs.
    relaxed : bool, default True
        Use the penalty as the threshold of the activation test alone, and fit the active edges
        with the ridge. Nothing is shrunk, so what the active edges explain is explained whole and
        fewer indirect pairs pass the test; what should not have entered is for the tests of
        :func:`~edgegraft.learn.edge_tests` to find. If the data rank the pairs, best choice begins
        with all significant pairs of the ranking, and takes a last handful whole.
    selectivity : float, default 0.0
        1 activates the best edge alone, 0 all of at least the mean score; the paper's is 0.5.
    reservoir_size : int or "unlimited", optional
        Number of candidates held; as many as there are variables by default.
    max_tests : int or "auto", optional
        Pairs tested between two activations. By default a quarter of the variables, at least 32;
        if the run is relaxed, at least half as many as there are active edges; and more while the
        reservoir is nearly empty. "auto" is for rows on a cluster: the estimators measure what a
        round trip costs.
    hub_threshold : "auto", "mean", float or None
        Centrality above which a variable's edges are tested earlier: the mean of the variables
        that have an edge, a number, or None to leave the order alone. "auto" is the mean if pairs
        come in random order, and None if the data rank them.
    max_edges : int, optional
        Stop when this many edges are active; the last fit may set some of them to zero.
    max_time : float, optional
        Stop after this many seconds.
    max_tables : int, optional
        Stop when this many pairs were scored.
    priority : {"auto", "uniform"}
        Test first what the data show to be promising, or in random order as the paper does.
    rules : list of str, optional
        What is known of pairs, such as ``"forbid mood* -- age"``; see
        :mod:`edgegraft.grafting.pair_rules`.
    tol : float, default 1e-3
        Largest violation of a group's optimality condition at the end.
    max_touching : int, optional
        Edges of one variable activated together: 16 by default, 4 if the run is not relaxed; 1 is
        the paper's.
    full_queue : bool, default False
        Queue all pairs at the start (appendix B of the paper).
    requeue : bool, default True
        Queue violating edges that do not fit the reservoir again, strongest first, instead of
        freezing them as the paper does.
    keep_zeros : bool, default False
        Keep edges that the penalty sets back to zero active, as the paper does.
    growth_iterations : int, optional
        Solver iterations after an activation: 5 by default, 2 if the run is not relaxed; the last
        fit continues to `tol`.
    checkpoint_every : int, default 10
        Activations between two points from which a run can be resumed.
    random_state : int, default 0
    """

    max_touching: int | None = setting(None, "Edges of one variable per activation.", minimum=1)
    full_queue: bool = setting(False, "Queue all pairs at the start.")
    requeue: bool = setting(True, "Queue violating edges without a place again.")
    keep_zeros: bool = setting(False, "Keep edges at zero active.")
    growth_iterations: int | None = setting(
        None, "Solver iterations after an activation.", minimum=1
    )
    checkpoint_every: int = setting(10, "Activations between two checkpoints.", minimum=1)
    random_state: int = setting(0, "The same seed gives the same result.", flag="--seed", minimum=0)

    def __post_init__(self) -> None:
        for name in settings_of(type(self)):
            value = getattr(self, name)
            if hasattr(value, "item"):  # a NumPy number: settings are written to files
                setattr(self, name, value.item())
        check_settings(self)

    @property
    def test_limit(self) -> int | None:
        """`max_tests` if it is a number."""
        return self.max_tests if isinstance(self.max_tests, int) else None

    def as_dict(self) -> dict[str, Any]:
        """Return all settings that results depend on as plain values, for files."""
        values = asdict(self)
        for where in ("n_jobs", "device"):
            values.pop(where, None)
        return values

    @classmethod
    def from_options(cls, options: object, **others: Any) -> Self:
        """Return the settings whose values `options` has as attributes; `others` take precedence.

        >>> Settings.from_options(Plan(max_edges=3), tol=0.1).max_edges
        3
        """
        values = {
            name: getattr(options, name) for name in settings_of(cls) if hasattr(options, name)
        }
        return cls(**values | others)


@dataclass(kw_only=True)
class Plan(ModelOptions, PenaltyOptions, Settings):
    """Every choice of learning a network: those of the search (:class:`Settings`) and of the model.

    What may be chosen of the model (`aim`, `objective`, `inference`, `penalty`, `ridge`,
    `group_weight`, `penalize_nodes`, `fdr`, `fwer`, `weights_are`, `refit`, `n_jobs`, `device`) is
    described at :class:`~edgegraft.estimators.GraftedMRF`, whose parameters these are as well.
    """

    @property
    def cuts(self) -> bool:
        """Whether edges are cut by their tests."""
        return self.fdr is not None or self.fwer is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.penalty == "auto" and self.group_weight != "noise":
            raise ValueError(
                "penalty='auto' needs group_weight='noise': with other weights no single penalty "
                "means the same for every pair; give a number"
            )
