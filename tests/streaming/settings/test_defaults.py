"""Single defaults, as the whole settings have them, and quick to import."""

from __future__ import annotations

import subprocess
import sys

from streaming.settings.defaults import default
from streaming.settings.model import load


def test_a_single_default_is_that_of_the_whole_settings() -> None:
    settings = load()
    assert default("session_timeouts", "metaq_ms") == settings.session_timeouts.metaq_ms
    assert default("event_log", "segment_bytes") == settings.event_log.segment_bytes
    assert default("strategies", "vote_tie_order") == settings.strategies.vote_tie_order


def test_reading_one_does_not_load_the_settings() -> None:
    script = "import sys; from streaming.settings.defaults import default; default('job', 'tables'); "
    script += "print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
