"""The cost of rebalances in messages is read once, and stays as it was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from deltalake.exceptions import DeltaError
from structlog.testing import capture_logs

from streaming.alerts.alert_state import AlertState
from streaming.alerts.finding_costs import FindingCosts
from streaming.alerts.notices import notice_of
from streaming.tables.schema import Row
from streaming.views.rebalance_costs import Cost
from tests.streaming.alerts.planted import Scene, bodies, finding

COST = Cost(2, 4_000, 45_000, 0, 1_200, None, 5_678)


def test_a_message_has_what_the_rebalances_before_the_finding_cost() -> None:
    scene = Scene(channels={"chat": "json://127.0.0.1:1"}, alertmanager_url="http://127.0.0.1:1")
    scene.costs["f"] = COST
    scene.open(finding("f"))
    scene.engine.step(scene.findings)
    (webhook,), (chat,) = (bodies(scene.receiver.taken, channel) for channel in ("webhook", "chat"))
    text = f"In the hour before: {COST.text}."
    assert text in webhook["text"]
    assert text in chat["text"]
    (alerts,) = (request.body for request in scene.receiver.taken if request.channel == "alertmanager")
    assert text in alerts[0]["annotations"]["description"]  # type: ignore[index]
    cost = webhook["findings"][0]["cost"]
    assert (cost["rebalances"], cost["outage_max_ms"], cost["repeated_messages"]) == (2, 45_000, 1_200)
    assert (cost["waiting_messages"], cost["repeated_estimated_messages"], cost["text"]) == (5_678, None, COST.text)


def test_without_costs_the_message_has_nothing_of_them() -> None:
    scene = Scene()
    scene.open(finding("f"))
    scene.engine.step(scene.findings)
    (body,) = bodies(scene.receiver.taken, "webhook")
    assert body["findings"][0]["cost"] is None
    assert "hour before" not in body["text"]


def test_costs_are_read_once_also_while_the_receiver_refuses(tmp_path: Path) -> None:
    scene = Scene(AlertState(tmp_path / "state.json"), alertmanager_url="http://127.0.0.1:1", retry_first_ms=1)
    scene.costs["a"] = COST
    scene.open(finding("a"), finding("b"))
    for _ in range(3):
        scene.step(60_000)
    assert scene.costs_read == ["a", "b"]
    again = Scene(AlertState(tmp_path / "state.json"), alertmanager_url="http://127.0.0.1:1")
    again.open(finding("a"), finding("b"))
    again.now_ms = scene.now_ms + 60_000
    again.engine.step(again.findings)
    (alerts,) = (request.body for request in again.receiver.taken if request.channel == "alertmanager")
    assert [COST.text in alert["annotations"]["description"] for alert in alerts] == [True, False]  # type: ignore[index, call-overload]
    assert again.costs_read == []


def test_tables_that_cannot_be_read_keep_no_alert_from_being_sent() -> None:
    def fail(_: Iterable[Row]) -> Mapping[str, Cost]:
        raise DeltaError("no table")

    row = finding("f")
    with capture_logs() as logged:
        (notice,) = FindingCosts(fail).added([notice_of(row, "opened")], {"f": row}, {})
    assert notice.cost is None
    assert [line["log_level"] for line in logged] == ["warning"]
