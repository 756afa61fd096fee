"""Random numbers for kernels: one xoshiro256++ stream for each chain.

The state of ``c`` streams is a ``(4, c)`` uint64 array, one column per stream, so that a step of
all streams is one vectorised loop. What a stream yields depends on its own column alone: results
do not change with the number of threads or with how chains are put into blocks. The generator is
that of Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2021).
"""

from __future__ import annotations

import numpy as np

from edgegraft.kernels.compiler import kernel

_ULP = 2.0**-53


@kernel
def fill_uniform(streams, out):
    """Advance every stream one step; ``out[c]`` is uniform on [0, 1) with 53 random bits."""
    for c in range(out.shape[0]):
        s0, s1, s2, s3 = streams[0, c], streams[1, c], streams[2, c], streams[3, c]
        mixed = s0 + s3
        mixed = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + s0
        shifted = s1 << np.uint64(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
        streams[0, c], streams[1, c], streams[2, c], streams[3, c] = s0, s1, s2, s3
        out[c] = (mixed >> np.uint64(11)) * _ULP
