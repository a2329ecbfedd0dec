"""The error of settings: every mistake in one text, and quick to import."""

from __future__ import annotations

import subprocess
import sys

from streaming.settings.errors import SettingsError


def test_all_mistakes_are_in_the_text_one_a_line() -> None:
    error = SettingsError(["a.toml: x: is not a number", "the environment: y: there is no such setting"])
    assert str(error).splitlines() == error.mistakes


def test_importing_it_does_not_load_the_settings() -> None:
    script = "import sys, streaming.settings.errors; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
