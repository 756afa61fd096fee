"""Answers that say what they are: values under names, with the engine that gave them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.inference.engine import Capabilities, Info
from edgegraft.table import Schema

Label = Any


@dataclass(frozen=True, eq=False)
class NodeMarginals(Mapping[str, dict[Label, float]]):
    """Marginals of named variables: ``answer["cancer"]["yes"]``.

    Attributes
    ----------
    schema : Schema
        The variables answered, in order.
    probabilities : array of float
        All of them, variable after variable.
    engine : Capabilities
        What gave the answer, and whether it is exact.
    info : Info
        How the run went.
    """

    schema: Schema
    probabilities: NDArray[np.float64]
    engine: Capabilities
    info: Info

    def __getitem__(self, name: str) -> dict[Label, float]:
        if name not in self.schema:
            raise KeyError(name)
        labels = self.schema[name].categories
        return dict(zip(labels, self.array(name).tolist(), strict=True))

    def array(self, name: str) -> NDArray[np.float64]:
        """Return the probabilities of a variable's categories, in their order."""
        i = self.schema.index(name)
        first = int(self.schema.n_states[:i].sum())
        return self.probabilities[first : first + int(self.schema.n_states[i])]

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.names)

    def __len__(self) -> int:
        return len(self.schema)

    @property
    def approximation(self) -> str | None:
        """How the probabilities were approximated, and why; None if they are exact."""
        return _approximation(self.engine, self.info)

    def __repr__(self) -> str:
        return f"NodeMarginals({len(self)} variables, {_source(self.engine, self.info)})"


@dataclass(frozen=True, eq=False)
class PairMarginal:
    """The joint marginal of two variables.

    Attributes
    ----------
    names : tuple of two str
    labels : tuple of two tuples
        Categories along the rows and along the columns.
    table : array of float, shape (s_first, s_second)
    method : str
        How the table was worked out: "exact", "edge belief", "product of beliefs", ...
    engine, info
        What gave the answer and how the run went.
    """

    names: tuple[str, str]
    labels: tuple[tuple[Label, ...], tuple[Label, ...]]
    table: NDArray[np.float64]
    method: str
    engine: Capabilities
    info: Info

    def __getitem__(self, pair: tuple[Label, Label]) -> float:
        rows, columns = self.labels
        if pair[0] not in rows or pair[1] not in columns:
            raise KeyError(pair)
        return float(self.table[rows.index(pair[0]), columns.index(pair[1])])

    @property
    def approximation(self) -> str | None:
        """How the table was approximated, and why; None if it is exact."""
        return _approximation(self.engine, self.info)


@dataclass(frozen=True, eq=False)
class MapState(Mapping[str, Label]):
    """The likeliest completion of the evidence.

    Attributes
    ----------
    labels : dict
        One category for every variable, the observed ones included.
    codes : array of int
    value : float
        Unnormalised log-probability of the state.
    exact : bool
        Whether no state can be better; otherwise it is the best that was found.
    """

    labels: dict[str, Label]
    codes: NDArray[np.int64]
    value: float
    exact: bool

    def __getitem__(self, name: str) -> Label:
        return self.labels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def approximation(self) -> str | None:
        """How the state was found if a better one may exist; None if none does."""
        return None if self.exact else "max-product belief propagation and local search"


class LogPartition(NamedTuple):
    """The log-partition function, and how far it can be trusted.

    ``float(answer)`` is its value.
    """

    value: float
    kind: str  # "exact", "Bethe approximation", "upper bound", "annealed importance sampling"
    standard_error: float = 0.0  # of an estimate by sampling
    upper_bound: float = float("inf")  # tree-reweighted, where it was worked out

    def __float__(self) -> float:
        return self.value

    @property
    def approximation(self) -> str | None:
        """How the value was approximated; None if it is exact."""
        if self.kind == "exact":
            return None
        error = f" with a standard error of {self.standard_error:.2g}"
        return self.kind + (error if self.standard_error else "")


class RowLikelihood(NamedTuple):
    """Log-likelihoods of rows and the log-partition function that they were normalised by."""

    rows: NDArray[np.float64]
    log_partition: LogPartition

    @property
    def approximation(self) -> str | None:
        """How the log-partition function was approximated; None if it is exact."""
        return self.log_partition.approximation


_METHODS = {
    "bp": "belief propagation",
    "trw": "tree-reweighted belief propagation",
    "gibbs": "Gibbs sampling",
}


def _approximation(engine: Capabilities, info: Info) -> str | None:
    if engine.exact:
        return None
    words = _METHODS.get(engine.name, engine.name)
    if not info.converged:
        words += ", which did not converge"
    cost = (info.diagnostics or {}).get("exact")
    return f"{words}; exact inference would take {cost}" if cost else words


def _source(engine: Capabilities, info: Info) -> str:
    trust = "exact" if engine.exact else ("converged" if info.converged else "NOT CONVERGED")
    return f"{engine.name}, {trust}"
