"""Products and sums of tables over nested sets of variables, without stored index maps.

Tables are mixed-radix arrays whose axes follow one global order, so a table over a subset of a
clique's variables meets the clique's table in alternating groups of axes,

    clique = [ ... | absent | shared | absent | shared ],

the last group being shared. A group is one axis of the walk: neighbouring axes of one kind are
merged, the two innermost groups are plain loops, and only the rest is counted like an odometer.
"""

from typing import NamedTuple

import numpy as np

from edgegraft.kernels.compiler import kernel


class Walk(NamedTuple):
    """How a table's cells meet those of a smaller one, innermost group first."""

    size: np.ndarray  # int64, cells of a group
    stride: np.ndarray  # int64, how far a step of the group moves in the smaller table
    counter: np.ndarray  # int64, the odometer
    groups: np.ndarray  # int64 (1,)


@kernel
def new_walk(max_axes):
    """Return a walk of tables of at most so many axes, to be planned again and again."""
    return Walk(
        np.empty(max_axes, np.int64),
        np.empty(max_axes, np.int64),
        np.zeros(max_axes, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def plan(walk, own, scope, part, states):
    """Plan the walk of a table over ``scope + [own]`` beside one over ``part + [own]``.

    `part` is a subsequence of `scope`.
    """
    cells = states[own]
    walk.size[0] = cells
    walk.stride[0] = 1
    group = 0
    shared = True
    last = part.shape[0] - 1
    for at in range(scope.shape[0] - 1, -1, -1):
        s = states[scope[at]]
        is_shared = last >= 0 and part[last] == scope[at]
        if is_shared == shared:
            walk.size[group] *= s
        else:
            group += 1
            walk.size[group] = s
            walk.stride[group] = cells if is_shared else 0
            shared = is_shared
        if is_shared:
            cells *= s
            last -= 1
    walk.groups[0] = group + 1


@kernel
def _advance(walk, position):
    """Step the odometer; return the new position in the smaller table, -1 at the end."""
    for group in range(2, walk.groups[0]):
        position += walk.stride[group]
        walk.counter[group] += 1
        if walk.counter[group] < walk.size[group]:
            return position
        position -= walk.stride[group] * walk.size[group]
        walk.counter[group] = 0
    return -1


@kernel
def spread(walk, small, large):
    """Copy the smaller table to every place of the larger that it meets."""
    run = walk.size[0]
    times = walk.size[1] if walk.groups[0] > 1 else 1
    cell = 0
    position = 0
    while position >= 0:
        source = small[position : position + run]
        for _ in range(times):
            target = large[cell : cell + run]
            for t in range(run):
                target[t] = source[t]
            cell += run
        position = _advance(walk, position)


@kernel
def multiply(walk, small, large):
    """Multiply the larger table by the smaller."""
    run = walk.size[0]
    times = walk.size[1] if walk.groups[0] > 1 else 1
    cell = 0
    position = 0
    while position >= 0:
        source = small[position : position + run]
        for _ in range(times):
            target = large[cell : cell + run]
            for t in range(run):
                target[t] *= source[t]
            cell += run
        position = _advance(walk, position)


@kernel
def add(walk, small, large):
    """Add the smaller table to the larger."""
    run = walk.size[0]
    times = walk.size[1] if walk.groups[0] > 1 else 1
    cell = 0
    position = 0
    while position >= 0:
        source = small[position : position + run]
        for _ in range(times):
            target = large[cell : cell + run]
            for t in range(run):
                target[t] += source[t]
            cell += run
        position = _advance(walk, position)


@kernel
def reduce(walk, large, small):
    """Sum the larger table over the axes that the smaller does not have."""
    small[:] = 0.0
    run = walk.size[0]
    times = walk.size[1] if walk.groups[0] > 1 else 1
    cell = 0
    position = 0
    while position >= 0:
        target = small[position : position + run]
        for _ in range(times):
            source = large[cell : cell + run]
            for t in range(run):
                target[t] += source[t]
            cell += run
        position = _advance(walk, position)
