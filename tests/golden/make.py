"""Store the golden results of the imported code.

    PYTHONPATH=path/to/old/src python -m tests.golden.make [--files] [CASE ...]

Run it in the root of the project; without names, it stores all cases. The stored results are those
of commit 71c4c98 (version 0.1.0.dev0), the last one before the packages were reorganised. Rerun a
case with new code only if its result is meant to change, and describe the change in the changelog.
``--files`` writes the model file and the packed table of `files/` again, which is correct only with
the code of an old release: they show that existing files of users still load.
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
    """Store the results of the named cases, or of all."""
    report(f"results of {Path(edgegraft.__file__).parent}")
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
        report(f"{name:24} {process_time() - start:7.2f} s {path.stat().st_size:8,} bytes")


def report(line: str) -> None:
    """Write a line and flush it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
