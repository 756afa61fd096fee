"""Compiled inner loops: arrays in, arrays out.

Nothing here knows a name, a schema or a file. Every kernel is ``@njit(cache=True, nogil=True)``
with plain arrays (or NamedTuples of arrays) as arguments, so that a second process loads it from
disk and Python threads run it side by side.
"""

from edgegraft.kernels.freshness import discard_stale

discard_stale()
