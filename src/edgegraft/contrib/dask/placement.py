"""Which worker answers for which partition: where it lies, as long as the load is even."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ANYWHERE = ""


def place(holders: Sequence[Sequence[str]], threads: Mapping[str, int]) -> dict[str, list[int]]:
    """Return the partitions that each worker is asked for.

    Nobody gets more than a fair share by threads. What a worker holds beyond that, and what
    nobody holds, goes to the least loaded, which then holds it for later questions as well.

    Parameters
    ----------
    holders : sequence of sequences of str
        The workers that hold each partition; none for one that has been lost.
    threads : mapping of str to int
        The workers that may be asked. Without one, everything is asked of whoever will come.

    Examples
    --------
    >>> place([["a"], ["a"], ["a"], ["b"]], {"a": 1, "b": 1})
    {'a': [0, 1], 'b': [2, 3]}
    >>> place([[], ["b"]], {})
    {'': [0, 1]}
    """
    if not threads:
        return {ANYWHERE: list(range(len(holders)))} if holders else {}
    total = sum(threads.values())
    share = {name: -(-len(holders) * n // total) for name, n in threads.items()}
    placed: dict[str, list[int]] = {name: [] for name in sorted(threads)}
    left = []
    # Those with the fewest holders first: the others have more places to go to.
    for k in sorted(range(len(holders)), key=lambda k: len(holders[k])):
        able = [name for name in holders[k] if name in share and len(placed[name]) < share[name]]
        if able:
            placed[min(able, key=lambda name: (len(placed[name]) / threads[name], name))].append(k)
        else:
            left.append(k)
    for k in left:
        placed[min(placed, key=lambda name: (len(placed[name]) / threads[name], name))].append(k)
    return {name: sorted(found) for name, found in placed.items() if found}
