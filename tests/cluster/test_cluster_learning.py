"""Networks learned on a cluster: the same for any number of workers, and after faults."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from threading import Thread
from time import sleep

import numpy as np
import pandas as pd
import pytest

import edgegraft as eg
from edgegraft.datasets import make_scale_free
from edgegraft.errors import ClusterError, DataError
from edgegraft.ingest import pack
from edgegraft.learn import Plan, discover, resume_discovery
from edgegraft.table import StoredRows
from tests.cluster.conftest import WHY, cut
from tests.cluster.machines import machines
from tests.cluster.test_cluster_counts import Parts

dd = pytest.importorskip("dask.dataframe", reason=WHY)
SAMPLE = 1500  # rows in memory, so that the last stage runs on the cluster


@pytest.fixture(scope="module")
def rows():
    codes = make_scale_free(25, n_states=3, n_rows=6000, random_state=0).X.astype(int)
    return pd.DataFrame(codes, columns=[f"v{i}" for i in range(codes.shape[1])])


@pytest.fixture(scope="module")
def plan():
    return Plan(max_tests=32)


@pytest.fixture(scope="module")
def expected(rows, plan):
    """What one machine learns from the same partitions."""
    schema = pack(rows).schema
    local = StoredRows(Parts([pack(part, schema=schema) for part in cut(rows, 5)]))
    return discover(local, plan, sample_rows=SAMPLE)


def assert_same(found, expected):
    np.testing.assert_array_equal(
        found.search.graph.layout.edges, expected.search.graph.layout.edges
    )
    np.testing.assert_array_equal(found.search.theta(), expected.search.theta())
    np.testing.assert_array_equal(found.kept, expected.kept)
    assert found.model == expected.model
    assert found.certificate == expected.certificate


@pytest.mark.slow
def test_edges_and_parameters_do_not_depend_on_the_number_of_workers(rows, plan, expected):
    assert len(expected.model.edges) > 10
    with machines(1) as (cluster, client):
        for n_workers in (1, 2, 4):
            while len(cluster.workers()) < n_workers:
                cluster.add_worker()
            client.wait_for_workers(n_workers, timeout=60)
            there = eg.ClusterRows(client, cut(rows, 5))
            assert_same(discover(there, plan, sample_rows=SAMPLE), expected)
            assert there.round_trips > 5


class UnderFire(eg.ClusterRows):
    """Rows of which a worker is killed in the course of each of the first calls."""

    left = 0

    def attack(self, cluster, n_kills):
        self.cluster, self.left = cluster, n_kills
        self.rng = np.random.default_rng(1)

    def map(self, *given):
        with self.strike():
            return super().map(*given)

    @contextmanager
    def strike(self):
        """Kill a worker at a random moment of the block, and send for another."""
        if not self.left:
            yield
            return
        self.left -= 1
        victim, delay = str(self.rng.choice(self.cluster.workers())), self.rng.uniform(0.0, 0.3)
        killer = Thread(target=lambda: (sleep(delay), self.cluster.kill(victim)))
        killer.start()
        yield
        killer.join()
        self.cluster.add_worker()


@pytest.mark.slow
def test_ten_workers_killed_while_learning_change_nothing(rows, plan, expected):
    with machines(3) as (cluster, client):
        there = UnderFire(client, cut(rows, 5))
        there.attack(cluster, n_kills=10)
        found = discover(there, plan, sample_rows=SAMPLE)
        assert there.left == 0
        assert_same(found, expected)
        trips = found.search.trace()["n_trips"]
        assert trips[0] == 0  # on the sample
        assert (np.diff(trips) >= 0).all()
        assert 5 <= trips[-1] <= there.round_trips


@pytest.mark.slow
def test_a_run_whose_scheduler_was_lost_goes_on_from_its_checkpoint(rows, plan, expected, tmp_path):
    path = tmp_path / "run.checkpoint"

    class Loser:
        """Kills the scheduler once the last stage, over all rows, has begun."""

        def on_event(self, event, growth):
            if event.kind == "start" and growth.objective.n_rows == len(rows):
                cluster.kill("scheduler")

    with machines(2) as (cluster, client):
        there = eg.ClusterRows(client, cut(rows, 5))
        with pytest.raises(ClusterError, match="resume_discovery"):
            discover(there, plan, checkpoint=path, observers=[Loser()], sample_rows=SAMPLE)
    assert path.exists()
    with machines(2) as (_, client):
        there = eg.ClusterRows(client, cut(rows, 5))
        assert_same(resume_discovery(path, there, plan, sample_rows=SAMPLE), expected)


def test_an_estimator_fits_a_dask_frame(client, rows):
    with client.as_current():
        fitted = eg.GraftedMRF(random_state=0).fit(dd.from_pandas(rows, npartitions=3))
    local = eg.GraftedMRF(random_state=0).fit(rows)
    np.testing.assert_array_equal(fitted.edges_, local.edges_)
    assert fitted.model_ == local.model_
    assert list(fitted.feature_names_in_) == list(rows.columns)
    assert fitted.score(rows) == local.score(rows)
    again = eg.GraftedMRF(random_state=0).fit(eg.ClusterRows(client, cut(rows, 3)))
    assert again.model_ == local.model_


def test_ordered_columns_are_learned_on_a_cluster(client):
    rng = np.random.default_rng(0)
    trait = rng.normal(size=(3000, 1))
    frame = pd.DataFrame(np.digitize(trait + rng.normal(size=(3000, 4)), [-1, 0, 1]))
    frame = frame.set_axis(list("abcd"), axis=1).assign(income=np.exp(trait[:, 0]))
    schema = pack(frame, kinds=dict.fromkeys("abcd", "ordinal")).schema
    local = StoredRows(Parts([pack(part, schema=schema) for part in cut(frame, 3)]))
    there = eg.ClusterRows(client, cut(frame, 3), schema=schema)
    expected, found = (discover(rows, Plan(), sample_rows=1000) for rows in (local, there))
    assert found.model.n_edges >= 4
    assert_same(found, expected)
    for name, values in expected.model.edge_columns.items():
        np.testing.assert_array_equal(found.model.edge_columns[name], values)


def test_what_a_cluster_cannot_fit_is_refused(client, rows):
    frame = dd.from_pandas(rows, npartitions=2)
    with client.as_current(), pytest.raises(DataError, match="no weights"):
        eg.GraftedMRF().fit(frame, sample_weight=np.ones(len(rows)))
    there = eg.ClusterRows(client, frame)
    other = pack(rows.rename(columns={"v0": "w0"})).schema
    with pytest.raises(DataError, match="a schema of their own"):
        eg.GraftedMRF(schema=other).fit(there)


def test_a_frame_without_a_client_says_what_to_do():
    script = (
        "import dask.dataframe as dd, pandas as pd, edgegraft as eg\n"
        "frame = dd.from_pandas(pd.DataFrame({'a': [0, 1], 'b': [1, 0]}), npartitions=1)\n"
        "eg.GraftedMRF().fit(frame)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "client = distributed.Client(" in done.stderr.splitlines()[-1]
