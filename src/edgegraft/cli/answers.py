"""Answers of a model, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from edgegraft.cli.console import say
from edgegraft.cli.wording import cell
from edgegraft.model import NodeMarginals, PairwiseMRF

Json = dict[str, Any]


def ask_marginals(
    model: PairwiseMRF, given: Mapping[str, Any], of: Sequence[str], engine: str, seed: int
) -> Json:
    """Return the probabilities of the categories of variables, with evidence and without."""
    found = model.marginals(given, engine=engine, random_state=seed)
    before = model.marginals(engine=engine, random_state=seed) if given else found
    return {
        "given": dict(given),
        "probabilities": {name: _states(model, found, before, given, name) for name in of},
        "engine": found.engine.name,
        "exact": found.engine.exact,
        "converged": bool(found.info.converged),
    }


def _states(
    model: PairwiseMRF,
    found: NodeMarginals,
    before: NodeMarginals,
    given: Mapping[str, Any],
    name: str,
) -> list[Json]:
    """Return what is known of each category; a list, because categories need not be text."""
    categories = model.schema[name].categories
    if name in given:
        now = [float(category == given[name]) for category in categories]
    else:
        now = found.array(name).tolist()
    return [
        {"category": category, "probability": p, "without_evidence": q}
        for category, p, q in zip(categories, now, before.array(name).tolist(), strict=True)
    ]


def show_marginals(console: Console, found: Json) -> None:
    """Show probabilities as a table, and who worked them out."""
    given = bool(found["given"])
    table = Table(title=_title("Probabilities", found["given"]), title_justify="left")
    table.add_column("variable")
    table.add_column("category")
    table.add_column("probability", justify="right")
    if given:
        table.add_column("without evidence", justify="right")
        table.add_column("change", justify="right")
    for name, states in found["probabilities"].items():
        for k, state in enumerate(states):
            p, q = state["probability"], state["without_evidence"]
            cells = [cell(name) if k == 0 else "", cell(state["category"]), f"{p:.4f}"]
            table.add_row(*cells, *([f"{q:.4f}", f"{p - q:+.4f}"] if given else []))
        table.add_section()
    console.print(table, highlight=False)
    trust = "exact" if found["exact"] else "an approximation"
    if not found["converged"]:
        trust += " that did not converge"
    say(console, f"Worked out by the engine '{found['engine']}': {trust}.")


def ask_state(model: PairwiseMRF, given: Mapping[str, Any], of: Sequence[str], engine: str) -> Json:
    """Return the likeliest state, as far as it was asked for."""
    found = model.map(given, engine=engine)
    return {
        "given": dict(given),
        "state": {name: found[name] for name in of},
        "exact": found.exact,
    }


def show_state(console: Console, found: Json) -> None:
    """Show a state as a table."""
    table = Table(title=_title("Likeliest joint state", found["given"]), title_justify="left")
    table.add_column("variable")
    table.add_column("category")
    for name, category in found["state"].items():
        table.add_row(cell(name), cell(category))
    console.print(table, highlight=False)
    sure = "No state is likelier." if found["exact"] else "The best that was found."
    say(console, f"{sure} (All variables together; each alone may prefer another category.)")


def _title(what: str, given: Mapping[str, Any]) -> str:
    evidence = ", ".join(f"{cell(name)} = {cell(label)}" for name, label in given.items())
    return f"{what}, given {evidence}" if evidence else what
