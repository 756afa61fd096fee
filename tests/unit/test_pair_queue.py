"""The queue of pairs against sorting everything."""

import numpy as np
import pytest

from edgegraft.core.adjacency import PairMap
from edgegraft.grafting.pair_queue import PairQueue

N = 400


class PlainQueue:
    """All keys in a dictionary; equal keys in the order of a full queue of the same salt."""

    def __init__(self, salt):
        order = PairQueue()
        order.salt = salt
        order.add(np.arange(N * N), np.zeros(N * N))
        self.tie = np.argsort(order.take(N * N, None))
        self.keys = {}

    def take(self, k, below):
        order = sorted(self.keys, key=lambda pair: (self.keys[pair], self.tie[pair]))
        taken = [pair for pair in order if below is None or self.keys[pair] < below][:k]
        for pair in taken:
            del self.keys[pair]
        return taken


@pytest.mark.parametrize("digits", [0, 1, 15])
def test_what_is_taken_is_what_sorting_gives(digits):
    rng = np.random.default_rng(digits)
    queue, plain = PairQueue(), PlainQueue(np.uint64(7))
    queue.salt = np.uint64(7)
    for _ in range(20):
        fresh = np.setdiff1d(rng.integers(0, N * N, 1500), list(plain.keys))
        keys = rng.normal(size=len(fresh)).round(digits)
        queue.add(fresh, keys)
        plain.keys |= dict(zip(fresh.tolist(), keys.tolist(), strict=True))
        below = None if rng.random() < 0.5 else rng.normal(-1)
        k = int(rng.integers(0, 1800))
        assert queue.take(k, below).tolist() == plain.take(k, below)
        if rng.random() < 0.3:
            marked = rng.random(N) < 0.2
            queue.lower(marked, 0.25)
            for pair in plain.keys:
                plain.keys[pair] = plain.keys[pair] - 0.25 * marked[pair // N]
                plain.keys[pair] = plain.keys[pair] - 0.25 * marked[pair % N]
        if rng.random() < 0.3:
            gone = rng.choice(list(plain.keys), 20, replace=False)
            queue.discard(gone)
            for pair in gone.tolist():
                del plain.keys[pair]
        assert len(queue) == len(plain.keys)
    ids, keys = queue.all()
    assert dict(zip(ids.tolist(), keys.tolist(), strict=True)) == plain.keys


def test_the_order_of_equal_keys_is_a_random_permutation():
    salts = np.random.default_rng(0).integers(0, 2**64, 2, dtype=np.uint64)

    def order(salt):
        queue = PairQueue()
        queue.salt = salt
        queue.add(np.arange(5000), np.zeros(5000))
        return queue.take(5000, None)

    assert np.array_equal(np.sort(order(salts[0])), np.arange(5000))
    assert np.array_equal(order(salts[0]), order(salts[0]))
    # The correlation of random permutations has the deviation 1 / sqrt(5000).
    for one, other in ((order(salts[0]), order(salts[1])), (order(salts[0]), np.arange(5000))):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.07


def test_what_is_not_discarded_stays_as_it_came():
    found = PairQueue()
    assert len(found.all()[0]) == 0
    found.add(np.array([3, 1]), np.array([0.3, 0.1]))
    found.add(np.array([2]), np.array([0.2]))
    found.discard(np.array([1, 9]))
    assert [part.tolist() for part in found.clear()] == [[3, 2], [0.3, 0.2]]
    assert len(found) == 0


def test_maps_of_pairs_are_dictionaries():
    rng = np.random.default_rng(0)
    found, plain = PairMap(), {}
    for value in range(30):
        ids = rng.integers(0, 20_000, 700)
        before = found.put(ids, value).tolist()
        for pair, was in zip(ids.tolist(), before, strict=True):
            assert was == plain.get(pair, -1)
            plain[pair] = value
        assert len(found) == len(plain)
    asked = np.arange(20_000)
    assert found.get(asked).tolist() == [plain.get(pair, -1) for pair in asked.tolist()]
    assert found.with_value(29).tolist() == sorted(p for p, value in plain.items() if value == 29)
    assert PairMap(np.array(list(plain))).with_value().tolist() == sorted(plain)
