"""Names, categories and their order: what the codes of a packed table mean.

Everything past the encoder sees integers; a schema is the one place that turns them back into
the caller's labels. It is frozen, hashable and has an exact text form, so that it travels inside
model files and packed tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.errors import DataError, listing, suggestion

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Label", "Schema", "Variable"]

Label = str | int | float | bool
Kind = Literal["nominal", "ordinal", "count", "numeric"]
KINDS: tuple[Kind, ...] = ("nominal", "ordinal", "count", "numeric")

_DTYPES = {str: "category[string]", int: "int64", float: "double", bool: "bool"}
MAX_STATES = 65535  # codes are uint16 and the last one marks a missing cell
MISSING = MAX_STATES


@dataclass(frozen=True, slots=True)
class Variable:
    """One categorical variable.

    Parameters
    ----------
    name : str
    categories : tuple of str, int, float or bool
        The labels of the states ``0, 1, ...`` in order. A binned variable has its interval
        labels here; dates are kept as ISO strings.
    dtype : str, default "int64"
        Type of the column that it came from, as Arrow writes it (``"int64"``, ``"string"``,
        ``"date32[day]"``). ``"category[string]"`` is a column whose categories were declared (a
        pandas Categorical, a polars Enum, an Arrow dictionary).
    ordered : bool, default False
        Whether the order of the categories means something.
    edges : tuple of float, optional
        The ``len(categories) + 1`` bin edges of a binned numeric column.
    kind : {"nominal", "ordinal", "count", "numeric"}, default "nominal"
        What the states mean: categories, levels in an order, counts, or intervals of numbers. All
        but the first are ordered.
    reason : str
        Why it has its kind; it makes no difference between variables.
    pooled : tuple
        Rare categories that are one state, the last.
    means : tuple of float, optional
        Means of the numbers in the bins of a binned column; they make no difference between
        variables.

    Examples
    --------
    >>> from edgegraft.table import Variable
    >>> smoker = Variable("smoker", ("no", "yes"), dtype="string")
    >>> smoker.n_states
    2
    """

    name: str
    categories: tuple[Label, ...]
    dtype: str = "int64"
    ordered: bool = False
    edges: tuple[float, ...] | None = None
    kind: Kind = "nominal"
    reason: str = field(default="", compare=False)
    pooled: tuple[Label, ...] = ()
    means: tuple[float, ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise DataError(f"a variable's name must be a string, found {self.name!r}")
        if self.kind not in KINDS:
            raise DataError(
                f"variable '{self.name}': the kind must be one of {', '.join(KINDS)}, found "
                f"{self.kind!r}"
            )
        count = len(self.categories)
        if not 1 <= count <= MAX_STATES:
            raise DataError(
                f"variable '{self.name}' has {count} categories: 1 to {MAX_STATES} are possible"
            )
        if len(set(self.categories)) != count:
            raise DataError(f"variable '{self.name}' has the same category twice")
        for label in self.categories:
            # Exact types: a NumPy scalar would not survive the text form.
            if type(label) not in (int, str, bool, float):
                raise DataError(
                    f"variable '{self.name}': category {label!r} is a {type(label).__name__}; "
                    "use str, int, float or bool"
                )
            if type(label) is float and not math.isfinite(label):
                raise DataError(f"variable '{self.name}': category {label!r} is not finite")
        if self.edges is not None:
            self._check_edges(self.edges)

    def _check_edges(self, edges: tuple[float, ...]) -> None:
        # The last bin is closed on both sides, so it alone may be a single point.
        rising = all(low < high for low, high in pairwise(edges[:-1]))
        if len(edges) != self.n_states + 1 or not rising or not edges[-2] <= edges[-1]:
            raise DataError(
                f"variable '{self.name}': {self.n_states} bins need {self.n_states + 1} rising "
                f"edges, found {list(edges)}"
            )
        means = edges[:-1] if self.means is None else self.means
        if len(means) != self.n_states or any(
            not low <= mean <= high
            for low, mean, high in zip(edges, means, edges[1:], strict=False)
        ):
            raise DataError(
                f"variable '{self.name}': each of the {self.n_states} bins needs a mean inside of "
                f"it, found {list(means)}"
            )

    @property
    def n_states(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def declared(self) -> bool:
        """Whether the input declared the categories, rather than their being those observed."""
        return self.dtype.startswith("category[")

    @property
    def scored(self) -> bool:
        """Whether edges see an order of the states, rather than each state by itself."""
        return self.kind != "nominal" and self.n_states > 1

    def state_of(self, label: Label) -> int | None:
        """Return the state of a category, of one that was pooled, or of a number in a level.

        None if there is none. Numbers beyond the range that was seen are in the nearest level.

        Examples
        --------
        >>> age = Variable("age", ("[0, 30)", "[30, 90]"), "int64", True, (0.0, 30.0, 90.0))
        >>> age.state_of(42), age.state_of("[0, 30)"), age.state_of("old")
        (1, 0, None)
        """
        label = label.item() if isinstance(label, np.generic) else label
        for k, known in enumerate(self.categories):
            # 1 == True in Python, and they are not the same category.
            if isinstance(known, bool) == isinstance(label, bool) and known == label:
                return k
        if self.pooled and label in self.pooled:
            return self.n_states - 1
        number = isinstance(label, int | float) and not isinstance(label, bool)
        if self.edges is None or not number or label != label or label in (np.inf, -np.inf):
            return None
        value = float(label)
        if self.kind == "count" and (value < 0 or value != np.floor(value)):
            return None
        return int(np.searchsorted(self.edges[1:-1], value, side="right"))

    def expected(self, shown: int = 6) -> str:
        """Return what evidence about the variable may be, for messages."""
        known = listing(self.categories, shown)
        if not self.binned:
            return f"its categories are {known}"
        number = "a whole number from 0 on" if self.kind == "count" else "a number"
        return f"it takes {number}, or one of {known}"

    @property
    def binned(self) -> bool:
        """Whether the states are intervals of a numeric column."""
        return self.edges is not None


@dataclass(frozen=True, repr=False)
class Schema:
    """The variables of a table, in order.

    Parameters
    ----------
    variables : iterable of Variable
        With distinct names.

    Attributes
    ----------
    variables : tuple of Variable
    names : tuple of str
    n_states : array of int64, shape (n,), read-only
    widths : array of int64, shape (n,), read-only
        Features of each variable in an edge: its states; or, if any variable is ordered, two
        scores of each ordered one and one of each that has two states.
    scored : bool
        Whether any variable is ordered, so that edges are weights of scores.

    Examples
    --------
    >>> from edgegraft.table import Schema, Variable
    >>> schema = Schema([Variable("smoker", ("no", "yes"), "string"), Variable("age", (0, 1, 2))])
    >>> schema
    Schema(smoker: 2, age: 3)
    >>> schema["age"].categories
    (0, 1, 2)
    >>> Schema.from_json(schema.to_json()) == schema
    True
    >>> schema.decode([[1, 0], [0, -1]]).to_pydict()
    {'smoker': ['yes', 'no'], 'age': [0, None]}
    """

    variables: tuple[Variable, ...]
    names: tuple[str, ...] = field(init=False, compare=False)
    n_states: NDArray[np.int64] = field(init=False, compare=False)
    widths: NDArray[np.int64] = field(init=False, compare=False)
    scored: bool = field(init=False, compare=False)
    _position: dict[str, int] = field(init=False, compare=False)

    def __init__(self, variables: Iterable[Variable]) -> None:
        kept = tuple(variables)
        names = tuple(variable.name for variable in kept)
        position = {name: i for i, name in enumerate(names)}
        if len(position) != len(names):
            twice = next(name for i, name in enumerate(names) if position[name] != i)
            raise DataError(f"two variables have the name '{twice}': names must be distinct")
        n_states = np.array([variable.n_states for variable in kept], np.int64)
        scored = np.array([variable.scored for variable in kept], bool)
        widths = np.where(scored | (n_states == 2), np.minimum(2, n_states - 1), n_states)
        widths = widths if scored.any() else n_states.copy()
        n_states.flags.writeable = widths.flags.writeable = False
        # A frozen dataclass is filled through its dictionary: these are views of `variables`.
        vars(self).update(variables=kept, names=names, _position=position)
        vars(self).update(n_states=n_states, widths=widths, scored=bool(scored.any()))

    @classmethod
    def from_states(
        cls, n_states: Sequence[int] | NDArray[np.integer], names: Iterable[str] | None = None
    ) -> Schema:
        """Return a plain schema whose categories are ``0`` to ``s - 1``.

        Names are ``x0``, ``x1``, ... by default.

        Examples
        --------
        >>> from edgegraft.table import Schema
        >>> Schema.from_states([2, 3])
        Schema(x0: 2, x1: 3)
        """
        states = [int(s) for s in n_states]
        chosen = [f"x{i}" for i in range(len(states))] if names is None else list(names)
        if len(chosen) != len(states):
            raise DataError(f"{len(chosen)} names were given for {len(states)} variables")
        ranges = {s: tuple(range(s)) for s in set(states)}
        return cls(Variable(name, ranges[s]) for name, s in zip(chosen, states, strict=True))

    @classmethod
    def from_categories(cls, categories: Mapping[str, Sequence[Label]]) -> Schema:
        """Return a schema of declared categories, in the order given.

        Examples
        --------
        >>> from edgegraft.table import Schema
        >>> Schema.from_categories({"smoker": ["no", "yes"], "dose": [0, 1, 2]})
        Schema(smoker: 2, dose: 3)
        """
        variables = []
        for name, labels in categories.items():
            kinds = {type(label) for label in labels}
            if len(kinds) > 1:
                found = " and ".join(sorted(kind.__name__ for kind in kinds))
                raise DataError(f"the categories of variable '{name}' mix {found}: use one type")
            dtype = _DTYPES.get(kinds.pop() if kinds else str, "string")
            variables.append(Variable(name, tuple(labels), dtype))
        return cls(variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __contains__(self, item: object) -> bool:
        return item in self._position if isinstance(item, str) else item in self.variables

    @overload
    def __getitem__(self, key: int | str) -> Variable: ...
    @overload
    def __getitem__(self, key: slice) -> Schema: ...
    def __getitem__(self, key: int | str | slice) -> Variable | Schema:
        if isinstance(key, slice):
            return Schema(self.variables[key])
        return self.variables[self.index(key) if isinstance(key, str) else key]

    def index(self, name: str) -> int:
        """Return the position of a variable; an unknown name is a DataError."""
        try:
            return self._position[name]
        except KeyError:
            hint = suggestion(str(name), self.names)
            raise DataError(f"there is no variable '{name}'; {hint}") from None

    def select(self, names: Iterable[int | str]) -> Schema:
        """Return the schema of the given variables (names or positions), in that order."""
        return Schema(self[name] for name in names)

    def decode(self, codes: ArrayLike) -> pa.Table:
        """Return codes, shape (n_rows, n), as a table of the caller's labels.

        Missing cells, -1, are null. Columns have the type that they came with: declared categories
        are dictionaries, so that ``.to_pandas()`` gives a Categorical with its order and its
        unobserved categories; numbers, booleans, dates and text are themselves; binned columns are
        ordered dictionaries of interval labels.
        """
        from edgegraft.table.arrow import decode_table

        return decode_table(self, codes)

    def to_json(self) -> str:
        """Return the schema as text that `from_json` reads back exactly."""
        from edgegraft.table.schema_json import dump_schema

        return dump_schema(self)

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Return the schema that `to_json` wrote; malformed text is a FileFormatError."""
        from edgegraft.table.schema_json import load_schema

        return load_schema(text)

    def __repr__(self) -> str:
        shown = [f"{v.name}: {v.n_states}" for v in self.variables[:6]]
        if len(self) > len(shown):
            shown.append(f"... {len(self) - len(shown)} more")
        return f"Schema({', '.join(shown)})"
