"""Networks of groups compared: which edges differ, of which variables, and whether any does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.config import Plan
from edgegraft.core.threads import resolve_jobs
from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.errors import SettingError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.output import make_frame
from edgegraft.learn.cut import q_values
from edgegraft.learn.effects import edge_effects
from edgegraft.model import PairwiseMRF
from edgegraft.study.columns import NORMAL, plain_rows
from edgegraft.study.group_tests import Estimate, GroupScores
from edgegraft.study.groups import GroupRows, JointModel, features_of, read_groups
from edgegraft.study.network_tests import (
    ComparedEdges,
    EqualityTests,
    choose_edges,
    judge_edges,
    permuted_labels,
)
from edgegraft.table.blocks import TableRows

_MAX_ROUNDS = 4  # budget of refits until the edges that differ are the free ones; two are common
_LINEAR = 0.05  # effects below which weights and their ``atanh`` need no scale
_ROUNDING = 1e-6  # differences of weights that are none: far below one row of a million


@dataclass(frozen=True)
class Comparison:
    """Networks of several groups, edge by edge.

    Attributes
    ----------
    groups : tuple of str
    sizes : tuple of int
        Rows of each group.
    p_value : float
        Of the whole network: that all edges are equal in all groups.
    edges : dict of str to array
        An edge per row, the clearest differences first: ``first``, ``second``, ``signed`` (whether
        effects have a sign), ``effect_GROUP`` with its interval of 95 %, ``low_GROUP`` to
        ``high_GROUP``, and ``in_GROUP`` (whether it is an edge of that group's network), ``pooled``
        (whether it is an edge of the network of all rows together), ``difference`` (of two groups
        with its interval; of more the range of effects), ``statistic``, ``dof``,
        ``p_value``, ``q_value``, ``p_permutation`` and ``differs``: a q-value of at most `fdr`, and
        of at most .05 by permutations, if there are any.
    variables : dict of str to array
        ``name``, ``n_edges``, ``n_different``, ``p_value`` (that all edges of the variable are
        equal) and ``q_value``.
    models : dict of str to PairwiseMRF
        One model of all groups: edges that do not differ have the same parameters in all of them.
    n_permutations : int
    """

    groups: tuple[str, ...]
    sizes: tuple[int, ...]
    p_value: float
    edges: dict[str, NDArray[Any]]
    variables: dict[str, NDArray[Any]]
    models: dict[str, PairwiseMRF]
    n_permutations: int

    @property
    def n_different(self) -> int:
        """Number of edges that differ."""
        return int(self.edges["differs"].sum())

    def edges_frame(self) -> Any:
        """Return the edges as a frame."""
        return make_frame(self.edges)

    def variables_frame(self) -> Any:
        """Return the variables as a frame."""
        return make_frame(self.variables)

    def shown_in(self, group: str) -> Mask:
        """Return the edges that a group has by all that is known.

        An edge that does not differ is one of all groups if it is one of any of them, or of all
        rows together: too few rows of a group are not a difference.
        """
        anywhere = np.any([self.edges[f"in_{name}"] for name in self.groups], axis=0)
        shared = ~(self.edges["differs"] & anywhere) & (anywhere | self.edges["pooled"])
        return np.asarray(self.edges[f"in_{group}"] | shared)

    def places(self) -> Integers:
        """Return the rows of `edges` in the order of the models' edges."""
        names = self.models[self.groups[0]].names
        ends = zip(self.edges["first"], self.edges["second"], strict=True)
        place = {pair: k for k, pair in enumerate(ends)}
        edges = self.models[self.groups[0]].edges.tolist()
        return np.array([place[names[i], names[j]] for i, j in edges], np.int64)

    def first_model(self) -> PairwiseMRF:
        """Return the model of the first group, with columns of its edges for files and pages."""
        names = [*(f"effect_{name}" for name in self.groups), "difference", "q_value"]
        columns = {name: self.edges[name][self.places()] for name in names}
        return self.models[self.groups[0]].with_edge_columns(columns)

    def summary(self) -> dict[str, Any]:
        """Return the comparison in plain types, for JSON; numbers that are not known are None."""
        return {
            "groups": dict(zip(self.groups, self.sizes, strict=True)),
            "p_value": self.p_value,
            "n_permutations": self.n_permutations,
            "n_different": self.n_different,
            "edges": plain_rows(self.edges),
            "variables": plain_rows(self.variables),
        }

    def __repr__(self) -> str:
        return (
            f"Comparison({' and '.join(self.groups)}: {self.n_different} of "
            f"{len(self.edges['first'])} pairs differ, network p = {self.p_value:.3g})"
        )


def compare(
    X: Any,
    groups: str | ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    clusters: str | ArrayLike | None = None,
    fdr: float = 0.05,
    n_permutations: int = 1000,
    n_jobs: int | None = None,
    random_state: int = 0,
    **reading: Any,
) -> Comparison:
    """Compare the networks of two or more groups of rows.

    The edges compared are those that a search of all rows together finds, before any cut, with the
    next best pairs, one per column, and those that only a group's own network has. The first are
    chosen without regard to groups; the second because a group shows them, so that chance makes
    them look different: they count as the best of all other pairs. All groups are one model, in
    which edges are shared unless they differ; every edge is tested by its effective scores
    (:mod:`edgegraft.study.group_tests`). Every group has node vectors for itself: a state that is
    more common in a group is not a difference of networks.

    Parameters
    ----------
    X : table
        Whatever :func:`edgegraft.pack` takes.
    groups : str or array, shape (n_rows,)
        A column of the table, which is then not part of the networks, or a label per row.
    sample_weight : array of float, shape (n_rows,), optional
        As in :meth:`edgegraft.GraftedMRF.fit`.
    clusters : str or array, shape (n_rows,), optional
        Rows of a cluster are not independent: the same person before and after, or pupils of a
        school. Variances are those over clusters, and permutations keep clusters together.
    fdr : float, default 0.05
        Share of false ones among the edges that differ.
    n_permutations : int, default 1000
        Assignments of rows to groups by chance, from which the p-values of the network and of
        variables follow; 0 for Cauchy combinations of the tests of edges instead.
    n_jobs : int, optional
        Threads; the results do not depend on it.
    random_state : int, default 0
    **reading
        Options of :func:`edgegraft.pack`, such as ``kinds=``.

    Examples
    --------
    >>> import numpy as np
    >>> from edgegraft.datasets import make_chain
    >>> rows = [make_chain(6, n_rows=800, couplings="ising", random_state=k).X for k in (1, 1)]
    >>> rng = np.random.default_rng(0)
    >>> rows[1][:, 5] = rng.permutation(rows[1][:, 5])  # an edge that only the first group has
    >>> found = compare(np.concatenate(rows), ["before"] * 800 + ["after"] * 800)
    >>> found
    Comparison(after and before: 1 of 11 pairs differ, network p = 0.000999)
    """
    if not 0 < fdr <= 1:
        raise SettingError("fdr", f"must be above 0 and at most 1, found {fdr}")
    if n_permutations < 0:
        raise SettingError("n_permutations", f"must be at least 0, found {n_permutations}")
    options = ReadOptions.of(compare, reading)
    data = read_groups(X, groups, weights=sample_weight, clusters=clusters, options=options)
    n_jobs = resolve_jobs(n_jobs)
    chosen = choose_edges(data, Plan(n_jobs=n_jobs, random_state=random_state))
    edges = chosen.edges
    features = features_of(data.table, data.weights)
    model = JointModel(data, features, edges, n_jobs)
    free = np.zeros(len(edges), bool)
    fitted = model.fit(~free)
    reference = _reference(data, model.models(fitted), n_jobs)
    for _ in range(_MAX_ROUNDS):
        scores = GroupScores(data, features, fitted, n_jobs)
        tested = judge_edges(data, scores, None)
        differs = chosen.q_values(tested.p_value) <= fdr
        if np.array_equal(differs, free):
            break
        free, fitted = differs, model.fit(~differs, fitted)
    if n_permutations:
        tested = judge_edges(data, scores, permuted_labels(data, n_permutations, random_state))
        differs = free & tested.confirmed()
        if not np.array_equal(differs, free):
            free, fitted = differs, model.fit(~differs, fitted)
    names = np.array(data.table.schema.names, object)
    columns = {"first": names[edges[:, 0]], "second": names[edges[:, 1]]}
    columns |= _effects(data, scores, tested, chosen, reference)
    columns |= tested.columns(chosen) | {"differs": free}
    order = np.argsort(tested.p_value, kind="stable")
    return Comparison(
        data.names,
        tuple(np.bincount(data.groups).tolist()),
        tested.network_p_value(chosen),
        {name: values[order] for name, values in columns.items()},
        _variables(data, chosen, tested, free),
        dict(zip(data.names, model.models(fitted), strict=True)),
        n_permutations,
    )


def _variables(
    data: GroupRows, chosen: ComparedEdges, tested: EqualityTests, differs: Mask
) -> dict[str, NDArray[Any]]:
    """Return the tests of variables: of all their edges together."""
    touching = [(chosen.edges == i).any(axis=1) for i in range(chosen.n)]
    p = np.array([tested.network_p_value(chosen, i) for i in range(chosen.n)])
    return {
        "name": np.array(data.table.schema.names, object),
        "n_edges": np.array([own.sum() for own in touching]),
        "n_different": np.array([(own & differs).sum() for own in touching]),
        "p_value": p,
        "q_value": q_values(p, len(p)),
    }


def _effects(
    data: GroupRows,
    scores: GroupScores,
    tested: EqualityTests,
    chosen: ComparedEdges,
    reference: Floats,
) -> dict[str, NDArray[Any]]:
    """Return effects per group with their intervals, and their differences.

    `reference` are the effects of the edges if all groups share them. Effects of groups are
    proportional to their weights on the scale of ``atanh``, and agree with these.
    """
    m, n_groups = len(tested.edges), len(data.names)
    z, error = np.full((2, n_groups, m), np.nan)
    difference, unsure = np.full((2, m), np.nan)
    scale = _scales(reference, tested.effect)
    for k, edge in enumerate(tested.edges):
        for g, one in enumerate(edge.estimates):
            if one is not None:
                z[g, k], error[g, k] = _sized(scores, k, one, scale[k])
        if edge.difference is not None:
            difference[k], unsure[k] = _sized(scores, k, edge.difference, scale[k])
    signed = np.array([scores.signed(k) for k in range(m)], bool)
    columns: dict[str, NDArray[Any]] = {"signed": signed}
    for g, name in enumerate(data.names):
        for end, times in (("effect", 0.0), ("low", -NORMAL), ("high", NORMAL)):
            columns[f"{end}_{name}"] = np.tanh(z[g] + times * error[g])
        columns[f"in_{name}"] = chosen.in_group[g]
    columns["pooled"] = chosen.in_all
    effect = np.tanh(z)
    if n_groups > 2:
        several = np.isfinite(effect).sum(axis=0) > 1
        spread = np.fmax.reduce(effect) - np.fmin.reduce(effect)
        return columns | {"difference": np.where(several, spread, np.nan)}
    # A difference of signed effects is that on the scale of atanh times a mean slope of tanh.
    clear = np.abs(difference) > _ROUNDING
    steep = 1.0 - effect[0] ** 2
    steep[clear] = (effect[1] - effect[0])[clear] / difference[clear]
    for end, times in (("", 0.0), ("_low", -NORMAL), ("_high", NORMAL)):
        own = difference + times * unsure
        columns[f"difference{end}"] = np.where(signed, own * steep, np.tanh(own))
    return columns


def _reference(data: GroupRows, models: list[PairwiseMRF], n_jobs: int) -> Floats:
    """Return the effects of edges that all groups share, over the rows of all of them."""
    parts = [data.part(g) for g in range(len(models))]
    each = [
        edge_effects(model, TableRows(table, weights), n_jobs=n_jobs).effect
        for model, (table, weights) in zip(models, parts, strict=True)
    ]
    return np.asarray(np.average(each, axis=0, weights=[weights.sum() for _, weights in parts]))


def _scales(reference: Floats, own: Floats) -> Floats:
    """Return what own sizes are multiplied by to agree with effects, if these are not small."""
    usable = (np.abs(reference) > _LINEAR) & (np.abs(own) > _LINEAR**2)
    goal = np.arctanh(np.minimum(np.abs(reference), 1.0 - 1e-6))
    return np.where(usable, goal / np.where(usable, np.abs(own), 1.0), 1.0)


def _sized(scores: GroupScores, k: int, found: Estimate, scale: float) -> tuple[float, float]:
    """Return the size of weights with its standard error."""
    slope = scores.slope(k, found.weights)
    return scale * float(slope @ found.weights), scale * found.error(slope)
