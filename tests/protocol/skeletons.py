"""The skeletons of the documentation: files to copy when a part is added."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "skeletons"


@cache
def skeleton(name):
    """Return a skeleton as a module, whose classes can be pickled."""
    spec = importlib.util.spec_from_file_location(f"their_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
