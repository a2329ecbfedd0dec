"""Lines of group coordinators: texts of each version, as its broker or its source has them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from streaming.collectors.kafka.coordinator_log import CoordinatorLog
from udfs.kafka.consumer_offsets import GroupPatterns
from udfs.model.events import AnyEvent, GroupSnapshot, MemberLeft

AT = "[2026-11-22 19:28:34,885] INFO "
AT_MS = int(datetime(2026, 11, 22, 19, 28, 34, tzinfo=UTC).timestamp()) * 1_000 + 885
OLD = "[GroupCoordinator 0]: "
NEW = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0] "
OLD_LOGGER = " (kafka.coordinator.group.GroupCoordinator)"
NEW_LOGGER = " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
METADATA = (
    "MemberMetadata(memberId=b-1, groupInstanceId=None, clientId=b, clientHost=/127.0.0.1, sessionTimeoutMs=6000,"
    " rebalanceTimeoutMs=300000, supportedProtocols=List(range))"
)
ONE, OTHER = "0b6d8ac9-32b8-4a2c-9f6f-8a2c1d3e4f50", "7f1c2d3e-4a5b-4c6d-8e7f-90a1b2c3d4e5"
CLOSED = "client reason: the consumer is being closed"


def short(event: AnyEvent) -> str:
    assert isinstance(event, GroupSnapshot | MemberLeft)
    reason = (event.reason or "").removeprefix("broker log: ")
    if isinstance(event, MemberLeft):
        return f"{event.group}: {event.member_id} {event.how}: {reason}"
    return f"{event.group}: {event.state} {event.generation}" + (f": {reason}" if reason else "")


@pytest.mark.parametrize(
    ("line", "events"),
    [
        # 1.0
        (OLD + "Preparing to rebalance group g with old generation 2 (__consumer_offsets-0)", ["PreparingRebalance 2"]),
        (OLD + "Stabilized group g generation 3 (__consumer_offsets-0)", ["CompletingRebalance 3"]),
        (OLD + "Member b-1 in group g has failed, removing it from the group", ["b-1 expired: heartbeat expiration"]),
        (OLD + "Member b-1 in group g has left, removing it from the group", ["b-1 left: LeaveGroup"]),
        # 2.1
        (
            OLD + "Preparing to rebalance group g in state PreparingRebalance with old generation 2"
            " (__consumer_offsets-0) (reason: removing member b-1 on heartbeat expiration)",
            [
                "b-1 expired: heartbeat expiration",
                "PreparingRebalance 2: removing member b-1 on heartbeat expiration",
            ],
        ),
        # 2.4
        (
            OLD + "Member[group.instance.id None, member.id b-1] in group g has left, removing it from the group",
            ["b-1 left: LeaveGroup"],
        ),
        # 2.8
        (
            OLD + "Group g removed dynamic members who haven't joined: Set(b-1, c-2)",
            ["b-1 expired: did not rejoin in time", "c-2 expired: did not rejoin in time"],
        ),
        (
            OLD + "Preparing to rebalance group g in state PreparingRebalance with old generation 2"
            " (__consumer_offsets-0) (reason: Removing Set(b-1) on pending sync request expiration)",
            [
                "b-1 expired: did not sync in time",
                "PreparingRebalance 2: Removing Set(b-1) on pending sync request expiration",
            ],
        ),
        # 3.0 and 3.2
        (OLD + f"Member {METADATA} has left group g through explicit `LeaveGroup` request", ["b-1 left: LeaveGroup"]),
        (
            OLD + f"Member {METADATA} has left group g through explicit `LeaveGroup`; {CLOSED}",
            [f"b-1 left: LeaveGroup; {CLOSED}"],
        ),
        # 4.1, classic groups
        (
            NEW + f"[Group g] Member b-1 has left group through explicit `LeaveGroup` request; {CLOSED}",
            [f"b-1 left: LeaveGroup; {CLOSED}"],
        ),
        (
            NEW + "Preparing to rebalance group g in state PreparingRebalance with old generation 4 (reason: explicit"
            " `LeaveGroup` request for (b-1) members.).",
            ["b-1 left: LeaveGroup", "PreparingRebalance 4: explicit `LeaveGroup` request for (b-1) members."],
        ),
        (NEW + "Stabilized group g generation 5 with 1 members.", ["CompletingRebalance 5"]),
        # 4.1, groups of the consumer protocol
        (NEW + "[GroupId g] Member b1 left the consumer group.", ["b1 left: left the group"]),
        (
            NEW + "[GroupId g] Member b1 fenced from the group because the member session expired.",
            ["b1 expired: the member session expired"],
        ),
        (
            NEW + "[GroupId g] Static member b1 with instance id i cannot join the group because the instance id is"
            " owned by member b2.",
            ["b1 fenced: instance id is owned by b2"],
        ),
        (NEW + "[GroupId g] Static member b1 with instance id i temporarily left the consumer group.", []),
        (NEW + f"[GroupId g] Dynamic member b1 has left group through explicit `LeaveGroup` request; {CLOSED}", None),
    ],
)
def test_a_line_of_a_coordinator_becomes_events(line: str, events: list[str] | None) -> None:
    expected = [f"g: {one}" for one in ([f"b1 left: LeaveGroup; {CLOSED}"] if events is None else events)]
    for logger in ("", OLD_LOGGER if line.startswith(OLD) else NEW_LOGGER):
        log = CoordinatorLog("c")
        found = log.events_of(AT + line + logger + "\n")
        assert [one.removesuffix(".") for one in map(short, found)] == [one.removesuffix(".") for one in expected]
        assert {one.event_time for one in found} <= {AT_MS}
        assert (log.understood, log.unknown) == (1, 0)


@pytest.mark.parametrize(
    ("printed", "members"),
    [
        ("Set(b-1)", ["b-1"]),
        ("HashSet(b-1, c-2)", ["b-1", "c-2"]),
        ("[b-1, c-2]", ["b-1", "c-2"]),
        (f"Set(a, b-{ONE}, c-{OTHER})", [f"a, b-{ONE}", f"c-{OTHER}"]),
        (f"HashMap(b-1 -> {METADATA}, a, c-2 -> {METADATA})", ["b-1", "a, c-2"]),
        (f"Map(b-1 -> {METADATA})", ["b-1"]),
    ],
)
def test_members_of_a_list_are_those_that_it_names(printed: str, members: list[str]) -> None:
    log = CoordinatorLog("c")
    found = log.events_of(AT + OLD + f"Group g removed dynamic members who haven't joined: {printed}")
    assert [one.member_id for one in found if isinstance(one, MemberLeft)] == members


def test_members_without_a_sync_request_are_named_at_debug_as_well() -> None:
    line = OLD + "Group g removed members who haven't sent their sync request: Set(b-1)"
    (event,) = CoordinatorLog("c").events_of(AT.replace("INFO", "DEBUG") + line)
    assert short(event) == "g: b-1 expired: did not sync in time"


def test_a_departure_that_two_lines_report_is_one_event() -> None:
    log = CoordinatorLog("c")
    log.events_of(AT + NEW + f"[Group g] Member b-1 has left group through explicit `LeaveGroup` request; {CLOSED}")
    reason = "explicit `LeaveGroup` request for (b-1) members."
    second = log.events_of(
        AT + NEW + f"Preparing to rebalance group g in state Stable with old generation 4 (reason: {reason})."
    )
    assert [type(one) for one in second] == [GroupSnapshot]


@pytest.mark.parametrize(
    ("replaced", "fenced"),
    [
        (
            "Static member i of group g with unknown member id rejoins, assigning new member id b-2, while old member"
            " id b-1 will be removed.",
            "given member.id b-1 is identified as a known static member i,but not matching the expected member.id b-2",
        ),
        (
            "Static member with groupInstanceId=i and unknown member id joins group g in Stable state. Replacing"
            " previously mapped member b-1 with this groupInstanceId.",
            "Request memberId=b-1 for static member with groupInstanceId=i is fenced by current memberId=b-2 during"
            " operation heartbeat",
        ),
    ],
)
def test_a_fenced_member_is_found_by_the_line_that_replaced_it(replaced: str, fenced: str) -> None:
    log = CoordinatorLog("c")
    assert log.events_of(AT + OLD + fenced) == []
    assert log.unplaced == 1  # no line before names its group
    assert log.events_of(AT + OLD + replaced) == []
    (event,) = log.events_of(AT + OLD + fenced)
    assert short(event).startswith("g: b-1 fenced: instance id is owned by b-2")


@pytest.mark.parametrize(
    "line",
    [
        AT + OLD + "Something that no version of Kafka logs today",
        OLD + "Member b-1 in group g has failed, removing it from the group",  # no time
        AT + NEW + "[GroupId g] Member b1 sings.",
    ],
)
def test_a_line_that_is_not_understood_is_counted(line: str) -> None:
    log = CoordinatorLog("c")
    assert log.events_of(line) == []
    assert (log.understood, log.unknown) == (0, 1)


@pytest.mark.parametrize(
    "line",
    [
        AT + OLD + "Startup complete.",
        AT + OLD + "Assignment received from leader for group g for generation 1",
        AT + OLD + "Group g with generation 3 is now empty (__consumer_offsets-0)",
        AT + NEW + "Pending dynamic member with id b-1 joins group g in Stable state. Adding to the group now.",
        AT + NEW + "Generated 0 tombstone records in 1 milliseconds while deleting offsets for partitions [orders-0].",
        AT + NEW + "[GroupId g] Bumped group epoch to 3 with metadata hash 7895379376524975680.",
    ],
)
def test_what_records_report_as_well_is_no_news(line: str) -> None:
    log = CoordinatorLog("c")
    assert log.events_of(line) == []
    assert (log.understood, log.unknown) == (1, 0)


def test_other_lines_are_none_of_a_coordinator() -> None:
    log = CoordinatorLog("c")
    assert log.events_of(AT + "[Partition orders-0 broker=1] Log loaded for partition orders-0") == []
    assert (log.understood, log.unknown) == (0, 0)


@pytest.mark.parametrize(
    ("time", "zone", "expected"),
    [
        ("[2026-11-22 19:28:34,885]", "UTC", AT_MS),
        ("[2026-11-22 20:28:34,885]", "Europe/Berlin", AT_MS),
        ("2026-11-22T19:28:34.885123Z", "Europe/Berlin", AT_MS),
        ("2026-11-22T21:28:34.885+02:00", "UTC", AT_MS),
        ("2026-11-22 14:28:34.885 -0500", "UTC", AT_MS),
        ("2026-11-22 19:28:34", "UTC", AT_MS - 885),
        ('{"time": "2026-11-22T19:28:34.885Z", "message": "', "UTC", AT_MS),
    ],
)
def test_times_have_the_zone_of_the_line_or_of_the_broker(time: str, zone: str, expected: int) -> None:
    log = CoordinatorLog("c", zone=ZoneInfo(zone))
    (event,) = log.events_of(f"{time} INFO {OLD}Stabilized group g generation 3 (__consumer_offsets-0)")
    assert event.event_time == expected


def test_groups_may_have_any_name_and_some_are_not_followed() -> None:
    log = CoordinatorLog("c", groups=GroupPatterns([".*"], ["hidden.*"]))
    (event,) = log.events_of(
        AT + OLD + "Member a in group b in group in group c has failed, removing it from the group"
    )
    assert isinstance(event, MemberLeft)
    assert event.member_id + " in group " + event.group == "a in group b in group in group c"
    assert log.events_of(AT + OLD + "Stabilized group hidden-1 generation 3 (__consumer_offsets-0)") == []
