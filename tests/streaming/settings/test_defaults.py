"""Single defaults equal those of the settings."""

from __future__ import annotations

import pytest

from streaming.settings.defaults import default
from streaming.settings.model import load
from udfs.model.systems import SYSTEMS


def test_a_default_is_that_of_the_settings() -> None:
    settings = load()
    assert default("strategies", "vote_tie_order") == settings.strategies.vote_tie_order
    assert default("event_log", "memory_bytes") == settings.event_log.memory_bytes
    for system in SYSTEMS:
        assert default("session_timeouts", f"{system}_ms") == settings.core_config().session_timeouts_ms[system]


def test_there_are_defaults_of_settings_only() -> None:
    with pytest.raises(KeyError):
        default("strategies", "no_such_setting")
