"""The engine sends each message at its time, and none twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.alerts.alert_engine import MISSING_MS
from streaming.alerts.alert_state import AlertState
from streaming.alerts.channels import Request
from streaming.alerts.delivery_error import DeliveryError
from tests.streaming.alerts.planted import Scene, bodies, finding
from tests.streaming.tables.journals import T0


def test_a_finding_is_sent_when_it_opens_and_when_it_closes_and_only_then() -> None:
    scene = Scene()
    scene.open(finding("f"))
    assert scene.step() == [("opened", ["f"])]
    assert scene.step(60_000) == []
    scene.close("f")
    assert scene.step(60_000) == [("closed", ["f"])]
    assert scene.step(60_000) == []


def test_one_that_opened_and_closed_unsent_is_not_sent() -> None:
    scene = Scene()
    scene.open(finding("f"))
    scene.close("f")
    assert scene.step() == []


def test_findings_of_a_group_are_one_message_that_waits_for_more() -> None:
    scene = Scene(group_wait_ms=5_000)
    scene.open(finding("a"))
    assert scene.step() == []
    scene.open(finding("b"), finding("x", group="payments"))
    assert scene.step(4_999) == []
    assert scene.step(1) == [("opened", ["a", "b"])]
    assert scene.step(4_998) == []
    assert scene.step(1) == [("opened", ["x"])]


def test_a_message_has_no_more_findings_than_the_setting() -> None:
    scene = Scene(max_findings=2)
    scene.open(*(finding(name) for name in "abcde"))
    assert [names for _, names in scene.step()] == [["a", "b"], ["c", "d"], ["e"]]


def test_the_same_kind_of_a_group_is_not_sent_again_within_the_cool_down() -> None:
    scene = Scene(cool_down_ms=600_000)
    scene.open(finding("first"))
    assert scene.step() == [("opened", ["first"])]
    scene.close("first")
    scene.step()
    scene.open(finding("again"), finding("other", kind="strategies_differ"), finding("elsewhere", group="payments"))
    assert scene.step(1_000) == [("opened", ["other"]), ("opened", ["elsewhere"])]
    assert scene.step(598_999) == []
    assert scene.step(1) == [("opened", ["again"])]


def test_one_that_closes_within_the_cool_down_is_never_sent() -> None:
    scene = Scene(cool_down_ms=600_000)
    scene.open(finding("first"))
    scene.step()
    scene.open(finding("again"))
    assert scene.step(1_000) == []
    scene.close("again")
    assert scene.step(600_000) == []


def test_in_a_maintenance_window_nothing_is_sent_and_afterwards_what_is_still_open() -> None:
    window = "2026-01-01T00:00:00Z/2026-01-01T01:00:00Z cluster=c.* group=orders"
    scene = Scene(maintenance=[window])
    scene.open(finding("kept"), finding("brief"), finding("elsewhere", group="payments"))
    assert scene.step() == [("opened", ["elsewhere"])]
    scene.close("brief")
    assert scene.step(3_599_999) == []
    assert scene.step(1) == [("opened", ["kept"])]


def test_findings_sent_before_a_window_are_resolved_within_it() -> None:
    scene = Scene(maintenance=["2026-01-01T01:00:00Z/2026-01-01T02:00:00Z"])
    scene.open(finding("f"))
    scene.step()
    scene.close("f")
    assert scene.step(3_700_000) == [("closed", ["f"])]


@pytest.mark.parametrize(
    ("values", "sent"),
    [
        ({}, ["critical", "warning"]),
        ({"min_severity": "info"}, ["critical", "info", "warning"]),
        ({"min_severity": "critical"}, ["critical"]),
        ({"ignored_findings": ["kind-critical"]}, ["warning"]),
        ({"groups": ["pay.*"]}, []),
    ],
)
def test_only_findings_that_count_are_sent(values: dict[str, object], sent: list[str]) -> None:
    scene = Scene(**values)
    scene.open(*(finding(name, severity=name, kind=f"kind-{name}") for name in ("info", "warning", "critical")))
    assert sorted(name for _, names in scene.step() for name in names) == sent


def test_a_filter_of_groups_keeps_back_no_finding_of_a_cluster_or_of_the_monitor() -> None:
    scene = Scene(groups=["orders-.*"])
    scene.open(finding("job", group=None, kind="job_silent"), finding("other", group="payments"))
    scene.open(finding("tables", group=None, cluster=None, kind="tables_unreadable"))
    assert sorted(name for _, names in scene.step() for name in names) == ["job", "tables"]


def test_a_refused_message_is_tried_again_with_growing_pauses_and_sent_once() -> None:
    scene = Scene(retry_first_ms=1_000, retry_most_ms=4_000)
    scene.receiver.refuses = DeliveryError("HTTP 503")
    scene.open(finding("f"))
    attempts = []
    for _ in range(150):
        scene.step(100)
        if scene.receiver.attempts > len(attempts):
            attempts.append(scene.now_ms - T0)
    assert attempts == [100, 1_100, 3_100, 7_100, 11_100]
    scene.receiver.refuses = None
    assert scene.step(4_000) == [("opened", ["f"])]
    assert scene.step(100_000) == []


class Refusing:
    """Refuses messages with a group or a finding; all others are accepted."""

    def __init__(self, scene: Scene, name: str, error: Exception | None = None) -> None:
        self.accept, self.name = scene.receiver, name
        self.error = error or DeliveryError("HTTP 400", is_refusal=True)
        self.tried: list[tuple[int, list[str]]] = []
        self.scene = scene
        scene.engine._deliver = self

    def __call__(self, request: Request) -> None:
        (body,) = bodies([request], request.channel)
        self.tried.append((self.scene.now_ms - T0, [row["finding_id"] for row in body["findings"]]))
        if self.name in {body["group_id"], *self.tried[-1][1]}:
            raise self.error
        self.accept(request)

    @property
    def times(self) -> list[int]:
        """Return when messages with this finding came."""
        return [at for at, names in self.tried if self.name in names]


@pytest.mark.parametrize("error", [None, UnicodeEncodeError("ascii", "ü", 0, 1, "SECRET")])
def test_a_refused_message_holds_up_no_other_and_has_pauses_of_its_own(error: Exception | None) -> None:
    scene = Scene(retry_first_ms=1_000, retry_most_ms=4_000)
    refusing = Refusing(scene, "poison", error)
    scene.open(finding("poison", group="a"), finding("b", group="b"), finding("c", group="c"))
    assert scene.step() == [("opened", ["b"]), ("opened", ["c"])]
    scene.open(finding("d", group="d"))
    assert scene.step(100) == [("opened", ["d"])]
    for _ in range(200):
        assert scene.step(100) == []
    assert refusing.times == [0, 1_000, 3_000, 7_000, 11_000, 15_000, 19_000]
    refusing.name = ""
    assert scene.step(4_000) == [("opened", ["poison"])]
    assert scene.step(100_000) == []


def test_findings_of_a_refused_message_are_tried_again_one_by_one() -> None:
    scene = Scene()
    refusing = Refusing(scene, "poison")
    scene.open(finding("a"), finding("poison"), finding("z"))
    assert scene.step() == []
    assert scene.step(1_000) == [("opened", ["a"]), ("opened", ["z"])]
    scene.open(finding("later"))
    assert scene.step(100) == [("opened", ["later"])]
    scene.close("a", "poison")
    assert scene.step(100_000) == [("closed", ["a"])]
    assert refusing.times == [0, 1_000]


def test_a_message_on_which_the_channel_fails_is_sent_last() -> None:
    scene = Scene()
    refusing = Refusing(scene, "poison", DeliveryError("HTTP 500"))
    scene.open(finding("poison", group="a"), finding("b", group="b"), finding("c", group="c"))
    assert scene.step() == []
    assert scene.step(1_000) == [("opened", ["b"]), ("opened", ["c"])]
    assert refusing.times == [0, 1_000]


def test_a_message_that_cannot_be_made_holds_up_no_other() -> None:
    scene = Scene()
    scene.open(finding("a", group="a", opened_at=2**80), finding("b", group="b"))
    assert scene.step() == [("opened", ["b"])]


def test_an_event_that_one_channel_refuses_alone_does_not_hold_up_its_others() -> None:
    scene = Scene(webhook_url="", channels={"chat": "json://127.0.0.1:1/{finding}"})
    accept = scene.receiver

    def deliver(request: Request) -> None:
        if "poison" in str(request.body):
            raise DeliveryError("HTTP 400", is_refusal=True)
        accept(request)

    scene.engine._deliver = deliver
    scene.open(finding("a"), finding("poison"), finding("z"))
    scene.step()
    assert scene.engine.state.of("chat").opened.keys() == {"a", "z"}


def test_a_receiver_sets_how_long_to_wait() -> None:
    scene = Scene()
    scene.receiver.refuses = DeliveryError("HTTP 429", 30_000)
    scene.open(finding("f"))
    scene.step()
    scene.receiver.refuses = None
    assert scene.step(29_999) == []
    assert scene.step(1) == [("opened", ["f"])]


def test_a_channel_that_fails_does_not_hold_up_others() -> None:
    scene = Scene(channels={"chat": "json://127.0.0.1:1/x"})
    accept = scene.receiver

    def deliver(request: object) -> None:
        if getattr(request, "channel", "") == "webhook":
            raise DeliveryError("HTTP 500")
        accept(request)  # type: ignore[arg-type]

    scene.engine._deliver = deliver
    scene.open(finding("f"))
    scene.step()
    assert scene.engine.state.shown() == {"webhook": 0, "chat": 1}


def test_after_a_restart_nothing_is_sent_twice_and_what_closed_meanwhile_is_resolved(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "alerts.json"
    before = Scene(AlertState(path), cool_down_ms=600_000)
    before.open(finding("kept"), finding("ended", group="payments"))
    assert len(before.step()) == 2
    after = Scene(AlertState(path), cool_down_ms=600_000)
    after.open(finding("kept"), finding("ended", group="payments"), finding("again"))
    after.close("ended")
    assert after.step(1_000) == [("closed", ["ended"])]
    assert after.engine.state.open_findings == {"kept"}


def test_a_crash_between_two_messages_repeats_neither(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    scene = Scene(AlertState(path))
    scene.open(finding("a", group="a"), finding("b", group="b"))
    accept = scene.receiver

    def crash_at_the_second(request: object) -> None:
        if accept.taken:
            raise KeyboardInterrupt
        accept(request)  # type: ignore[arg-type]

    scene.engine._deliver = crash_at_the_second
    with pytest.raises(KeyboardInterrupt):
        scene.step()
    after = Scene(AlertState(path))
    after.open(*scene.current.values())
    assert after.step() == [("opened", ["b"])]


def test_open_alerts_are_repeated_to_an_alertmanager_only() -> None:
    scene = Scene(alertmanager_url="http://127.0.0.1:1", alertmanager_refresh_ms=60_000)
    scene.open(finding("f"))
    scene.step()
    scene.now_ms += 60_000
    scene.engine.step(scene.findings)
    assert [request.channel for request in scene.receiver.taken] == ["alertmanager"]
    scene.receiver.taken.clear()
    assert scene.engine.step(scene.findings) == 0


def test_open_findings_are_repeated_to_an_alertmanager_when_a_process_starts() -> None:
    values: dict[str, object] = {"webhook_url": "", "alertmanager_url": "http://127.0.0.1:1"}
    before = Scene(**values)
    before.open(finding("f"))
    assert before.engine.step(before.findings) == 1
    after = Scene(before.engine.state, **values)
    after.open(finding("f"), finding("g", group="payments"))
    after.now_ms += 1_000
    assert after.engine.step(after.findings, is_last=True) == 2
    assert [len(request.body) for request in after.receiver.taken] == [1, 1]


def test_repeated_alerts_that_are_refused_hold_up_no_others() -> None:
    scene = Scene(webhook_url="", alertmanager_url="http://127.0.0.1:1", max_findings=1)
    scene.open(finding("a"), finding("b"))
    scene.engine.step(scene.findings)
    scene.receiver.taken.clear()
    accept = scene.receiver

    def deliver(request: Request) -> None:
        if "Message of a." in str(request.body):
            raise DeliveryError("HTTP 400", is_refusal=True)
        accept(request)

    scene.engine._deliver = deliver
    scene.now_ms += 60_000
    assert scene.engine.step(scene.findings) == 1
    scene.now_ms += 1_000
    assert scene.engine.step(scene.findings) == 0


def test_in_a_last_step_nothing_waits_for_more_of_its_group() -> None:
    scene = Scene(group_wait_ms=60_000)
    scene.open(finding("a"), finding("b"))
    for sent in ([("opened", ["a", "b"])], []):
        scene.engine.step(scene.findings, is_last=True)
        assert scene.receiver.statuses() == sent


def test_a_finding_without_a_row_is_resolved_as_it_was_sent_also_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    before = Scene(AlertState(path))
    before.open(finding("f", cluster="c9", severity="warning"))
    before.step()
    before.current.clear()
    before.missing = {"f"}
    assert before.step() == []
    after = Scene(AlertState(path))
    after.missing = {"f"}
    assert after.step(MISSING_MS - 1) == []
    after.now_ms += 1
    after.engine.step(after.findings)
    (body,) = bodies(after.receiver.taken, "webhook")
    (ended,) = body["findings"]
    assert (body["status"], body["cluster"], body["severity"]) == ("closed", "c9", "warning")
    assert (ended["kind"], ended["closed_at"]) == ("duplicate_ids", "2026-01-01T00:01:00.000Z")
    assert AlertState(path).open_findings == set()


def test_a_row_that_is_away_for_a_while_is_not_resolved() -> None:
    scene = Scene()
    scene.open(finding("f"))
    scene.step()
    scene.missing = {"f"}
    scene.step(1_000)
    scene.missing = set()
    scene.step(MISSING_MS)
    scene.missing = {"f"}
    assert scene.step(1_000) == []


def test_a_dry_run_shows_what_is_due_and_changes_nothing() -> None:
    scene = Scene(group_wait_ms=60_000)
    scene.open(finding("f"))
    assert [request.channel for request in scene.engine.due(scene.findings)] == ["webhook"]
    assert scene.engine.state.open_findings == set()
    assert scene.receiver.attempts == 0


class RefusingResolutions(Refusing):
    """Refuses every message about closed findings."""

    def __call__(self, request: Request) -> None:
        (body,) = bodies([request], request.channel)
        self.name = body["group_id"] if body["status"] == "closed" else ""
        super().__call__(request)


def test_a_resolution_that_is_refused_for_ever_is_given_up_with_an_error_also_across_restarts(tmp_path: Path) -> None:
    path = tmp_path / "alerts.json"
    values = {"resolve_for_ms": 3_600_000, "retry_first_ms": 1_000, "retry_most_ms": 60_000}
    before = Scene(AlertState(path), **values)
    RefusingResolutions(before, "")
    before.open(finding("f"), finding("open"))
    before.step()
    before.close("f")
    before.step(1_000)
    after = Scene(AlertState(path), **values)
    refusing = RefusingResolutions(after, "")
    after.open(finding("open"))
    after.closed |= before.closed
    after.now_ms = before.now_ms
    with capture_logs() as logged:
        for _ in range(600):
            after.step(10_000)
    given_up = [line for line in logged if line["log_level"] == "error"]
    assert [(line["channel"], line["finding_id"]) for line in given_up] == [("webhook", "f")]
    assert 3_600_000 <= refusing.tried[-1][0] - 1_000 < 3_600_000 + 70_000
    assert AlertState(path).open_findings == {"open"}


def test_a_resolution_that_is_accepted_in_time_is_forgotten_with_its_refusals() -> None:
    scene = Scene()
    refusing = RefusingResolutions(scene, "")
    scene.open(finding("f"))
    scene.step()
    scene.close("f")
    assert scene.step() == []
    assert scene.engine.state.of("webhook").opened["f"].refused_since_ms == scene.now_ms
    scene.engine._deliver = refusing.accept
    assert scene.step(3_600_000) == [("closed", ["f"])]
    assert scene.engine.state.of("webhook").opened == {}
