"""Tests. OpenBLAS is made to use one set of kernels, whatever the processor.

Its last digits depend on the kernels that it chooses for a processor, and a search can then take
another way to the same network: strengths differ within the tolerance of a fit, by up to 1e-3.
Stored results (`tests/golden`) are compared more closely. The variable is read when NumPy is loaded
for the first time, so it is set here, before any test imports it; child processes inherit it.
"""

import os
from pathlib import Path

_PROCESSOR = Path("/proc/cpuinfo")

if _PROCESSOR.exists() and " avx2 " in _PROCESSOR.read_text():
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
