"""Tests. Libraries are made to use one set of instructions, whatever the processor.

The last digits of OpenBLAS, of NumPy's functions and of compiled kernels depend on the instructions
that they choose for a processor, and a search can then take another way to the same network:
strengths differ within the tolerance of a fit, by up to 1e-3. The variables are read when NumPy and
numba are loaded for the first time, so they are set here, before any test imports them; child
processes inherit them. Shipped kernels, in tests of a wheel, are used as they are.
"""

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

_PROCESSOR = Path("/proc/cpuinfo")


def _ships_kernels() -> bool:
    found = find_spec("edgegraft")
    return bool(
        found and found.origin and (Path(found.origin).parent / "kernels/compiled").is_dir()
    )


if _PROCESSOR.exists() and " avx2 " in _PROCESSOR.read_text():
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
    if tuple(map(int, version("numpy").split(".")[:2])) >= (2, 4):  # which knows these by name
        os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "X86_V4 AVX512_ICL AVX512_SPR")
    if not _ships_kernels():
        os.environ.setdefault("NUMBA_CPU_NAME", "x86-64-v3")
        os.environ.setdefault("NUMBA_CPU_FEATURES", "")
