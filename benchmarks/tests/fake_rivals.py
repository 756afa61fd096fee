"""Tools that misbehave, for the harness of benchmarks/rivals; each runs in a separate process."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from benchmarks.rivals.outcome import Outcome


def loop(codes, states, seed, threads):
    while True:
        pass


def wait(codes, states, seed, threads):
    time.sleep(60)


def crash(codes, states, seed, threads):
    raise RuntimeError("singular matrix")


def die(codes, states, seed, threads):
    os.kill(os.getpid(), signal.SIGSEGV)


def take_all_memory(codes, states, seed, threads):
    return [Outcome(np.ones((1 << 20, 1 << 20)))]
