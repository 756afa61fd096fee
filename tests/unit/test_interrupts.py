"""Ctrl-C: the first one asks, the second one interrupts, blocks nest, handlers come back."""

from __future__ import annotations

import signal
import threading

import pytest

from edgegraft.core.threads import interruptible


def press():
    signal.raise_signal(signal.SIGINT)


def test_the_first_asks_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as interruption:
        press()
        assert interruption.asked
        with pytest.raises(KeyboardInterrupt):
            interruption.check()
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_wish_between_two_inner_blocks_is_known_in_the_second():
    with interruptible() as outer:
        with interruptible() as first:
            assert not first.asked
        press()
        with interruptible() as second:
            assert second.asked
        assert outer.asked
    with interruptible() as later:
        assert not later.asked


def test_other_threads_are_never_asked():
    found = []

    def work():
        with interruptible() as interruption:
            found.append(interruption.asked)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
