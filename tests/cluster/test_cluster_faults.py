"""Workers and schedulers that die or hang: counts stay exact, and nothing waits for ever."""

from __future__ import annotations

from threading import Event, Thread
from time import sleep

import numpy as np
import pytest

import edgegraft as eg
from edgegraft.core import all_pairs
from edgegraft.errors import ClusterError
from edgegraft.ingest import pack
from tests.cluster.conftest import assert_same_counts, counts_of, cut
from tests.cluster.machines import machines

pytestmark = pytest.mark.slow


def slowly(parts, seconds):
    """Partitions that take their time."""
    from dask import delayed

    def wait_for(part):
        import time

        time.sleep(seconds)
        return part

    return [delayed(wait_for)(part) for part in parts]


def wait_and_count(seconds):
    """Work that takes its time, and that workers need not import."""

    def work(block):
        import time

        time.sleep(seconds)
        return block.n_rows

    return work


def during(action, after):
    """Do something to a cluster while the test goes on."""

    def act():
        sleep(after)
        action()

    thread = Thread(target=act)
    thread.start()
    return thread


def test_a_worker_killed_while_packing_is_survived(frame):
    with machines(3) as (cluster, client):
        killer = during(lambda: cluster.kill("w1"), 0.5)
        counts = counts_of(client, slowly(cut(frame, 9), 0.3))
        killer.join()
        assert_same_counts(counts, eg.PairCounts(pack(frame)))


def test_a_worker_killed_while_counting_is_survived(frame):
    with machines(3) as (cluster, client):
        counts = counts_of(client, cut(frame, 9))
        killer = during(lambda: cluster.kill("w2"), 0.5)
        assert sum(counts.rows.map(wait_and_count(0.4))) == len(frame)
        killer.join()
        assert_same_counts(counts, eg.PairCounts(pack(frame)))


def test_ten_workers_killed_at_random_change_nothing(frame):
    rng = np.random.default_rng(0)
    expected = eg.PairCounts(pack(frame)).pairs(all_pairs(10)).values
    with machines(3) as (cluster, client):
        counts = counts_of(client, slowly(cut(frame, 6), 0.05))
        done = Event()

        def rage():
            for _ in range(10):
                cluster.add_worker()
                client.wait_for_workers(2, timeout=60)
                sleep(float(rng.uniform(0.0, 0.5)))
                cluster.kill(str(rng.choice(cluster.workers())))
            done.set()

        killer = Thread(target=rage)
        killer.start()
        n_batches = 0
        while not done.is_set() or n_batches < 3:
            np.testing.assert_array_equal(counts.pairs(all_pairs(10)).values, expected)
            n_batches += 1
        killer.join()


def test_a_new_worker_is_of_use(frame):
    with machines(1) as (cluster, client):
        counts = counts_of(client, cut(frame, 4))
        cluster.add_worker()
        client.wait_for_workers(2, timeout=60)
        cluster.kill("w1")
        assert_same_counts(counts, eg.PairCounts(pack(frame)))


def test_a_lost_scheduler_is_an_error_that_says_how_to_go_on(frame):
    with machines(2) as (cluster, client):
        counts = counts_of(client, cut(frame, 4))
        killer = during(lambda: cluster.kill("scheduler"), 0.3)
        with pytest.raises(ClusterError, match=r"lost.*checkpoint=.*resume_discovery"):
            counts.rows.map(wait_and_count(5.0))
        killer.join()
        with pytest.raises(ClusterError, match=r"lost.*checkpoint=.*resume_discovery"):
            counts.pairs([(0, 1)])


def test_a_cluster_without_workers_is_an_error(frame):
    with machines(1) as (cluster, client):
        counts = counts_of(client, cut(frame, 2), wait_for_workers=2.0)
        cluster.kill("w1")
        with pytest.raises(ClusterError, match="no worker for 2 seconds"):
            counts.pairs([(0, 1)])


def test_a_partition_that_kills_its_workers_is_named(frame):
    from dask import delayed

    def kill(part):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    parts = cut(frame, 3)
    with machines(2) as (cluster, client):
        done = Event()

        def supply():
            while not done.is_set():
                if len(cluster.workers()) < 2:
                    cluster.add_worker()
                sleep(0.05)

        helper = Thread(target=supply)
        helper.start()
        try:
            with pytest.raises(ClusterError, match="again and again over partition 1"):
                counts_of(
                    client, [delayed(parts[0]), delayed(kill)(parts[1])], schema=pack(frame).schema
                )
        finally:
            done.set()
            helper.join()
