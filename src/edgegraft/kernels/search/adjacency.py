"""Pairs chosen by the variables that they share: greedy matchings, and closed triangles."""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def greedy_matching(edges, order, used, out):
    """Write those of ``edges[order]`` that touch no edge chosen before; return how many.

    `used` has one False for each variable.
    """
    count = 0
    for k in order:
        i, j = edges[k, 0], edges[k, 1]
        if not used[i] and not used[j]:
            used[i] = True
            used[j] = True
            out[count] = k
            count += 1
    return count


@kernel
def wedges(start, other, max_degree, out):
    """Write the pairs of neighbours of every variable of at most `max_degree`; return how many.

    Neighbours ascend within a variable. Pairs are ids ``a * n + b`` and repeat where several
    variables lie between; with an empty `out` they are only counted.
    """
    n = start.shape[0] - 1
    count = 0
    for middle in range(n):
        first, last = start[middle], start[middle + 1]
        if last - first > max_degree:
            continue
        for x in range(first, last):
            for y in range(x + 1, last):
                if count < out.shape[0]:
                    out[count] = np.int64(other[x]) * n + other[y]
                count += 1
    return count
