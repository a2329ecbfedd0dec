"""Lines of group coordinators, in the words of each version, taken from its broker or its source."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
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
    expected = [f"g: {text}" for text in ([f"b1 left: LeaveGroup; {CLOSED}"] if events is None else events)]
    for logger in ("", OLD_LOGGER if line.startswith(OLD) else NEW_LOGGER):
        log = CoordinatorLog("c")
        found = log.events_of(AT + line + logger + "\n")
        assert [text.removesuffix(".") for text in map(short, found)] == [text.removesuffix(".") for text in expected]
        assert {event.event_time for event in found} <= {AT_MS}
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
    assert [event.member_id for event in found if isinstance(event, MemberLeft)] == members


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
    assert [type(event) for event in second] == [GroupSnapshot]


# Brokers of these versions wrote these lines while a static member restarted, others took its place one after the
# other, a member was killed, one left, and the broker restarted. (2.4.1 did not fence the last one: no member was
# left.)
VERSIONS = ["2.4.1", "2.5.1", "2.7.2", "2.8.2"]


def broker_log(version: str) -> list[str]:
    return (Path(__file__).parent / "broker_logs" / f"kafka-{version}.log").read_text().splitlines()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", ["text", "JsonLayout", "a container's", "without a logger"])
def test_each_departure_that_a_real_broker_logged_is_found_in_every_layout(version: str, layout: str) -> None:
    log, lines = CoordinatorLog("c"), broker_log(version)
    found = [
        event for line in lines for event in log.events_of(in_layout(line, layout)) if isinstance(event, MemberLeft)
    ]
    assert {event.group for event in found} == {"g"}
    fenced = [line for line in lines if "is identified as a known static member" in line]
    ids = [(match["member"], match["by"]) for line in fenced if (match := FENCED.search(line))]
    assert [departure.member_id for departure in found if departure.how == "fenced"] == [member for member, _ in ids]
    assert len(ids) >= 3
    for event, (_, by) in zip([departure for departure in found if departure.how == "fenced"], ids, strict=True):
        during = re.fullmatch(
            f"broker log: instance id is owned by {by}( during (heartbeat|commit-offsets))?", event.reason or ""
        )
        assert during is not None, event.reason
        assert bool(during[1]) == (version != "2.4.1")
    others = [
        (departure.member_id.partition("-")[0], departure.how) for departure in found if departure.how != "fenced"
    ]
    assert others == [("dyn", "expired"), ("leaves", "left")]
    marked = [line for line in lines if "GroupMetadataManager " not in line]
    assert (log.understood, log.unknown, log.unplaced) == (len(marked), 0, 0)


FENCED = re.compile(r"given member\.id (?P<member>\S+) is .* expected member\.id (?P<by>\S+)")
LINE = re.compile(r"\[(?P<time>[^\]]*)\] (?P<level>\w+) (?P<message>.*) \((?P<logger>[\w.$]+)\)")


def in_layout(line: str, layout: str) -> str:
    match = LINE.fullmatch(line)
    assert match is not None, line
    if layout == "JsonLayout":
        fields = {
            "level": match["level"],
            "loggerName": match["logger"],
            "message": match["message"],
            "timeMillis": AT_MS,
        }
        return json.dumps(fields)
    if layout == "a container's":
        return json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-11-22T19:28:34.885Z"})
    return line if layout == "text" else f"{match['time']} {match['level']} {match['message']}"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fenced_member_of_which_no_line_names_the_group_is_counted(version: str) -> None:
    log = CoordinatorLog("c")
    fenced = [line for line in broker_log(version) if "is identified as a known static member" in line]
    assert [event for line in fenced for event in log.events_of(line)] == []
    assert (log.understood, log.unplaced) == (len(fenced), len(fenced))


def test_a_fenced_member_has_the_group_of_the_one_that_took_its_place() -> None:
    lines, log = broker_log("2.4.1"), CoordinatorLog("c")
    at = next(number for number, line in enumerate(lines) if "is identified as a known static member" in line)
    match = FENCED.search(lines[at])
    assert match is not None
    named = f"Updating metadata for member {match['by']})"
    log.events_of(
        AT
        + OLD
        + "Preparing to rebalance group g in state Stable with old generation 1 (__consumer_offsets-0)"
        + f" (reason: {named}"
    )
    (event,) = log.events_of(lines[at])
    assert short(event) == f"g: {match['member']} fenced: instance id is owned by {match['by']}"


def test_a_fenced_member_of_3_x_is_found_by_the_line_that_replaced_it() -> None:
    log = CoordinatorLog("c")
    fenced = (
        "Request memberId=b-1 for static member with groupInstanceId=i is fenced by current memberId=b-2 during"
        " operation heartbeat"
    )
    assert log.events_of(AT + OLD + fenced) == []
    assert log.unplaced == 1  # no line before names its group
    replaced = "Static member with groupInstanceId=i and unknown member id joins group g in Stable state. Replacing"
    assert log.events_of(AT + OLD + replaced + " previously mapped member b-1 with this groupInstanceId.") == []
    (event,) = log.events_of(AT + OLD + fenced)
    assert short(event) == "g: b-1 fenced: instance id is owned by b-2 during heartbeat"


@pytest.mark.parametrize(
    "line",
    [
        AT + "A new message (kafka.coordinator.group.GroupMetadata)",
        json.dumps(
            {"message": "A new message", "loggerName": "kafka.coordinator.group.GroupMetadata$", "timeMillis": AT_MS}
        ),
        json.dumps(
            {"log": AT + "A new message (kafka.coordinator.group.GroupMetadata)", "time": "2026-11-22T19:28:34.885Z"}
        ),
    ],
)
def test_a_message_of_a_helper_class_that_is_not_understood_is_counted(line: str) -> None:
    log = CoordinatorLog("c")
    assert log.events_of(line) == []
    assert (log.understood, log.unknown) == (0, 1)


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
def test_lines_that_repeat_records_are_no_news(line: str) -> None:
    log = CoordinatorLog("c")
    assert log.events_of(line) == []
    assert (log.understood, log.unknown) == (1, 0)


def test_other_lines_are_none_of_a_coordinator() -> None:
    log = CoordinatorLog("c")
    assert log.events_of(AT + "[Partition orders-0 broker=1] Log loaded for partition orders-0") == []
    assert log.events_of("\tat kafka.coordinator.group.GroupMetadata.inLock(GroupMetadata.scala:227)") == []
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
