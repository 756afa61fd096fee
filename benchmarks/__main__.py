"""Run all or some benchmarks, and rewrite their sections of the pages that hold them.

    python -m benchmarks [NAME ...] [--scale 0.1] [--dry-run]

A section is between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; the text around it is kept.
`--scale` reduces the work for a quick look and never writes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
from datetime import date
from pathlib import Path

import numba
import numpy as np
from numba import config

from benchmarks.rows import as_markdown

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = {
    name: page
    for page in (DOCS / "benchmarks.md", DOCS / "recovery.md")
    for name in re.findall(r"<!-- begin (\w+) -->", page.read_text(encoding="utf-8"))
}
NAMES = list(PAGES)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--dry-run", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no section for {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in options.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        # A module with other columns formats its own table.
        show = getattr(module, "as_markdown", as_markdown)
        text = f"{show(module.run(options.scale))}\n\n{machine()}"
        print(f"## {name}\n\n{text}\n", flush=True)
        if options.scale == 1.0 and not options.dry_run:
            write_section(name, f"`python -m benchmarks {name}`\n\n{text}")


def machine() -> str:
    """Return one line with the date, the machine and the versions of the measurement."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        processor = found.group(1) if found else processor
    return (
        f"*{date.today().isoformat()}; {processor} ({config.CPU_NAME or llvm_name()}), "
        f"{os.cpu_count()} cores; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"numba {numba.__version__}.*"
    )


def llvm_name() -> str:
    """Return the compiler's name for the processor."""
    from llvmlite import binding

    return str(binding.get_host_cpu_name())


def write_section(name: str, text: str) -> None:
    """Replace the section of one benchmark."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    page = PAGES[name].read_text(encoding="utf-8")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGES[name].write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
