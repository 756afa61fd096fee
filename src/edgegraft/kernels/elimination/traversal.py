"""Walks of graphs and forests, without recursion."""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def depth_first(parent):
    """Return the order of a forest's nodes in which every subtree is contiguous, root last.

    `parent` names a later node, or -1. Siblings keep their order.
    """
    n = parent.shape[0]
    subtree = np.ones(n, np.int64)
    for k in range(n):
        if parent[k] >= 0:
            subtree[parent[k]] += subtree[k]
    free = np.zeros(n, np.int64)  # first place that is not taken in a node's stretch
    order = np.empty(n, np.int64)
    taken = n
    for k in range(n - 1, -1, -1):
        if parent[k] < 0:
            taken -= subtree[k]
            free[k] = taken
        else:
            free[k] = free[parent[k]]
            free[parent[k]] += subtree[k]
        order[free[k] + subtree[k] - 1] = k
    return order


@kernel
def sweep_levels(start, neighbour, roots):
    """Return the distance of each vertex from a far end of its component.

    The end is the vertex found last from the first of `roots` (a permutation) in the component.
    """
    n = roots.shape[0]
    level = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    for root in roots:
        if level[root] < 0:
            reached = _breadth_first(root, start, neighbour, level, queue)
            end = queue[reached - 1]
            for x in range(reached):
                level[queue[x]] = -1
            _breadth_first(end, start, neighbour, level, queue)
    return level


@kernel
def _breadth_first(root, start, neighbour, level, queue):
    queue[0] = root
    level[root] = 0
    reached = 1
    done = 0
    while done < reached:
        v = queue[done]
        done += 1
        for x in range(start[v], start[v + 1]):
            if level[neighbour[x]] < 0:
                level[neighbour[x]] = level[v] + 1
                queue[reached] = neighbour[x]
                reached += 1
    return reached
