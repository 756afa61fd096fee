"""The candidate stream, compared with a dictionary of priorities and a few sets."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from edgegraft.errors import EdgeError
from edgegraft.grafting import CandidateStream

# Quarters add up without rounding, so that the sums of model and stream are equal.
priorities = st.integers(-12, 12).map(lambda quarter: quarter / 4)
seeds = st.integers(0, 2**32 - 1)
picks = st.lists(st.tuples(st.integers(0, 10**6), priorities), max_size=12)


class Model:
    """A dictionary of the state and the priority of every pair."""

    def __init__(self, n):
        self.pairs = {(i, j): ("unseen", 0) for i in range(n) for j in range(i + 1, n)}

    def of(self, *kinds):
        return {pair: key for pair, (kind, key) in self.pairs.items() if kind in kinds}

    def count(self, kind):
        return sum(k == kind for k, _ in self.pairs.values())


class StreamMachine(RuleBasedStateMachine):
    @initialize(n=st.integers(1, 14), seed=seeds)
    def start(self, n, seed):
        self.n = n
        self.stream = CandidateStream(n, seed)
        self.model = Model(n)
        self.all = sorted(self.model.pairs)

    def chosen(self, picks):
        """Draw distinct pairs and a number for each; every second pair is reversed."""
        if not self.all:
            return [], []
        numbers = {self.all[k % len(self.all)]: number for k, number in picks}
        edges = [pair[::-1] if k % 2 else pair for k, pair in enumerate(numbers)]
        return edges, list(numbers.values())

    def set(self, edges, kind, keys):
        for edge, key in zip(edges, keys, strict=True):
            self.model.pairs[tuple(sorted(edge))] = (kind, key)

    @rule(k=st.integers(0, 40))
    def draw(self, k):
        edges = self.stream.draw(k)
        available = self.model.of("queued", "unseen")
        assert len(edges) == min(k, len(available))
        for pair in map(tuple, edges.tolist()):
            assert available[pair] == min(available.values())
            ties = {p for p, key in available.items() if key == available[pair]}
            if self.model.pairs[pair][0] == "queued":
                assert not ties & set(self.model.of("unseen"))
            del available[pair]
            self.model.pairs[pair] = ("out", None)

    @rule(picks=picks)
    def freeze(self, picks):
        edges, offsets = self.chosen(picks)
        self.stream.freeze(edges, offsets)
        self.set(edges, "frozen", offsets)

    @rule()
    def refill(self):
        frozen = self.model.of("frozen")
        assert self.stream.refill() == len(frozen)
        for pair, offset in frozen.items():
            self.model.pairs[pair] = ("queued", offset)

    @rule(nodes=st.lists(st.integers(0, 13), max_size=6), by=st.sampled_from((0.0, 0.25, 1.0, 2.5)))
    def boost(self, nodes, by):
        hubs = {node % self.n for node in nodes}
        self.stream.boost(sorted(hubs), by)
        for pair, key in self.model.of("queued", "unseen").items():
            if by and hubs & set(pair):
                self.model.pairs[pair] = ("queued", key - by * len(hubs & set(pair)))

    @rule(picks=picks)
    def prioritise(self, picks):
        edges, keys = self.chosen(picks)
        taken = [
            (edge, key)
            for edge, key in zip(edges, keys, strict=True)
            if self.model.pairs[tuple(sorted(edge))][0] in ("queued", "unseen")
        ]
        assert self.stream.prioritise(edges, keys) == len(taken)
        for edge, key in taken:
            self.set([edge], "queued", [key])

    @rule(picks=picks)
    def remove(self, picks):
        edges, _ = self.chosen(picks)
        self.stream.remove(edges)
        self.set(edges, "out", [None] * len(edges))

    @rule(picks=picks)
    def restore(self, picks):
        edges, keys = self.chosen(picks)
        if all(self.model.pairs[tuple(sorted(edge))][0] == "out" for edge in edges):
            self.stream.restore(edges, keys)
            self.set(edges, "queued", keys)
        else:
            with pytest.raises(EdgeError, match="cannot be restored"):
                self.stream.restore(edges, keys)

    @rule(k=st.integers(0, 40))
    def copy(self, k):
        """A copy goes on as the stream does, and neither changes the other."""
        twin = deepcopy(self.stream)
        whole = deepcopy(self.stream).draw(k)
        parts = [twin.draw(k // 2), twin.draw(k - k // 2)]
        assert np.array_equal(whole, np.concatenate(parts))

    @invariant()
    def counts_agree(self):
        if hasattr(self, "stream"):
            assert self.stream.n_unseen == self.model.count("unseen")
            assert self.stream.n_prioritised == self.model.count("queued")
            assert self.stream.n_frozen == self.model.count("frozen")


StreamMachine.TestCase.settings = settings(
    max_examples=120,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStream = StreamMachine.TestCase
