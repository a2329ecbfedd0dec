"""Findings that are held back: widespread kinds, and kinds that may still turn out to be widespread."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from streaming.alerts.alert_state import AlertState
from streaming.views.widespread import WidespreadKind
from tests.streaming.alerts.planted import Scene, finding, widespread
from tests.streaming.tables.journals import T0

SPAN_MS = widespread().span_ms
MANY = WidespreadKind("c1", "flapping", 16, 24)


def flapping(name: str, **more: object) -> dict[str, object]:
    return finding(name, **{"group": f"group-{name}", "kind": "flapping", "severity": "warning", **more})  # type: ignore[arg-type]


def storm(scene: Scene) -> None:
    scene.open(*(flapping(str(number)) for number in range(16)))
    scene.many = [MANY]


def test_widespread_findings_are_not_sent_and_logged_once() -> None:
    scene = Scene()
    storm(scene)
    with capture_logs() as logged:
        assert [scene.step(after) for after in (0, SPAN_MS, SPAN_MS)] == [[], [], []]
    (line,) = logged
    assert line["event"] == "findings are widespread: they are not sent"
    assert (line["cluster"], line["kind"], line["groups"], line["of_groups"]) == ("c1", "flapping", 16, 24)


def test_other_kinds_and_clusters_and_findings_of_the_cluster_itself_are_sent_meanwhile() -> None:
    scene = Scene()
    storm(scene)
    scene.step(SPAN_MS)
    trouble = [finding(f"no-owner-{number}", group=f"group-{number}", kind="queue_unassigned") for number in range(16)]
    scene.open(*trouble, flapping("elsewhere", cluster="c2"), flapping("own", group=None))
    sent = [name for _, names in scene.step() for name in names]
    assert sorted(sent) == sorted(["own", *(str(row["finding_id"]) for row in trouble)])
    assert scene.step(SPAN_MS) == [("opened", ["elsewhere"])]


def test_findings_that_remain_are_sent_when_no_longer_widespread() -> None:
    scene = Scene()
    storm(scene)
    assert [scene.step(after) for after in (0, SPAN_MS)] == [[], []]
    scene.close(*(str(number) for number in range(15)))
    scene.many = []
    with capture_logs() as logged:
        assert scene.step(1_000) == [("opened", ["15"])]
    assert [line["event"] for line in logged] == ["findings are no longer widespread"]
    scene.many = [MANY]
    scene.close("15")
    assert scene.step(1_000) == [("closed", ["15"])]


def test_findings_of_such_a_kind_wait_whether_other_groups_follow() -> None:
    scene = Scene()
    scene.open(flapping("first"), finding("critical"))
    assert scene.step() == [("opened", ["critical"])]
    storm(scene)
    assert scene.step(SPAN_MS) == []
    calm = Scene()
    calm.open(flapping("alone"))
    assert [calm.step(after) for after in (0, SPAN_MS - 1, 1)] == [[], [], [("opened", ["alone"])]]


def test_a_last_step_waits_for_the_time_since_the_opening() -> None:
    scene = Scene()
    scene.open(flapping("old", opened_at=T0 - SPAN_MS), flapping("new", opened_at=T0 - SPAN_MS + 1))
    scene.engine.step(scene.findings, is_last=True)
    assert scene.receiver.statuses() == [("opened", ["old"])]


def test_after_a_restart_what_was_held_stays_held_and_what_was_sent_is_not_sent_again(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    before = Scene(AlertState(path))
    before.open(flapping("sent"))
    before.step()
    assert before.step(SPAN_MS) == [("opened", ["sent"])]
    storm(before)
    assert before.step(SPAN_MS) == []
    after = Scene(AlertState(path))
    after.open(flapping("sent"))
    storm(after)
    assert [after.step(SPAN_MS) for _ in range(2)] == [[], []]
    after.close("sent")
    assert after.step() == [("closed", ["sent"])]
    assert after.engine.state.open_findings == set()
