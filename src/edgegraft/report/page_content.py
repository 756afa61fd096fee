"""Content of a page about a model, in plain values: a function for each section of the templates.

A section that has nothing to say is None.
"""

from __future__ import annotations

import importlib.metadata
import platform
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft import __version__
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import ConvergenceWarning, ModelError
from edgegraft.model import NodeMarginals, PairwiseMRF
from edgegraft.report.network import Network, build_network, finite_strengths
from edgegraft.report.style import LIMITS, heat_cell, largest_entry, strongest_part
from edgegraft.study import Comparison, NetworkReading

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pyarrow")
_IN_OTHER_SECTIONS = ("source", "settings", "certificate", "cut", "shares", "versions")

Json = dict[str, Any]


@dataclass(frozen=True)
class InteractionTable:
    """An interaction table in zero-sum gauge, for the categories that it affects most."""

    names: tuple[str, str]  # of the variables: rows, columns
    rows: list[str]  # categories
    columns: list[str]
    values: Floats
    shape: tuple[int, ...]  # of the complete table

    def lines(self) -> list[tuple[str, list[Any]]]:
        """Return the label of each row with its coloured cells."""
        limit = largest_entry(self.values)
        cells = [[heat_cell(value, limit) for value in row] for row in self.values.tolist()]
        return list(zip(self.rows, cells, strict=True))


@dataclass(frozen=True)
class ModelSummary:
    """A model with the data that its page needs."""

    model: PairwiseMRF
    zero_sum: PairwiseMRF
    attributes: dict[str, NDArray[Any]]  # columns of the edges, strengths first
    order: Integers  # edges by strength
    degree: Integers  # edges per variable
    total: Floats  # sum of their strengths; forbidden pairs count as the strongest edge
    network: Network
    marginals: NodeMarginals | None
    marginals_note: str  # how they were obtained, or why there are none

    def table(self, edge: int) -> InteractionTable:
        """Return the interaction table of an edge, by its position in the model."""
        model = self.zero_sum
        table = model.layout.edge(model.theta, edge)
        first, second = (model.schema[int(v)] for v in model.edges[edge])
        rows, columns = strongest_part(table, LIMITS.table)
        return InteractionTable(
            (first.name, second.name),
            [str(first.categories[k]) for k in rows],
            [str(second.categories[k]) for k in columns],
            table[np.ix_(rows, columns)],
            table.shape,
        )

    def likeliest(self, variable: int, limit: int = LIMITS.table) -> list[tuple[str, float]]:
        """Return the most likely categories of a variable, in the order of the schema, if any."""
        if self.marginals is None:
            return []
        entry = self.model.schema[variable]
        values = self.marginals.array(entry.name)
        best = np.sort(np.argsort(-values, kind="stable")[:limit])
        return [(str(entry.categories[k]), float(values[k])) for k in best]

    def by_degree(self, limit: int) -> list[int]:
        """Return the variables with the most edges, the first of them."""
        return [int(v) for v in np.lexsort((-self.total, -self.degree))[:limit]]


def describe(model: PairwiseMRF, attributes: dict[str, NDArray[Any]]) -> ModelSummary:
    """Compute the content of a page about a model whose edges have these columns."""
    strengths = attributes["strength"].astype(np.float64)
    ends = model.edges.ravel()
    total = np.bincount(ends, np.repeat(finite_strengths(strengths), 2), model.n_variables)
    marginals, note = _marginals(model)
    return ModelSummary(
        model,
        model.zero_sum(),
        attributes,
        np.argsort(-strengths, kind="stable"),
        np.bincount(ends, minlength=model.n_variables),
        total.astype(np.float64),
        build_network(model, top=LIMITS.drawn, strengths=strengths, signs=attributes.get("sign")),
        marginals,
        note,
    )


def _marginals(model: PairwiseMRF) -> tuple[NodeMarginals | None, str]:
    """Return the marginals, and a sentence on their reliability."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page reports it instead
        try:
            answer = model.marginals()
        except ModelError as error:
            return None, f"The model has no marginals: {error}."
    if answer.engine.exact:
        return answer, "Probabilities of the model, exact."
    trust = "converged" if answer.info.converged else "did NOT converge: errors may be large"
    return (
        answer,
        f"Probabilities of the model, approximated by {answer.engine.name}, which {trust}.",
    )


def page_sections(
    about: ModelSummary,
    details: Mapping[str, Any],
    quality: Mapping[str, Any] | None,
    *,
    comparison: Comparison | None,
    reading: NetworkReading | None,
    has_trace: bool,
) -> dict[str, Json]:
    """Return the content of all sections that have any, by name, in the order of the page."""
    sections = {
        "summary": _summary(about, details, quality),
        "comparison": comparison and _comparison(comparison),
        "network": {"drawn": len(about.network.edges), "signed": bool(about.network.sign.any())},
        "reading": reading and _reading(reading),
        "edges": _edges(about),
        "variables": _variables(about, quality),
        "trajectory": {"chart": "trace"} if has_trace else None,
        "certificate": _certificate(details),
        "quality": _quality(quality, about.model.n_variables),
        "settings": _settings(details),
    }
    return {name: section for name, section in sections.items() if section}


def _summary(
    about: ModelSummary, details: Mapping[str, Any], quality: Mapping[str, Any] | None
) -> Json:
    model, source = about.model, details.get("source")
    facts: Json = {"variables": model.n_variables, "edges": model.n_edges}
    facts["parameters"] = model.layout.n_parameters
    if isinstance(source, Mapping):
        facts |= {name: x for name, x in source.items() if isinstance(x, str | int | float)}
    if quality and "n_rows" in quality:
        facts.setdefault("rows", quality["n_rows"])
    if alone := int((about.degree == 0).sum()):
        facts["variables without an edge"] = alone
    hubs = [v for v in about.by_degree(5) if about.degree[v] > 1]
    return {"facts": facts, "hubs": [(model.names[v], int(about.degree[v])) for v in hubs]}


def _edges(about: ModelSummary) -> Json | None:
    """Return the strongest edges with their columns and interaction tables."""
    if not about.model.n_edges:
        return None
    columns = about.attributes.values()
    edges = [
        {"table": about.table(which), "cells": [values[which] for values in columns]}
        for which in about.order[: LIMITS.edges].tolist()
    ]
    return {"heads": ["edge", *about.attributes], "edges": edges, "opened": LIMITS.opened}


def _variables(about: ModelSummary, quality: Mapping[str, Any] | None) -> Json:
    model, counts = about.model, quality or {}
    missing, n_rows = counts.get("missing", {}), counts.get("n_rows", 0)
    rows = []
    for v in about.by_degree(LIMITS.variables):
        entry = model.schema[v]
        numbers: list[tuple[float, str | None]]  # with a text if it is not the number's
        numbers = [(int(about.degree[v]), None), (float(about.total[v]), None)]
        numbers.append((entry.n_states, None))
        if missing and n_rows:
            share = float(missing.get(entry.name, 0)) / float(n_rows)
            numbers.append((share, f"{share:.1%}"))
        rows.append({"entry": entry, "numbers": numbers, "shares": about.likeliest(v, 6)})
    heads = ["variable", "kind", "edges", "strength", "categories"]
    heads += ["missing"] if missing and n_rows else []
    heads += [] if about.marginals is None else ["probabilities"]
    return {"heads": heads, "rows": rows, "note": about.marginals_note}


def _certificate(details: Mapping[str, Any]) -> Json | None:
    """Return what was checked at the end of the search, and the result."""
    certificate, shares = details.get("certificate"), details.get("shares")
    if not certificate:
        return None
    facts = dict(certificate) if isinstance(certificate, Mapping) else {"text": certificate}
    matched = shares.get("text") if isinstance(shares, Mapping) else None
    return {"text": facts.pop("text", None), "shares": matched, "facts": dict(_flat(facts))}


def _quality(quality: Mapping[str, Any] | None, n_variables: int) -> Json | None:
    """Return missing cells, rare categories and omitted columns."""
    if not quality:
        return None
    missing, n_rows = dict(quality.get("missing", {})), int(quality.get("n_rows", 0))
    cells = sum(int(count) for count in missing.values())
    rare = [
        (entry["variable"], entry["category"], int(entry["count"]))
        for entry in quality.get("rare", ())[: LIMITS.rows]
    ]
    most = sorted(missing.items(), key=lambda item: -int(item[1]))[: LIMITS.rows]
    return {
        "n_rows": n_rows,
        "n_missing": cells,
        "share": cells / (n_rows * n_variables) if n_rows and n_variables else 0.0,
        "missing": most,
        "rare": rare,
        "rare_below": int(quality.get("rare_below", 10)),
        "n_rare": int(quality.get("n_rare", len(rare))),
        "dropped": list(dict(quality.get("dropped") or {}).items()),
        "notes": list(quality.get("notes", ())),
    }


def _settings(details: Mapping[str, Any]) -> Json:
    """Return everything needed to repeat the run."""
    settings, versions = details.get("settings") or {}, details.get("versions")
    if not isinstance(settings, Mapping):
        settings = {"settings": settings}
    run = {key: value for key, value in details.items() if key not in _IN_OTHER_SECTIONS}
    note = f"Versions of the run; edgegraft {__version__} wrote this page."
    if not isinstance(versions, Mapping):
        versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
        versions |= {"edgegraft": __version__, "python": platform.python_version()}
        note = "Versions that wrote this page."
    parts = {"Settings": settings, "Run": run, "Versions": versions}
    return {"facts": {name: dict(_flat(part)) for name, part in parts.items()}, "note": note}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values, nested dicts included."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} · ")
        else:
            yield f"{prefix}{key}", value


def _comparison(comparison: Comparison) -> Json:
    """Return the edges and variables that differ between groups."""
    by = "permutations of rows between groups" if comparison.n_permutations else "tests of edges"
    edges = ["first", "second", *(f"effect_{name}" for name in comparison.groups)]
    edges += ["difference", "p_value", "q_value"]
    variables = ["name", "n_edges", "n_different", "p_value", "q_value"]
    sizes = zip(comparison.groups, comparison.sizes, strict=True)
    facts = [
        ("groups", ", ".join(f"{name} ({size:,} rows)" for name, size in sizes)),
        ("p-value of equal networks", f"{comparison.p_value:.3g}, by {by}"),
        (
            "edges that differ",
            f"{comparison.n_different:,} of {len(comparison.edges['first']):,} pairs",
        ),
    ]
    return {
        "facts": facts,
        "edges": _table("Edges by p-value", comparison.edges, edges),
        "variables": _table("Variables", comparison.variables, variables),
    }


def _reading(reading: NetworkReading) -> Json:
    """Return centrality, predictability, communities and stability of a network."""
    names = ["name", "community", "n_edges", "strength", "strength_low", "strength_high"]
    names += ["influence", "bridge", "membership_stability"]
    names += ["accuracy", "baseline_accuracy", "explained", "r2"]
    names += [name for name in reading.variables if name.startswith("community_")]
    names += [name for name in ("held_accuracy", "held_explained") if name in reading.variables]
    strongest = np.argsort(-reading.variables["strength"], kind="stable")
    edges = ["first", "second", "effect", "low", "high"]
    edges += [name for name in ("q_value", "replication_probability") if name in reading.edges]
    content = {
        "variables": _table("Variables by strength", reading.variables, names, strongest),
        "edges": _table("Edges with intervals of 95 %", reading.edges, edges),
        "coefficient": reading.coefficient,
        "absent": None,
    }
    if reading.absent:
        title = "Pairs without an edge, with the largest effect that the rows allow"
        columns = ["first", "second", "p_value", "effect_upper_bound"]
        order = np.argsort(reading.absent["effect_upper_bound"], kind="stable")
        content["absent"] = _table(title, reading.absent, columns, order)
    return content


def _table(
    title: str,
    columns: Mapping[str, NDArray[Any]],
    names: list[str],
    order: Integers | None = None,
) -> Json:
    """Return some columns as a table, its first rows if there are many."""
    n = len(columns[names[0]])
    order = np.arange(n) if order is None else order
    title += f" ({LIMITS.rows} of {n:,})" if n > LIMITS.rows else ""
    rows = [[columns[name][k] for name in names] for k in order[: LIMITS.rows]]
    return {"title": title, "heads": names, "rows": rows}
