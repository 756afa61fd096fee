"""Named log-potentials: what a model is made of, how names become codes, how strong edges are.

The strength of an edge is

    w' = w in zero-sum gauge;    s_ij = || w'_ij without the states left out ||_F

The average-product correction takes from each strength what the two variables' mean strengths
explain, which removes the share that is due to one variable alone (its entropy, its history):

    s_ij - s_i. s_.j / s_..      s_i. = mean over j of s_ij,   s_.. = mean over all pairs

With the gap left out and the correction made, these are the scores of plmDCA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core import Layout
from edgegraft.core.adjacency import neighbours_of
from edgegraft.core.checks import check_codes, check_theta
from edgegraft.core.edge_tables import strengths
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import DataError, ModelError
from edgegraft.ingest.rows import read_codes
from edgegraft.kernels.conditionals.row_conditionals import Neighbours, row_energies
from edgegraft.model.evidence import variable_index
from edgegraft.model.file import Columns, check_edge_columns
from edgegraft.table import Schema
from edgegraft.table.schema import Label

Correction = Literal["apc"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class NamedPotentials:
    """Schema, layout and parameters of a model, and the energy of rows."""

    schema: Schema
    layout: Layout
    theta: Floats
    edge_columns: Columns

    def __init__(
        self,
        schema: Schema,
        edges: ArrayLike,
        theta: ArrayLike,
        edge_columns: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        layout = Layout(schema.n_states, np.asarray(edges, np.int64).reshape(-1, 2))
        values = check_theta(theta, layout, schema.names).copy()
        values.flags.writeable = False
        columns = check_edge_columns(edge_columns, layout.n_edges)
        # A frozen dataclass is filled through its dictionary.
        vars(self).update(schema=schema, layout=layout, theta=values, edge_columns=columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return self.schema.names

    @property
    def edges(self) -> Integers:
        """The edges as pairs of column numbers, shape (m, 2)."""
        return self.layout.edges

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.layout.n_variables

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.layout.n_edges

    def node_potential(self, name: str) -> Floats:
        """Return the log-potentials of a variable's states."""
        return self.layout.node(self.theta, variable_index(self.schema, name))

    def edge_potential(self, first: str, second: str) -> Floats:
        """Return the table of an edge, rows for the states of `first`."""
        i, j = variable_index(self.schema, first), variable_index(self.schema, second)
        match = (self.edges == (min(i, j), max(i, j))).all(axis=1)
        if not match.any():
            raise ModelError(f"the model has no edge between {first!r} and {second!r}")
        table = self.layout.edge(self.theta, int(np.argmax(match)))
        return table if i < j else table.T

    def edge_strengths(
        self,
        *,
        without: Label | Iterable[Label] | None = None,
        correction: Correction | None = None,
    ) -> Floats:
        """Return how strong each edge is.

        A fitted model knows: its strengths are on the scale of a correlation
        (docs/kinds.md). If it does not, or with one of the options, strengths are the Frobenius
        norms of the tables in zero-sum gauge.

        Parameters
        ----------
        without : category, or several, optional
            States that do not count towards the norm, such as the gap of an alignment. The gauge
            is the gauge of the whole table; variables without such a category count in full.
        correction : {None, "apc"}
            The average-product correction ``s_ij - s_i. * s_.j / s_..``: the part that the two
            variables' mean strengths explain is subtracted. Means are over all pairs, those
            without an edge counting as zero. Corrected strengths may be negative.

        Returns
        -------
        array of float, shape (n_edges,)
            In the order of :attr:`edges`. Infinite if the table forbids a pair of states.

        Examples
        --------
        >>> from edgegraft import PairwiseMRF
        >>> table = [[0.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]]
        >>> model = PairwiseMRF.from_potentials(
        ...     {"site 1": ["-", "A", "C"], "site 2": ["-", "A", "C"]},
        ...     edges={("site 1", "site 2"): table},
        ... )
        >>> model.edge_strengths(without="-").round(3).tolist()
        [2.0]
        """
        known = self.edge_columns.get("strength")
        if known is not None and without is None and correction is None:
            return known
        if correction not in (None, "apc"):
            raise ValueError(f"correction must be None or 'apc', found {correction!r}")
        layout, out = self.layout, np.empty(self.n_edges)
        where = layout.states, layout.edges, layout.node_offset, layout.edge_offset
        strengths(self.theta, *where, _counted(self.schema, without), out)
        return out if correction is None else _correct(self, out)

    def energy(self, X: Any = None, *, codes: ArrayLike | None = None) -> Floats:
        """Return the unnormalised log-probability of complete rows (higher is likelier).

        Parameters
        ----------
        X : table of the model's columns
            Its cells are categories, whatever their type.
        codes : array of int, shape (n_rows, n), optional
            The rows as numbers of categories, in place of `X`.
        """
        rows = self._read(X, codes)
        missing = (rows < 0).any(axis=1)
        if missing.any():
            row = int(np.argmax(missing))
            name = self.names[int(np.argmax(rows[row] < 0))]
            raise DataError(
                f"row {row} has no value for '{name}': only complete rows have an energy; "
                "impute first, or ask for log_likelihood"
            )
        layout, out = self.layout, np.empty(len(rows))
        row_energies(
            self.theta, rows, layout.states, layout.edges, layout.node_offset, layout.edge_offset,
            out,
        )  # fmt: skip
        return out

    def encode(self, X: Any) -> Integers:
        """Return the codes of a table of categories, -1 for a missing cell.

        Unknown categories and columns are errors that name them.

        Examples
        --------
        >>> from edgegraft import PairwiseMRF
        >>> model = PairwiseMRF.from_potentials({"grade": [1, 2, 3]})
        >>> model.encode(np.array([[1], [3]])).ravel()
        array([0, 2])
        """
        return read_codes(X, self.schema)

    def _read(self, X: Any, codes: ArrayLike | None) -> Integers:
        """Return rows as checked codes, from a table or from codes that are called so."""
        if (X is None) == (codes is None):
            raise TypeError("give the rows once: a table of categories, or codes=")
        if codes is None:
            return self.encode(X)
        checked = check_codes(codes, self.names, self.layout.states)
        return np.ascontiguousarray(checked, np.int64)

    @cached_property
    def _neighbours(self) -> Neighbours:
        return neighbours_of(self.layout)


def _counted(schema: Schema, without: Label | Iterable[Label] | None) -> NDArray[np.bool_]:
    """Return which states of which variables count, all variables' states in one array."""
    if without is None:
        return np.ones(int(schema.n_states.sum()), np.bool_)
    if isinstance(without, str) or not isinstance(without, Iterable):
        without = (without,)
    plain = [label.item() if isinstance(label, np.generic) else label for label in without]
    # With the type, because 0, 0.0 and False are equal and not the same category.
    left_out = {(type(label), label) for label in plain}
    states = [(type(label), label) for variable in schema for label in variable.categories]
    unknown = left_out.difference(states)
    if unknown:
        found = ", ".join(sorted(repr(label) for _, label in unknown))
        raise ModelError(
            f"no variable has the category {found}: `without` takes categories of "
            "the variables, in their own type"
        )
    return np.array([state not in left_out for state in states], np.bool_)


def _correct(model: NamedPotentials, raw: Floats) -> Floats:
    if not np.isfinite(raw).all():
        i, j = model.edges[int(np.argmax(~np.isfinite(raw)))]
        raise ModelError(
            f"edge ({model.names[i]!r}, {model.names[j]!r}) forbids a pair of states, so its "
            "strength is infinite and no average-product correction exists; use correction=None"
        )
    n, (first, second) = model.n_variables, model.edges.T
    by_variable = np.bincount(model.edges.ravel(), np.repeat(raw, 2), n) / max(n - 1, 1)
    mean = by_variable.mean() if n else 0.0
    if mean == 0:
        return raw
    return np.asarray(raw - by_variable[first] * by_variable[second] / mean)
