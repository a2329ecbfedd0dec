"""The whole program, run within the test's own process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from streaming.commands.app import run_app


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command that must end with 2, and return what it writes to standard error."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["rebalance-monitor", *arguments])
        with pytest.raises(SystemExit) as end:
            run_app()
        assert end.value.code == 2
        return capsys.readouterr().err

    return run
