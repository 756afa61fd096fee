"""The wheel of a platform: compiled kernels beside their sources.

Without the environment variable ``EDGEGRAFT_COMPILED`` the wheel is pure Python. With it, the wheel
holds the kernels of that folder (one subfolder per processor level, as ``python -m release dist``
writes them), is tagged with the Python and the platform that they are for, and requires the numba
that compiled them, because the kernels of another release would not be used.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):
    """Adds the compiled kernels, the tag and the pin of numba."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change what is built."""
        folder = os.environ.get("EDGEGRAFT_COMPILED")
        if not folder or self.target_name != "wheel" or version == "editable":
            return
        from importlib.metadata import version as version_of

        build_data["force_include"][folder] = "edgegraft/kernels/compiled"
        build_data["pure_python"] = False
        build_data["dependencies"].append(f"numba=={version_of('numba')}")
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        if sys.platform == "linux":  # kernels are linked by numba, which asks for no more than this
            build_data["tag"] = f"{python}-{python}-manylinux2014_{platform.machine()}"
        else:
            build_data["infer_tag"] = True
