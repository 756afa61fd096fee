"""How a graph is grown: every choice in one frozen value.

Paper symbols: selectivity is alpha, reservoir_size |R|, max_tests t_max, hub_threshold c-hat,
max_edges EdgeNum (Chaabene and Huang 2018).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from edgegraft.search.hubs import find_hubs

Strategy = Literal["best-choice", "first-hit", "exhaustive", "feature", "feature-light"]
STRATEGIES: tuple[str, ...] = ("best-choice", "first-hit", "exhaustive", "feature", "feature-light")
Priority = Literal["auto", "uniform"]
_CHOICES = {"strategy": STRATEGIES, "priority": ("auto", "uniform")}
_LEAST = {
    "max_tests": 1,
    "max_touching": 1,
    "max_edges": 0,
    "max_time": 0,
    "max_tables": 0,
    "growth_iterations": 1,
    "checkpoint_every": 1,
    "random_state": 0,
}


@dataclass(frozen=True)
class Settings:
    """Settings of the search.

    Parameters
    ----------
    strategy : {"best-choice", "first-hit", "exhaustive", "feature", "feature-light"}
        Whole edges from a bounded reservoir; the first edge that passes the test; the best of all
        pairs; the best single parameter of all pairs under plain l1, fitted to the end, or with
        one step an activation (grafting-light).
    selectivity : float, default 0.0
        1 activates the best edge alone, 0 all of at least the mean score; the paper's is 0.5.
    reservoir_size : int or "unlimited", optional
        Room for candidates; as many as there are variables by default.
    max_tests : int, optional
        Pairs tested between two activations. By default a quarter of the variables, at least 32;
        where the run is relaxed, at least half as many as there are active edges; and more while
        the reservoir is nearly empty.
    max_touching : int, optional
        Edges of one variable activated together: 4 by default, 16 where the run is relaxed; 1 is
        the paper's.
    hub_threshold : "auto", "mean", float or None
        Centrality above which a variable's edges are tested earlier: the mean of the variables
        that have an edge, a number, or None to leave the order alone. "auto" is the mean where
        pairs come in random order, and None where the data rank them.
    max_edges : int, optional
        Stop when so many edges are active; the last fit may set some of them to zero.
    max_time : float, optional
        Stop after so many seconds.
    max_tables : int, optional
        Stop when so many pairs were scored.
    priority : {"auto", "uniform"}
        Test first what the data say is promising, or in random order as the paper does.
    full_queue : bool, default False
        Queue all pairs at the start (appendix B of the paper).
    requeue : bool, default True
        Queue violating edges that the reservoir has no room for again, strongest first, instead
        of freezing them as the paper does.
    relaxed : bool, default False
        Use the penalty as the threshold of the activation test alone, and fit the active edges
        with the ridge. Nothing is shrunk, so what the active edges explain is explained whole and
        fewer indirect pairs pass the test; what should not have entered is for the tests of
        :func:`~edgegraft.learn.edge_tests` to find. Where the data rank the pairs, best choice
        begins with all that the ranking is sure of, and takes a last handful whole. Not for
        single features.
    keep_zeros : bool, default False
        Keep edges that the penalty sets back to zero active, as the paper does.
    growth_iterations : int, optional
        Solver iterations after an activation: 2 by default, 5 where the run is relaxed; the last
        fit goes on to `tol`.
    tol : float, default 1e-4
        Largest violation of a group's optimality condition at the end.
    checkpoint_every : int, default 10
        Activations between two points from which a run can be resumed.
    random_state : int, default 0
    """

    strategy: Strategy = "best-choice"
    selectivity: float = 0.0
    reservoir_size: int | Literal["unlimited"] | None = None
    max_tests: int | None = None
    max_touching: int | None = None
    hub_threshold: float | Literal["auto", "mean"] | None = "auto"
    max_edges: int | None = None
    max_time: float | None = None
    max_tables: int | None = None
    priority: Priority = "auto"
    full_queue: bool = False
    requeue: bool = True
    relaxed: bool = False
    keep_zeros: bool = False
    growth_iterations: int | None = None
    tol: float = 1e-4
    checkpoint_every: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, found {getattr(self, name)!r}"
                )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name} must be at least {least}, found {value}")
        if self.relaxed and self.strategy in ("feature", "feature-light"):
            raise ValueError("relaxed is for whole edges: single features need their penalty")
        if not 0 <= self.selectivity <= 1:
            raise ValueError(f"selectivity must lie between 0 and 1, found {self.selectivity}")
        size = self.reservoir_size
        if not (size is None or size == "unlimited" or (isinstance(size, int) and size >= 1)):
            raise ValueError(f"reservoir_size must be at least 1 or 'unlimited', found {size!r}")
        if self.hub_threshold is not None and self.hub_threshold != "auto":
            find_hubs([1], self.hub_threshold)  # refuses what is no threshold
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, found {self.tol}")

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for files."""
        return asdict(self)
