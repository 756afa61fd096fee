"""Store the golden results of the code that is imported.

    PYTHONPATH=path/to/old/src python -m tests.golden.make [--files] [CASE ...]

run in the root of the project; without names, all cases. The stored results are those of commit
71c4c98, the last one before issue 16. Rerun a case with the new code only if a change of its
result is the purpose, and say so in the changelog. ``--files`` writes the model file and the
packed table of `files/` again, which is right only with code that old releases had: they are
there to show that what a user holds still loads.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from time import process_time

import edgegraft
from tests.golden import answers, networks, sources  # noqa: F401 - they register their cases
from tests.golden.compare import plain
from tests.golden.registry import CASES, RESULTS, compute


def main(arguments: list[str]) -> None:
    """Store the results of the cases named, or of all."""
    say(f"results of {Path(edgegraft.__file__).parent}")
    if "--files" in arguments:
        answers.write_files()
    names = [name for name in arguments if not name.startswith("-")] or list(CASES)
    RESULTS.mkdir(exist_ok=True)
    for name in names:
        start = process_time()
        with tempfile.TemporaryDirectory() as folder:
            result = plain(compute(name, Path(folder)))
        path = RESULTS / f"{name}.json"
        path.write_text(json.dumps(result, indent=None, separators=(",", ":")) + "\n")
        say(f"{name:24} {process_time() - start:7.2f} s {path.stat().st_size:8,} bytes")


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
