"""The whole program, run within the test's own process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from streaming.commands.app import run_app


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command that must end with an error, 2 if no other is named; return what it writes to standard error."""

    def run(*arguments: str, exit_code: int = 2) -> str:
        monkeypatch.setattr(sys, "argv", ["rebalance-monitor", *arguments])
        with pytest.raises(SystemExit) as end:
            run_app()
        assert end.value.code == exit_code
        return capsys.readouterr().err

    return run
