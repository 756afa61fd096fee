"""A scheduler and workers, each a process of its own that can be killed by its id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from time import monotonic, sleep

WAIT = 60.0
# By default workers try for 30 s to fetch from one that has just died.
QUICK = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}


class Machines:
    """Processes of a cluster on this machine; workers have one thread and no nanny."""

    def __init__(self, n_workers: int) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.address = f"tcp://127.0.0.1:{_free_port()}"
        port = self.address.rpartition(":")[2]
        self._start("scheduler", "--port", port, "--no-dashboard", "--host", "127.0.0.1")
        self._n_started = 0
        for _ in range(n_workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Start one more worker."""
        self._n_started += 1
        self._start(
            "worker",
            self.address,
            "--nthreads=1",
            "--no-nanny",
            "--no-dashboard",
            "--memory-limit=0",
            f"--name=w{self._n_started}",
            "--death-timeout=60",
            name=f"w{self._n_started}",
        )

    def workers(self) -> list[str]:
        """The names of the workers that run."""
        alive = (name for name, process in self._processes.items() if process.poll() is None)
        return [name for name in alive if name != "scheduler"]

    def kill(self, name: str) -> None:
        """End a process at once, as a machine that loses its power does."""
        process = self._processes[name]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self, name: str) -> None:
        """Let a process hang."""
        os.kill(self._processes[name].pid, signal.SIGSTOP)

    def close(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _start(self, kind: str, *options: str, name: str = "scheduler") -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        self._processes[name] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | QUICK
        )


@contextmanager
def machines(n_workers: int):
    """Yield machines, and a client once their workers have come."""
    from distributed import Client

    cluster = Machines(n_workers)
    try:
        _until_open(cluster.address)
        client = Client(cluster.address, timeout=10)
        try:
            client.wait_for_workers(n_workers, timeout=WAIT)
            yield cluster, client
        finally:
            client.close(timeout=1)
    finally:
        cluster.close()


def _until_open(address: str) -> None:
    port = int(address.rpartition(":")[2])
    end = monotonic() + WAIT
    while monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        sleep(0.05)
    raise TimeoutError(f"no scheduler at {address}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
