"""The machine's clock, as events carry it."""

from __future__ import annotations

import time

import pytest

from streaming.machine.clock import now_ms


def test_the_time_is_whole_milliseconds_since_1970_and_never_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_767_225_600_007_999_999)
    assert now_ms() == 1_767_225_600_007
