"""What is kept of a search that has not ended by itself, and the command that goes on with it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from edgegraft.cli.request import Request
from edgegraft.learn import Discovery, Event, Growth
from edgegraft.learn.checkpoint import save
from edgegraft.learn.steps import restart


class RequestKeeper:
    """An observer that keeps a request beside its checkpoint, not before there is one.

    Parameters
    ----------
    request : Request
    checkpoint : Path
    when : {"start", "checkpoint"}
        Where a search goes on its checkpoint has been found to fit by the start.
    """

    def __init__(self, request: Request, checkpoint: Path, when: str) -> None:
        self._request = request
        self._checkpoint = checkpoint
        self._when = when

    def on_event(self, event: Event, growth: Growth) -> None:
        """Write it at that kind of event."""
        if event.kind == self._when:
            self._request.write(self._checkpoint)


def keep(request: Request, checkpoint: Path, found: Discovery) -> None:
    """Write a checkpoint of the search as it was left, and its request."""
    restart(found.growth)  # checkpoints hold what a restart was given
    save(checkpoint, found.growth)
    request.write(checkpoint)


def out_of_budget(found: Discovery) -> bool:
    """Whether a budget that `resume` can enlarge ended the search."""
    return found.growth.reason is not None and found.growth.reason.resumable


def after_interruption(checkpoint: Path | None) -> str:
    """Say what the model of an interrupted search is, and how to go on."""
    if checkpoint is None:
        return (
            "It is that of an interrupted search. To be able to go on where a search was left, "
            "learn with --checkpoint FILE."
        )
    return f"It is that of an interrupted search. Go on with:\n  {resume_command(checkpoint)}"


def after_budget(request: Request, checkpoint: Path) -> str:
    """Say how to go on with twice the budgets."""
    more = ""
    if request.max_edges is not None:
        more += f" --max-edges {2 * max(1, request.max_edges)}"
    if request.max_time is not None:
        more += f" --max-time {2 * max(1.0, request.max_time):g}"
    return f"Go on with a larger budget:\n  {resume_command(checkpoint)}{more}"


def resume_command(checkpoint: Path) -> str:
    """Return the command that goes on from a checkpoint."""
    return f"edgegraft resume {quote(str(checkpoint))} --force"
