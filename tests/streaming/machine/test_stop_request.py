"""A request to stop: by a program, by signals, and twice."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from streaming.machine import stop_request
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
def test_a_signal_is_a_request_whatever_the_main_thread_is_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    stop, enough, logged = StopRequest(), threading.Event(), list[str]()
    monkeypatch.setattr(stop_request, "_log", SimpleNamespace(info=lambda _said, signal: logged.append(signal)))

    def send_signals() -> None:
        while not enough.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.0002)

    with stop.by_signals():
        sender = threading.Thread(target=send_signals)
        sender.start()
        try:
            # Those that come together are handled as one.
            while len(logged) < 200:
                # A lock that the handler takes as well would be held here by the time that a signal comes.
                stop.wait(0)
        finally:
            enough.set()
            sender.join()
    assert stop.urgent


def test_waiting_ends_with_the_request():
    stop = StopRequest()
    assert not stop.wait(0)
    stop.request()
    assert stop.wait(0)
