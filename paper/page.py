"""Results on a Markdown page: the section of each experiment between two markers.

The section of NAME is between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; the text around
it, which interprets the results, is kept. Pictures go to ``images/paper`` beside the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shutil import copyfile

from edgegraft.core.atomic import replace_file
from edgegraft.errors import FileFormatError
from paper.experiment import Experiment, Row
from paper.runner import Outcome

_PICTURES = Path("images") / "paper"


class Page:
    """A page with sections.

    Parameters
    ----------
    path : path
    names : iterable of str
        Experiments whose sections the page must have.

    Raises
    ------
    FileFormatError
        If a section is missing.
    """

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8")
        for name in sorted(names):
            _parts(text, name, path)

    def write(self, experiment: Experiment, done: Outcome, quick: bool) -> None:
        """Replace the section and the picture of an experiment."""
        picture = _PICTURES / f"{experiment.name}.png"
        (self.path.parent / _PICTURES).mkdir(parents=True, exist_ok=True)
        copyfile(done.figure, self.path.parent / picture)
        section = "\n\n".join(
            [
                f"`python -m paper {experiment.name}{' --quick' if quick else ''}`"
                + (": **small sizes, to be replaced by a full run.**" if quick else ""),
                experiment.table(done.rows),
                f"![{experiment.claim}]({picture.as_posix()})",
                f"*{_spent(done)} {'; '.join(map(_machine, done.machines))}.*",
            ]
        )
        text = self.path.read_text(encoding="utf-8")
        before, after = _parts(text, experiment.name, self.path)
        replace_file(self.path, f"{before}\n{section}\n{after}")


def _parts(text: str, name: str, path: Path) -> tuple[str, str]:
    """Return the text before and after a section, including the markers."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise FileFormatError(f"{path}: expected one '{begin}' and, after it, one '{end}'")
    before, _, rest = text.partition(begin)
    return before + begin, end + rest.partition(end)[2]


def _spent(done: Outcome) -> str:
    runs = "1 run" if done.n_cells == 1 else f"{done.n_cells} runs"
    spent = f"{runs}, {done.seconds:,.0f} s in total, including data and measurements."
    cores = int(str(done.machines[0]["cores"]))
    if done.load <= cores + 1:
        return spent
    # Times mean little then, and searches are cut off early.
    return f"{spent} Other work ran on the machine: load {done.load:.0f} on {cores} cores."


def _machine(machine: Row) -> str:
    return (
        f"{machine['date']}; {machine['processor']}, {machine['cores']} cores; Python "
        f"{machine['python']}, NumPy {machine['numpy']}, numba {machine['numba']}, source "
        f"{machine['source']}"
    )
