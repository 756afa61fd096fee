"""Answers that know what they are: values under names, with the engine that gave them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ModelError, listing
from edgegraft.inference.engine import Capabilities, Info
from edgegraft.table import Schema, Variable
from edgegraft.table.numbers import Numbers, numbers_of

Label = Any

_METHODS = {
    "bp": "belief propagation",
    "trw": "tree-reweighted belief propagation",
    "gibbs": "Gibbs sampling",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class EngineAnswer:
    """An answer of an inference engine."""

    engine: Capabilities  # what gave the answer, and whether it is exact
    info: Info  # how the run went

    @property
    def approximation(self) -> str | None:
        """How the answer was approximated, and why; None if it is exact."""
        if self.engine.exact:
            return None
        words = _METHODS.get(self.engine.name, self.engine.name)
        if not self.info.converged:
            words += ", which did not converge"
        cost = (self.info.diagnostics or {}).get("exact")
        return f"{words}; exact inference would take {cost}" if cost else words


@dataclass(frozen=True, eq=False)
class NodeMarginals(EngineAnswer, Mapping[str, dict[Label, float]]):
    """Marginals of named variables: ``answer["cancer"]["yes"]``.

    Attributes
    ----------
    schema : Schema
        The variables answered, in order.
    probabilities : array of float
        All of them, variable after variable.
    engine, info
        What gave the answer and how the run went.
    """

    schema: Schema
    probabilities: Floats

    def __getitem__(self, name: str) -> dict[Label, float]:
        if name not in self.schema:
            raise KeyError(name)
        labels = self.schema[name].categories
        return dict(zip(labels, self.array(name).tolist(), strict=True))

    def array(self, name: str) -> Floats:
        """Return the probabilities of a variable's categories, in their order."""
        i = self.schema.index(name)
        first = int(self.schema.n_states[:i].sum())
        return self.probabilities[first : first + int(self.schema.n_states[i])]

    def mean(self, name: str) -> float:
        """Return the conditional mean of a column of numbers, or of levels that are numbers."""
        return float(self._numbers(name).expectation(self.array(name)))

    def quantiles(self, name: str, shares: ArrayLike = (0.05, 0.5, 0.95)) -> NDArray[Any]:
        """Return conditional quantiles of a column of numbers, or of levels that are numbers."""
        return self._numbers(name).quantiles(self.array(name), check_shares(shares))

    def _numbers(self, name: str) -> Numbers:
        if name not in self.schema:
            raise ModelError(f"the answer has no variable {name!r}: not in the model, or given")
        found = numbers_of(self.schema[name])
        if found is None:
            raise ModelError(no_numbers(self.schema[name]))
        return found

    def to_frame(self) -> Any:
        """Return the answer as a frame with the columns variable, category and probability.

        It is one of pandas if that is installed, otherwise of polars, otherwise an Arrow table.
        Categories are text if the variables have categories of different types.
        """
        from edgegraft.ingest.output import make_frame

        categories = [label for variable in self.schema for label in variable.categories]
        if len({type(label) for label in categories}) > 1:
            categories = [str(label) for label in categories]
        return make_frame(
            {
                "variable": [v.name for v in self.schema for _ in v.categories],
                "category": categories,
                "probability": self.probabilities,
            }
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.schema.names)

    def __len__(self) -> int:
        return len(self.schema)

    def __repr__(self) -> str:
        trust = "exact" if self.engine.exact else "converged"
        trust = trust if self.info.converged else "NOT CONVERGED"
        return f"NodeMarginals({len(self)} variables, {self.engine.name}, {trust})"


@dataclass(frozen=True, eq=False)
class PairMarginal(EngineAnswer):
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
    table: Floats
    method: str

    def __getitem__(self, pair: tuple[Label, Label]) -> float:
        rows, columns = self.labels
        if pair[0] not in rows or pair[1] not in columns:
            raise KeyError(pair)
        return float(self.table[rows.index(pair[0]), columns.index(pair[1])])


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
    codes: Integers
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
    standard_error: float = 0.0  # of an estimate by sampling; infinite if it is not known
    upper_bound: float = float("inf")  # tree-reweighted, if it was worked out

    def __float__(self) -> float:
        return self.value

    @property
    def approximation(self) -> str | None:
        """How the value was approximated; None if it is exact."""
        if self.kind == "exact":
            return None
        if self.standard_error == float("inf"):
            return f"{self.kind}; log Z is not known"
        error = f" with a standard error of {self.standard_error:.2g}"
        return self.kind + (error if self.standard_error else "")


def check_shares(quantiles: ArrayLike) -> Floats:
    """Return quantiles to ask for as an array, refusing what is not between 0 and 1."""
    shares = np.atleast_1d(np.asarray(quantiles, np.float64))
    if shares.ndim != 1 or not ((shares >= 0) & (shares <= 1)).all():
        raise ValueError(f"quantiles must be numbers from 0 to 1, found {quantiles!r}")
    return shares


def no_numbers(variable: Variable) -> str:
    """Return why a variable has no mean and no quantiles."""
    return (
        f"variable {variable.name!r} has no numbers: it is {variable.kind} with the categories "
        f"{listing(variable.categories)}; ask for probabilities"
    )


class RowCodes(NamedTuple):
    """Rows that were drawn from a model or completed by it."""

    codes: Integers
    approximation: str | None = None  # how, if not exactly


class RowLikelihood(NamedTuple):
    """Log-likelihoods of rows and the log-partition function that they were normalised by."""

    rows: Floats
    log_partition: LogPartition

    @property
    def approximation(self) -> str | None:
        """How the log-partition function was approximated; None if it is exact."""
        return self.log_partition.approximation
