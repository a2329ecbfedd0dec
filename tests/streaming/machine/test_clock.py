"""The machine's clock, as events carry it."""

from __future__ import annotations

import pytest

from streaming.machine import clock
from tests.kit.own_view import patch_in


def test_the_time_is_whole_milliseconds_since_1970_and_never_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_in(monkeypatch, clock, "time", time_ns=lambda: 1_767_225_600_007_999_999)
    assert clock.now_ms() == 1_767_225_600_007
