"""A follower of findings logs and shows each failure, and tries again."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.alerts.findings_reader import CurrentFindings, FindingsReader
from streaming.alerts.follower import AlertsStatus, follow
from tests.streaming.alerts.planted import Scene, finding, widespread


class FailingReader(FindingsReader):
    """Raises the given errors first, then returns findings."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(Path("absent"), widespread(), lambda: 0)
        self.errors = list(errors)

    def read(self, awaited: set[str]) -> CurrentFindings:
        if self.errors:
            raise self.errors.pop(0)
        return CurrentFindings({"f": finding("f")}, {})


def followed(reader: FindingsReader, scene: Scene, times: int) -> tuple[list[float], list[bool | None]]:
    """Return how long it waited each time, and what its status was."""
    status, waited, shown = AlertsStatus(), list[float](), list[bool | None]()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        shown.append(status.is_running)
        return len(waited) == times

    follow(reader, scene.engine, wait, scene.settings, status)
    assert status.is_running is False
    return waited, shown


def test_tables_that_cannot_be_read_for_a_while_are_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "findings" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("not json\n")
    assert followed(FindingsReader(tmp_path, widespread(), lambda: 0), Scene(), 3) == ([2.0] * 3, [False] * 3)


def test_an_unexpected_error_is_logged_and_tried_again_with_growing_pauses() -> None:
    scene = Scene(retry_most_ms=6_000)
    errors = [UnicodeError("SECRET"), KeyError("SECRET"), ZeroDivisionError(), OSError("no table")]
    with capture_logs() as logged:
        waited, shown = followed(FailingReader(*errors), scene, 5)
    assert waited == [2, 4, 6, 2, 2]
    assert shown == [False] * 4 + [True]
    assert [line["log_level"] for line in logged] == ["error"] * 3 + ["warning"]
    assert "UnicodeError in read" in logged[0]["reason"]
    assert "SECRET" not in str(logged)
    assert scene.receiver.statuses() == [("opened", ["f"])]


def test_one_that_is_ended_does_not_run() -> None:
    status = AlertsStatus()
    with pytest.raises(KeyboardInterrupt):
        follow(FailingReader(), Scene().engine, interrupt, Scene().settings, status)
    assert status.is_running is False
    assert AlertsStatus().is_running is None


def interrupt(_: float) -> bool:
    raise KeyboardInterrupt
