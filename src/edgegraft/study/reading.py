"""Reading of a network: predictability, centrality, communities, and their stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.conditional.rows import ConditionalRows
from edgegraft.conditional.survey_design import weigh
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs
from edgegraft.core.types import Integers
from edgegraft.errors import Argument, DataError, SettingError
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.output import make_frame
from edgegraft.ingest.rows import read_table
from edgegraft.model import PairwiseMRF
from edgegraft.study.centrality import (
    RowInfluence,
    case_dropping,
    centrality,
    communities,
    membership_stability,
)
from edgegraft.study.columns import NORMAL, plain_rows
from edgegraft.study.effect_bounds import effect_upper_bounds
from edgegraft.study.groups import features_of, label_codes
from edgegraft.study.power import model_of, replication_probability
from edgegraft.study.predictability import predictability

_TABLES = {"stability": "dropped"} | {name: name for name in ("variables", "edges", "absent")}


@dataclass(frozen=True)
class NetworkReading:
    """What a network shows of its variables and edges.

    Attributes
    ----------
    variables : dict of str to array
        ``name``, ``n_edges``, ``strength`` (sum of the sizes of effects) with its interval of 95 %
        ``strength_low`` to ``strength_high``, ``influence`` (sum of signed effects; edges without a
        sign count nothing) with ``influence_low`` and ``influence_high``, ``bridge`` (strength of
        edges to other communities), ``community`` (-1 without edges), ``community_0.5`` and
        ``community_2`` (at other resolutions), ``membership_stability`` (share of resamples in
        which members of its community are together with it), ``accuracy``, ``baseline_accuracy``
        (of the commonest category), ``nats``, ``entropy``, ``explained`` (share of the entropy)
        and ``r2`` (of ordered columns, otherwise NaN); the same with ``held_`` of other rows.
    edges : dict of str to array
        ``first``, ``second``, ``effect``, ``low``, ``high``, ``q_value`` and
        ``replication_probability``: the chance that another sample of as many rows shows the edge.
    communities : dict of float to array
        Community of each variable, by resolution.
    dropped : dict of str to array
        ``share`` of the rows dropped, ``correlation`` (mean of the strengths with those of all
        rows), ``low`` (its 5 % quantile), and the same of influence.
    coefficient : dict of str to float
        Largest share of dropped rows with which ``strength`` and ``influence`` correlate at least
        .7 with the values of all rows, with a chance of 95 %.
    absent : dict of str to array
        Pairs that are not edges: ``first``, ``second``, ``p_value`` and ``effect_upper_bound``
        (95 %). Empty if there are more than 5,000 pairs.
    """

    variables: dict[str, NDArray[Any]]
    edges: dict[str, NDArray[Any]]
    communities: dict[float, Integers]
    dropped: dict[str, NDArray[Any]]
    coefficient: dict[str, float]
    absent: dict[str, NDArray[Any]]
    influence: RowInfluence
    model: PairwiseMRF

    def variables_frame(self) -> Any:
        """Return the variables as a frame."""
        return make_frame(self.variables)

    def edges_frame(self) -> Any:
        """Return the edges as a frame."""
        return make_frame(self.edges)

    def table(self, name: str) -> dict[str, NDArray[Any]]:
        """Return columns: variables, edges, absent, differences, or stability (rows dropped)."""
        return self.differences() if name == "differences" else getattr(self, _TABLES[name])

    def frame(self, name: str) -> Any:
        """Return a table (see :meth:`table`) as a frame."""
        return make_frame(self.table(name))

    def differences(self) -> dict[str, NDArray[Any]]:
        """Return all pairs of edges with how much larger the effect of the one is.

        Signs do not count; two edges may share a variable, and then depend on each other. The
        columns are ``first`` and ``second`` (``A -- B``), ``difference``, ``low`` and ``high`` (95
        %), without a correction for their number.
        """
        difference, error = self.influence.differences()
        ends = zip(self.edges["first"], self.edges["second"], strict=True)
        names = np.array([f"{a} -- {b}" for a, b in ends], object)
        one, other = np.triu_indices(len(names), 1)
        found, spread = difference[one, other], NORMAL * error[one, other]
        columns = {"first": names[one], "second": names[other]}
        return columns | {"difference": found, "low": found - spread, "high": found + spread}

    def summary(self) -> dict[str, Any]:
        """Return the reading in plain types, for JSON."""
        return {
            "variables": plain_rows(self.variables),
            "edges": plain_rows(self.edges),
            "communities": {str(key): own.tolist() for key, own in self.communities.items()},
            "stability": plain_rows(self.dropped),
            "coefficient": self.coefficient,
            "absent": plain_rows(self.absent),
        }


def read_network(
    fitted: Any,
    X: Any,
    *,
    sample_weight: ArrayLike | None = None,
    clusters: str | ArrayLike | None = None,
    held_out: Any = None,
    resolutions: Sequence[float] = (0.5, 1.0, 2.0),
    n_resamples: int = 200,
    n_jobs: int | None = None,
    random_state: int = 0,
    **reading: Any,
) -> NetworkReading:
    """Read a network: predictability, centrality, communities, stability, bounds of absent effects.

    Parameters
    ----------
    fitted : PairwiseMRF, fitted estimator or path of a model file
    X : table
        The rows of the fit.
    sample_weight : array of float, optional
        Of these rows; whole numbers count equal rows, others are sampling weights.
    clusters : str or array, shape (n_rows,), optional
        A column of the table, or a label per row: rows of a person or a school, which are resampled
        and dropped together.
    held_out : table, optional
        Other rows, to predict what the fit has not seen.
    resolutions : sequence of float
        Of the communities (Leiden); larger ones give smaller communities. `variables` has the
        communities of resolution 1, or of the first.
    n_resamples : int, default 200
        For communities and for each share of dropped rows. Resamples are of first order and have
        the information of all rows (:mod:`edgegraft.study.centrality`).
    n_jobs : int, optional
    random_state : int, default 0
    **reading
        Options of :func:`edgegraft.pack` for the cells of `X`, such as ``missing_values=``.

    Examples
    --------
    >>> from edgegraft import GraftedMRF
    >>> from edgegraft.datasets import make_chain
    >>> rows = make_chain(5, n_rows=1000, couplings="ising", random_state=0).X
    >>> found = read_network(GraftedMRF(random_state=0).fit(rows), rows)
    >>> found.variables["n_edges"].tolist()
    [1, 2, 2, 2, 1]
    >>> bool((found.edges["replication_probability"] > 0.9).all())
    True
    """
    model = getattr(fitted, "model_", None)
    model = model if isinstance(model, PairwiseMRF) else model_of(fitted)[0]
    if not len(resolutions) or min(resolutions) <= 0:
        raise SettingError("resolutions", f"must be numbers above 0, found {resolutions!r}")
    if n_resamples < 1:
        raise SettingError("n_resamples", f"must be at least 1, found {n_resamples}")
    n_jobs = resolve_jobs(n_jobs)
    options = ReadOptions.of(read_network, reading | {"columns": list(model.names)})
    table = read_table(X, model.schema, options)
    n = table.n_rows
    weighting = weigh(np.ones(n) if sample_weight is None else check_weights(sample_weight, n))
    members = None
    if clusters is not None:
        members = _members(X, clusters, ReadOptions(**reading), n)
    features = features_of(table, weighting.weights)
    rows = ConditionalRows(table, weighting.weights, features, sampling=weighting.sampling)
    influence = RowInfluence(model, rows, n_jobs, members)
    rng = np.random.default_rng(random_state)
    resampled = influence.resampled(n_resamples, rng)
    groups = {
        float(r): communities(
            model.n_variables,
            model.edges,
            np.abs(influence.effect),
            resolution=float(r),
            seed=random_state,
        )
        for r in resolutions
    }
    used = 1.0 if 1.0 in groups else next(iter(groups))
    chosen = groups[used]
    variables = centrality(model, influence, chosen)
    variables |= {f"community_{r:g}": own for r, own in groups.items() if r != used}
    variables["membership_stability"] = membership_stability(
        model, chosen, resampled, used, random_state
    )
    variables |= predictability(model, table.codes(), weighting.weights)
    if held_out is not None:
        other = predictability(model, read_table(held_out, model.schema, options).codes())
        variables |= {f"held_{name}": values for name, values in other.items()}
    dropped, coefficient = case_dropping(model, influence, n_resamples, rng)
    return NetworkReading(
        variables,
        _edges(fitted, model, influence, weighting.weights.sum(), members is not None),
        groups,
        dropped,
        coefficient,
        effect_upper_bounds(model, rows, n_jobs, members),
        influence,
        model,
    )


def _members(X: Any, clusters: str | ArrayLike, options: ReadOptions, n_rows: int) -> Integers:
    """Return the cluster of each row, from 0."""
    codes, _ = label_codes(X, clusters, options)
    if len(codes) != n_rows:
        raise DataError(
            Argument("clusters"),
            f" has {len(codes):,} values where the table has {n_rows:,} rows",
        )
    if (codes < 0).any():
        raise DataError(f"row {int((codes < 0).argmax())} has no cluster: leave such rows out")
    return codes


def _edges(
    fitted: Any, model: PairwiseMRF, influence: RowInfluence, n_rows: float, clustered: bool
) -> dict[str, NDArray[Any]]:
    names, known = np.array(model.names, object), dict(model.edge_columns)
    spread = NORMAL * influence.error
    low, high = influence.effect - spread, influence.effect + spread
    if "effect_low" in known and not clustered:  # intervals of a fit may not allow for clusters
        untested = np.isnan(known["effect_low"])
        low = np.where(untested, low, known["effect_low"])
        high = np.where(untested, high, known["effect_high"])
    columns: dict[str, NDArray[Any]] = {
        "first": names[model.edges[:, 0]],
        "second": names[model.edges[:, 1]],
        "effect": influence.effect,
        "low": low,
        "high": high,
    }
    if "q_value" in known:
        columns["q_value"] = known["q_value"]
    if np.isfinite(known.get("statistic", np.zeros(0))).any():
        columns["replication_probability"] = replication_probability(fitted, model, n_rows)
    return columns
