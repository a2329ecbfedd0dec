"""A request to stop: by a program, by signals, and twice."""

from __future__ import annotations

import os
import signal
import threading

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
    stop, sent = StopRequest(), threading.Event()

    def send_many() -> None:
        for _ in range(2_000):
            os.kill(os.getpid(), signal.SIGTERM)
        sent.set()

    with stop.by_signals():
        threading.Thread(target=send_many).start()
        while not sent.is_set():
            # A lock that the handler takes as well would be held here by the time that a signal comes.
            stop.wait(0)
    assert stop.urgent


def test_waiting_ends_with_the_request():
    stop = StopRequest()
    assert not stop.wait(0)
    stop.request()
    assert stop.wait(0)
