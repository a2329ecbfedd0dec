"""The file that remembers sent messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.alerts.alert_state import AlertState, SentFinding
from streaming.setup.errors import SetupError

SENT = SentFinding("c", "g", "flapping", "warning", 1, 5, refused_since_ms=6, missing_since_ms=7)


def test_it_is_read_as_it_was_written_and_old_cool_downs_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state = AlertState(path)
    state.of("chat").opened["f"] = SENT
    state.of("chat").cooling |= {"old": 10, "new": 11}
    state.write(10)
    again = AlertState(path)
    assert again.of("chat").opened == {"f": SENT}
    assert again.of("chat").cooling == {"new": 11}
    assert again.open_findings == {"f"}
    assert again.shown() == {"chat": 1}


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 1}', b'{"version": 1, "channels": {"chat": 5}}'])
def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(SetupError, match=r"state\.json cannot be read"):
        AlertState(path)


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b'{"version": 2, "channels": {}}')
    with pytest.raises(SetupError, match="newer release"):
        AlertState(path)


def test_without_a_file_nothing_is_written() -> None:
    state = AlertState(None)
    state.of("webhook").opened["f"] = SENT
    state.write(0)
    assert AlertState(None).open_findings == set()
