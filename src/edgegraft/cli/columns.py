"""What was found in a table and what was done with each column."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from edgegraft.cli.console import say
from edgegraft.cli.wording import cell, counted
from edgegraft.table import PackedTable, Variable
from edgegraft.table.store import PlaneStore

AnyTable = PackedTable | PlaneStore
_SHOWN = 25
_LABELS = 4
_DOUBTFUL = (" ", "?", "-", "--", ".", "*")  # often written for a missing cell, and not read as one


def describe_columns(table: AnyTable) -> list[dict[str, Any]]:
    """Return a description of each column, for programs."""
    return [
        {
            "name": variable.name,
            "type": variable.dtype,
            "states": variable.n_states,
            "missing": int(missing),
            "binned": variable.binned,
        }
        for variable, missing in zip(table.schema, table.n_missing, strict=True)
    ]


def show_columns(console: Console, table: AnyTable) -> None:
    """Show the columns, those that need a word first where there are many."""
    shown = Table(title=f"{counted(table.n_variables, 'column')} of {counted(table.n_rows, 'row')}")
    shown.title_justify = "left"
    shown.add_column("column", overflow="fold")
    shown.add_column("states", justify="right")
    shown.add_column("missing", justify="right")
    shown.add_column("what they are", overflow="fold")
    order = sorted(range(table.n_variables), key=lambda i: not _remarkable(table, i))
    many = len(order) > _SHOWN
    for i in order[:_SHOWN] if many else range(table.n_variables):
        variable, missing = table.schema[i], int(table.n_missing[i])
        shown.add_row(
            cell(variable.name),
            f"{variable.n_states:,}",
            f"{missing:,} ({missing / table.n_rows:.1%})" if missing else "",
            _states(variable),
        )
    console.print(shown, highlight=False)
    if many:
        say(console, f"... and {len(order) - _SHOWN:,} more columns.")
    for token in _DOUBTFUL:
        count = sum(token in variable.categories for variable in table.schema)
        if count:
            say(
                console,
                f"'{token}' is a category of {counted(count, 'column')}: if it means missing, "
                f"add --missing '{token}'.",
            )


def _remarkable(table: AnyTable, i: int) -> bool:
    variable = table.schema[i]
    return variable.binned or variable.n_states == 1 or bool(table.n_missing[i])


def _states(variable: Variable) -> str:
    labels = ", ".join(cell(label, 30) for label in variable.categories[:_LABELS])
    if variable.n_states > _LABELS:
        labels += ", ..."
    if variable.binned:
        return f"numbers in {variable.n_states} bins: {labels}"
    if variable.n_states == 1:
        return f"constant, so without edges: {labels}"
    return labels
