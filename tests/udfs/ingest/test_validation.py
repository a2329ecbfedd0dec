"""What types alone cannot check of an event."""

from typing import Any

import msgspec
import pytest

from tests.core_config import core_config
from tests.udfs.event_lines import NOW, QUEUE, VALID, line, with_field
from udfs.ingest.parser import parse
from udfs.ingest.validation import MAX_SETTINGS_DEPTH, validate
from udfs.model.annotations import ContractEvent
from udfs.model.events import GroupSnapshot

RULES = core_config()


def violation(content: dict[str, Any], raw: bytes | None = None) -> str | None:
    event = msgspec.convert(content, ContractEvent)
    found = validate(event, line(content) if raw is None else raw)
    return None if found is None else f"{found.reason}: {found.detail}"


@pytest.mark.parametrize("name", VALID)
def test_a_valid_event_of_every_type_has_no_violation(name: str) -> None:
    assert violation(VALID[name]) is None


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("heartbeat", {"cluster": "a\x00"}, "cluster"),
        ("heartbeat", {"event_id": "a\x1f"}, "event_id"),
        ("heartbeat", {"group": "a\x7f"}, "group"),
        ("heartbeat", {"member_id": "\ta"}, "member_id"),
        ("described heartbeat", {"strategies": ["a\n"]}, "strategies"),
        ("described heartbeat", {"owned": [{**QUEUE, "topic": "a\n"}]}, "topic"),
        ("member_joined", {"subscriptions": ["a", "b\r"]}, "subscriptions"),
        ("topic_queues", {"topic": "a\n"}, "topic"),
        ("topic_queues", {"queues": [{"queue_id": 0, "broker": "a\n"}]}, "broker"),
        ("progress", {"queues": [{**QUEUE, "topic": "a\n"}]}, "topic"),
        ("assignment_reported", {"queues": [{**QUEUE, "broker": "a\n"}]}, "broker"),
        ("group_record", {"topics": ["a\n"]}, "topic"),
        ("group_record", {"member": {"member_id": "a", "subscriptions": ["a\n"]}}, "subscriptions"),
        ("group_snapshot", {"members": [{"member_id": "a\n"}]}, "member_id"),
        ("group_snapshot", {"members": [{"member_id": "a", "subscriptions": ["a\n"]}]}, "subscriptions"),
        ("group_snapshot", {"assignments": {"a\n": []}}, "assignments"),
        ("group_snapshot", {"assignments": {"a": [{**QUEUE, "topic": "a\n"}]}}, "topic"),
        ("group_snapshot", {"departures": [{"member_id": "a\n", "kind": "left"}]}, "departures"),
        ("group_snapshot", {"observations": [{"kind": "a\n"}]}, "observations"),
        ("annotation", {"kind": "a\n"}, "kind"),
        ("annotation", {"hosts": ["a", "b\n"]}, "hosts"),
    ],
)
def test_no_name_that_identifies_something_has_a_control_character(
    name: str, change: dict[str, Any], field: str
) -> None:
    assert (violation({**VALID[name], **change}) or "").startswith(f"control_character_in_{field}: ")


@pytest.mark.parametrize("field", ["member_id", "epoch"])
def test_a_record_about_a_member_names_it_and_its_epoch(field: str) -> None:
    assert (violation({**VALID["group_record"], field: None}) or "").startswith(f"missing_{field}: ")
    assert violation({**VALID["group_record"], "deleted": True, "epoch": None}) is None


def test_names_are_searched_only_where_the_bytes_can_hold_a_control_character() -> None:
    content = {**VALID["heartbeat"], "group": "a\x01"}
    assert violation(content, b"plain") is None
    for raw in (b"\\", b"\x7f", b'"data_base64"'):
        assert violation(content, raw) is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"queues": [{"queue_id": 0}], "queue_count": 1}, None),
        ({"queues": [{"queue_id": 0}], "queue_count": 2}, "queue_count_differs: queue_count is 2, queues are 1"),
        ({"queues": None, "queue_count": 0}, None),
        ({"queues": None}, "missing_queues: one of queues and queue_count is needed"),
        (
            {"queues": [{"queue_id": 0, "broker": "a"}, {"queue_id": 0, "broker": "b"}]},
            "duplicate_queue: broker 'b', queue 0 - at `$.queues`",
        ),
        ({"system": "metaq", "queues": [{"queue_id": 0, "broker": "a"}, {"queue_id": 0, "broker": "b"}]}, None),
        (
            {"system": "metaq", "queues": [{"queue_id": 0, "broker": "a"}, {"queue_id": 0, "broker": "a"}]},
            "duplicate_queue: broker 'a', queue 0 - at `$.queues`",
        ),
    ],
)
def test_a_topics_count_agrees_with_its_queues_and_each_is_there_once(
    change: dict[str, Any], reason: str | None
) -> None:
    # A partition of Kafka is the same one, whichever broker leads it.
    assert violation({**VALID["topic_queues"], **change}) == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"members": [{"member_id": "m"}, {"member_id": "n"}, {"member_id": "m"}]},
            "duplicate_member: 'm' - at `$.members[2]`",
        ),
        ({"members": [{"member_id": "m", "instance_id": "i"}, {"member_id": "m", "instance_id": "j"}]}, None),
        (
            {"members": [{"member_id": "n"}, {"member_id": "m", "owned": [QUEUE, QUEUE]}]},
            "duplicate_queue: topic 'orders', broker 'b0', 3 - at `$.members[1].owned`",
        ),
        ({"assignments": {"": []}}, "empty_member_id: a member id is empty - at `$.assignments`"),
        (
            {"assignments": {"a": [QUEUE], "b": [QUEUE, QUEUE]}},
            "duplicate_queue: topic 'orders', broker 'b0', 3 - at `$.assignments`",
        ),
        # Two members may claim one queue: that is a finding, not a bad input.
        ({"assignments": {"a": [QUEUE], "b": [QUEUE]}}, None),
        ({"members": [{"member_id": "m", "strategy_settings": {"a": 2**63}}]}, "out_of_range_strategy_settings"),
    ],
)
def test_a_snapshot_names_each_connection_and_each_queue_of_a_member_once(
    change: dict[str, Any], reason: str | None
) -> None:
    found = violation({**VALID["group_snapshot"], **change})
    assert found == reason or (found or "").startswith(f"{reason}: ")


@pytest.mark.parametrize("name", ["described heartbeat", "member_joined", "group_settings"])
def test_settings_of_any_shape_have_a_depth_and_numbers_of_64_bits(name: str) -> None:
    def nested(levels: int) -> object:
        return 1 if not levels else [nested(levels - 1)] if levels % 2 else {"a": nested(levels - 1)}

    def reason(settings: object) -> str:
        return (violation({**VALID[name], "strategy_settings": settings}) or "").split(":")[0]

    # The object itself and the innermost value are levels, too.
    assert reason({"a": nested(MAX_SETTINGS_DEPTH - 2)}) == ""
    assert reason({"a": nested(MAX_SETTINGS_DEPTH - 1)}) == "too_deep"
    assert reason({"a": [2**63 - 1, -(2**63) + 1, True, 1e300, None, "x"]}) == ""
    for number in (2**63, -(2**63) - 1):
        assert reason({"a": {"b": [number]}}) == "out_of_range_strategy_settings"


def test_two_connections_with_one_id_are_two_members_when_they_come_from_two_hosts() -> None:
    members = [{"member_id": "m", "host": "10.0.0.1"}, {"member_id": "m", "host": "10.0.0.2"}]
    assert isinstance(parse(with_field("members", members, "group_snapshot"), NOW, RULES), GroupSnapshot)
