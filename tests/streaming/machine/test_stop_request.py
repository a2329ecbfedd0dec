"""A request to stop: by a program, by signals, and twice."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from streaming.machine.stop_request import StopRequest


def test_a_second_request_is_urgent():
    stop = StopRequest()
    assert not stop.is_requested
    stop.request()
    assert (stop.is_requested, stop.urgent) == (True, False)
    stop.request()
    assert stop.urgent


def test_signals_are_requests_inside_and_restored_afterwards():
    stop, before = StopRequest(), signal.getsignal(signal.SIGTERM)
    with stop.by_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.timeout(60)
def test_a_signal_is_a_request_whatever_the_main_thread_is_doing():
    stop, enough = StopRequest(), threading.Event()

    def send_signals() -> None:
        while not enough.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.0002)

    with stop.by_signals():
        sender = threading.Thread(target=send_signals)
        sender.start()
        waits = 0
        try:
            # Signals that come together are handled as one, so a second one may need some time on busy cores.
            while waits < 100_000 or not stop.urgent:
                # A lock that the handler takes as well would be held here by the time that a signal comes.
                stop.wait(0)
                waits += 1
        finally:
            enough.set()
            sender.join()


def test_waiting_ends_with_the_request():
    stop = StopRequest()
    assert not stop.wait(0)
    stop.request()
    assert stop.wait(0)
