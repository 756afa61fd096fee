"""The frozen model: named variables, named categories, log-potentials.

    log p(x) = sum_i u_i(x_i) + sum_{(i, j) in E} w_ij(x_i, x_j) - log Z

Names live here; everything below works on flat vectors and integer codes.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core import Layout
from edgegraft.core.edge_tables import to_zero_sum
from edgegraft.core.types import Floats
from edgegraft.errors import DataError, EdgeError, ModelError, counted
from edgegraft.model.evidence import variable_index
from edgegraft.model.file import MODEL_FILE, StoredModel, read_details
from edgegraft.model.row_questions import RowQuestions
from edgegraft.table import Schema


class PairwiseMRF(RowQuestions):
    """An immutable pairwise Markov random field over named categorical variables.

    Parameters
    ----------
    schema : Schema
        Names and categories.
    edges : array of int, shape (m, 2)
        Pairs ``(i, j)``, ``i < j``, of column numbers.
    theta : array of float, shape (n_parameters,)
        Log-potentials in the order of :class:`~edgegraft.core.Layout`: node vectors, then
        edge tables. Minus infinity forbids a state or a pair of states.
    edge_columns : dict of name to array, optional
        What is known of the edges, one number each: ``strength``, ``sign``, q-values. A fitted
        model has them, and a file keeps them.

    Attributes
    ----------
    schema : Schema
    layout : Layout
        Where each log-potential lies in `theta`.
    theta : array of float
        All log-potentials in one read-only vector.
    edge_columns : dict of name to array
        It makes no difference between models.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     nodes={"smoker": [0.5, -0.5]},
    ...     edges={("smoker", "cancer"): [[1.0, -1.0], [-1.0, 1.0]]},
    ... )
    >>> model
    PairwiseMRF(2 variables, 1 edge, 8 parameters; strongest: smoker - cancer 2)
    >>> round(model.marginals(given={"smoker": "yes"})["cancer"]["yes"], 4)
    0.8808
    """

    @classmethod
    def from_potentials(
        cls,
        categories: Schema | Mapping[str, Sequence[Any]],
        nodes: Mapping[str, ArrayLike] | None = None,
        edges: Mapping[tuple[str, str], ArrayLike] | None = None,
    ) -> PairwiseMRF:
        """Build a model by hand.

        Parameters
        ----------
        categories : Schema, or dict of name to the variable's categories in order
        nodes : dict of name to log-potentials, optional
            Zero for variables that are not named.
        edges : dict of a pair of names to its table of log-potentials, optional
            Rows for the states of the first name, columns for the states of the second.
        """
        schema = (
            categories if isinstance(categories, Schema) else Schema.from_categories(categories)
        )
        tables = {}
        for (first, second), table in (edges or {}).items():
            i, j = variable_index(schema, first), variable_index(schema, second)
            key = (min(i, j), max(i, j))
            if i == j or key in tables:
                what = "joins a variable to itself" if i == j else "is given more than once"
                raise ModelError(f"edge ({first!r}, {second!r}) {what}")
            array = _shaped(table, (schema[i].n_states, schema[j].n_states), (first, second))
            tables[key] = array if i < j else array.T
        layout = Layout(schema.n_states, np.array(list(tables), np.int64).reshape(-1, 2))
        theta = np.zeros(layout.n_parameters)
        for name, vector in (nodes or {}).items():
            i = variable_index(schema, name)
            layout.node(theta, i)[:] = _shaped(vector, (schema[i].n_states,), (name,))
        for k, array in enumerate(tables.values()):
            layout.edge(theta, k)[:] = array
        return cls(schema, layout.edges, theta)

    def with_edge_columns(self, columns: Mapping[str, ArrayLike]) -> PairwiseMRF:
        """Return the same model that knows more of its edges."""
        return PairwiseMRF(self.schema, self.edges, self.theta, {**self.edge_columns, **columns})

    def edges_frame(self) -> Any:
        """Return the edges with their names and all that is known of them, strongest first.

        It is a frame of pandas if that is installed, otherwise of polars, otherwise an Arrow
        table. A model that was learned, or loaded from a file of ``edgegraft learn``, has the
        columns of ``GraftedMRF.edges_frame``; one built by hand has names and strengths.

        Examples
        --------
        >>> model = PairwiseMRF.from_potentials(
        ...     {"a": [0, 1], "b": [0, 1], "c": [0, 1]}, edges={("a", "c"): [[1, 0], [0, 1]]}
        ... )
        >>> model.edges_frame().to_dict("list")
        {'first': ['a'], 'second': ['c'], 'strength': [1.0]}
        """
        from edgegraft.ingest.output import make_frame

        columns = {"strength": self.edge_strengths(), **self.edge_columns}
        order = np.argsort(-columns["strength"], kind="stable")
        ends = np.array(self.names, object)[self.edges[order]]
        known = {name: values[order] for name, values in columns.items()}
        return make_frame({"first": ends[:, 0], "second": ends[:, 1], **known})

    def adjacency(self, strengths: ArrayLike | None = None) -> Floats:
        """Return the symmetric matrix of edge strengths, 0 for pairs without an edge.

        `strengths` are numbers to use instead of :meth:`edge_strengths`, one per edge; those of
        ``model.edge_columns["weight"]`` have signs. Rows and columns are in the order of
        ``model.names``.

        Examples
        --------
        >>> model = PairwiseMRF.from_potentials(
        ...     {"a": [0, 1], "b": [0, 1], "c": [0, 1]}, edges={("a", "c"): [[1, 0], [0, 1]]}
        ... )
        >>> model.adjacency().tolist()
        [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        """
        values = self.edge_strengths() if strengths is None else np.asarray(strengths, np.float64)
        matrix = np.zeros((self.n_variables, self.n_variables))
        matrix[self.edges[:, 0], self.edges[:, 1]] = values
        return matrix + matrix.T

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        details: Mapping[str, Any] | None = None,
        edge_columns: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Write the model to a file for :func:`edgegraft.load`; complete or not at all.

        The file is safetensors with a JSON header, and has no code in it. An existing file is
        replaced.

        Parameters
        ----------
        path : path
            By custom with the suffix ``.edgegraft``.
        details : dict, optional
            Settings, provenance, certificate: strings, finite numbers, None, and lists and dicts
            of them. :func:`edgegraft.read_details` gives them back.
        edge_columns : dict of name to array, optional
            One number for each of the model's edges, in their order: q-values, frequencies. They
            are written in addition to the model's own.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import edgegraft
        >>> model = PairwiseMRF.from_potentials({"smoker": ["no", "yes"]}, {"smoker": [0.5, 0.0]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "survey.edgegraft"
        ...     model.save(path)
        ...     edgegraft.load(path) == model
        True
        """
        StoredModel.of(self, details, edge_columns).write(path)

    def zero_sum(self) -> PairwiseMRF:
        """Return the same distribution with rows and columns of all edge tables summing to zero.

        The constant that this takes out of the log-potentials changes log Z by as much. Tables
        with forbidden pairs stay as they are.
        """
        layout, theta = self.layout, self.theta.copy()
        to_zero_sum(theta, layout.states, layout.edges, layout.node_offset, layout.edge_offset)
        return PairwiseMRF(self.schema, layout.edges, theta, self.edge_columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairwiseMRF):
            return NotImplemented
        return (
            self.schema == other.schema
            and np.array_equal(self.edges, other.edges)
            and np.array_equal(self.theta, other.theta)
        )

    def __hash__(self) -> int:
        return hash((self.schema, self.edges.tobytes(), self.theta.tobytes()))

    def __repr__(self) -> str:
        strongest = [f"{a} - {b} {s:.3g}" for a, b, s in self._strongest(3)]
        more = f"; strongest: {', '.join(strongest)}" if strongest else ""
        return f"PairwiseMRF({self._size()}{more})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td><td>{s:.3g}</td></tr>"
            for a, b, s in self._strongest(10)
        )
        return (
            f"<p><b>PairwiseMRF</b>: {self._size()}</p>"
            "<table><thead><tr><th>variable</th><th>variable</th><th>strength</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )

    def _size(self) -> str:
        variables, edges = counted(self.n_variables, "variable"), counted(self.n_edges, "edge")
        return f"{variables}, {edges}, {self.layout.n_parameters:,} parameters"

    def _strongest(self, k: int) -> list[tuple[str, str, float]]:
        values = self.edge_strengths()
        best = np.argsort(-values, kind="stable")[:k]
        return [(*(self.names[v] for v in self.edges[e]), float(values[e])) for e in best]


def load(path: str | os.PathLike[str]) -> PairwiseMRF:
    """Return the model of a file that :meth:`PairwiseMRF.save` wrote.

    A file that is not a model, is truncated or damaged, or was written by a newer release is a
    ModelFileError.
    """
    stored = read_details(path)
    try:
        schema = Schema.from_json(stored.schema_json)
        return PairwiseMRF(schema, stored.edges, stored.theta, stored.edge_columns)
    except (DataError, EdgeError, ModelError) as error:
        raise MODEL_FILE.damaged(path, str(error)) from error


def _shaped(values: ArrayLike, shape: tuple[int, ...], names: tuple[str, ...]) -> NDArray[Any]:
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        what = f"variable {names[0]!r}" if len(names) == 1 else f"edge {names!r}"
        raise ModelError(f"the potential of {what} has shape {array.shape}: expected {shape}")
    return array
