"""Every kind of bad input has its reason; every sound one is an event."""

from __future__ import annotations

import base64
import json

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import example, given, settings

from tests.core_config import core_config
from tests.udfs.event_lines import COMMON, MEMBER, NOW, QUEUE, VALID, envelope, line, with_field, without_field
from udfs.ingest.parser import BareHeartbeat, admit, decode_lines, is_blank, parse
from udfs.model.events import AssignmentReported, Clock, GroupSnapshot, Heartbeat
from udfs.model.rejection import Rejection
from udfs.packets.packet import carry_event

RULES = core_config()
SMALL = core_config(max_event_bytes=1024)

BAD_INPUTS = [
    # the bytes
    (b'{"cluster":"\xff"}', "not_utf8"),
    (with_field("note", "?").replace(b"?", b"\xc3"), "not_utf8"),
    ('{"a":1}'.encode("utf-16"), "not_utf8"),
    (b"heartbeat g1 m1", "not_json"),
    (b"\x00\x00\x00", "not_json"),
    (b"{'type': 'clock'}", "not_json"),
    (with_field("note", 1).replace(b"}", b",}"), "not_json"),
    (line(VALID["clock"])[:-1], "truncated_json"),
    (line(VALID["group_snapshot"])[:200], "truncated_json"),
    (line(VALID["clock"]) + b" {}", "trailing_bytes"),
    (b"[]", "not_an_object"),
    (b'"clock"', "not_an_object"),
    (b"null", "not_an_object"),
    (line([VALID["clock"]]), "not_an_object"),  # type: ignore[arg-type]
    (with_field("note", float("nan")), "number_not_finite"),
    (with_field("event_time", float("-inf")), "number_not_finite"),
    (line(VALID["heartbeat"]).replace(str(NOW).encode(), b"1e999"), "number_out_of_range"),
    (with_field("member_id", "\ud800"), "lone_surrogate"),
    (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
    (with_field("note", 0).replace(b'"note": 0', b'"note": ' + b"[" * 50_000 + b"]" * 50_000), "too_deep"),
    (with_field("strategy_settings", {"a": [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}), "too_deep"),
    # the version and the type
    (without_field("schema_version"), "missing_schema_version"),
    (with_field("schema_version", "1"), "ill_typed_schema_version"),
    (with_field("schema_version", True), "ill_typed_schema_version"),
    (with_field("schema_version", 1.0), "ill_typed_schema_version"),
    (with_field("schema_version", 2), "unknown_schema_version"),
    (with_field("schema_version", 0), "unknown_schema_version"),
    (without_field("type"), "missing_type"),
    (with_field("type", 7), "ill_typed_type"),
    (with_field("type", None), "ill_typed_type"),
    (with_field("type", "heart_beat"), "unknown_type"),
    (with_field("type", ""), "unknown_type"),
    # needed fields
    (without_field("event_time"), "missing_event_time"),
    (without_field("system"), "missing_system"),
    (without_field("cluster"), "missing_cluster"),
    (without_field("group"), "missing_group"),
    (without_field("member_id"), "missing_member_id"),
    (without_field("topic", "topic_queues"), "missing_topic"),
    (without_field("queues", "topic_queues"), "missing_queues"),
    (without_field("queues", "progress"), "missing_queues"),
    (without_field("queues", "assignment_reported"), "missing_queues"),
    (without_field("group", "group_snapshot"), "missing_group"),
    (with_field("members", [{"host": "h"}], "group_snapshot"), "missing_member_id"),
    (without_field("epoch", "group_record"), "missing_epoch"),
    (with_field("epoch", None, "group_record"), "missing_epoch"),
    (without_field("member_id", "group_record"), "missing_member_id"),
    (with_field("queues", [{"topic": "orders"}], "progress"), "missing_queue_id"),
    (with_field("queues", [{"queue_id": 1}], "progress"), "missing_topic"),
    # types
    (with_field("cluster", 5), "ill_typed_cluster"),
    (with_field("group", None), "ill_typed_group"),
    (with_field("member_id", ["m1"]), "ill_typed_member_id"),
    (with_field("event_id", 17), "ill_typed_event_id"),
    (with_field("system", 1), "ill_typed_system"),
    (with_field("host", 7), "ill_typed_host"),
    (with_field("subscriptions", "orders"), "ill_typed_subscriptions"),
    (with_field("subscriptions", ["orders", 7]), "ill_typed_subscriptions"),
    (with_field("strategy_settings", []), "ill_typed_strategy_settings"),
    (with_field("session_timeout_ms", "10000"), "ill_typed_session_timeout_ms"),
    (with_field("session_timeout_ms", 10_000.0), "ill_typed_session_timeout_ms"),
    (with_field("owned", {}), "ill_typed_owned"),
    (with_field("client_library", 4.1), "ill_typed_client_library"),
    (with_field("reason", {}, "member_left"), "ill_typed_reason"),
    (with_field("queues", {}, "topic_queues"), "ill_typed_queues"),
    (with_field("queue_count", True, "counted topic_queues"), "ill_typed_queue_count"),
    (with_field("generation", "7", "group_snapshot"), "ill_typed_generation"),
    (with_field("members", None, "group_snapshot"), "ill_typed_members"),
    (with_field("members", ["m1"], "group_snapshot"), "ill_typed_members"),
    (with_field("assignments", [], "group_snapshot"), "ill_typed_assignments"),
    (with_field("assignments", {"m1": {"orders": [0, 1]}}, "group_snapshot"), "ill_typed_assignments"),
    (with_field("assignments", {"m1": ["orders-0"]}, "group_snapshot"), "ill_typed_assignments"),
    (with_field("restored", 1, "group_snapshot"), "ill_typed_restored"),
    # values
    (with_field("system", "activemq"), "unknown_system"),
    (with_field("mode", "ring", "group_settings"), "unknown_mode"),
    (with_field("cluster", ""), "empty_cluster"),
    (with_field("group", ""), "empty_group"),
    (with_field("member_id", ""), "empty_member_id"),
    (with_field("event_id", ""), "empty_event_id"),
    (with_field("topic", "", "topic_queues"), "empty_topic"),
    (with_field("assignments", {"": []}, "group_snapshot"), "empty_member_id"),
    (with_field("group", "g" * 32_768), "too_long_group"),
    (with_field("group", "g\x00"), "control_character_in_group"),
    (with_field("member_id", "m\n1"), "control_character_in_member_id"),
    (with_field("member_id", "m\x7f"), "control_character_in_member_id"),
    (with_field("cluster", "\t"), "control_character_in_cluster"),
    (with_field("event_id", "e\x01"), "control_character_in_event_id"),
    (with_field("topic", "\x1b[31m", "topic_queues"), "control_character_in_topic"),
    (with_field("subscriptions", ["a\x00b"]), "control_character_in_subscriptions"),
    (with_field("queues", [{**QUEUE, "queue_id": -1}], "progress"), "negative_queue_id"),
    (with_field("queues", [{**QUEUE, "queue_id": 2**31}], "progress"), "out_of_range_queue_id"),
    (with_field("queues", [{**QUEUE, "offset": -2}], "progress"), "negative_offset"),
    (with_field("queues", [{**QUEUE, "offset": 2**63}], "progress"), "out_of_range_offset"),
    (with_field("queue_count", -1, "counted topic_queues"), "negative_queue_count"),
    (with_field("queue_count", 10**9, "counted topic_queues"), "out_of_range_queue_count"),
    (with_field("session_timeout_ms", -1), "negative_session_timeout_ms"),
    (with_field("rebalance_timeout_ms", -1), "negative_rebalance_timeout_ms"),
    (with_field("session_timeout_ms", 2**53), "out_of_range_session_timeout_ms"),
    (with_field("generation", -1, "group_snapshot"), "negative_generation"),
    (with_field("generation", 2**63, "group_snapshot"), "out_of_range_generation"),
    (with_field("strategy_settings", {"a": {"b": [2**64]}}), "out_of_range_strategy_settings"),
    (with_field("queue_count", 3, "topic_queues"), "queue_count_differs"),
    (with_field("queues", [{"queue_id": 1}, {"queue_id": 1, "rack": "r"}], "topic_queues"), "duplicate_queue"),
    (with_field("queues", [QUEUE, QUEUE], "assignment_reported"), "duplicate_queue"),
    (with_field("assignments", {"m1": [QUEUE, QUEUE]}, "group_snapshot"), "duplicate_queue"),
    (with_field("owned", [QUEUE, QUEUE]), "duplicate_queue"),
    (with_field("members", [{"member_id": "m"}, {"member_id": "m"}], "group_snapshot"), "duplicate_member"),
    (line(VALID["clock"]).replace(b'"cluster"', b'"cluster": 5, "cluster"'), "duplicate_key"),
    # annotations
    (without_field("kind", "annotation"), "missing_kind"),
    (without_field("text", "annotation"), "missing_text"),
    (with_field("kind", "", "annotation"), "empty_kind"),
    (with_field("kind", "k" * 51, "annotation"), "too_long_kind"),
    (with_field("kind", "\x1b[2J", "annotation"), "control_character_in_kind"),
    (with_field("text", " \n", "annotation"), "malformed_text"),
    (with_field("text", "t" * 2_001, "annotation"), "too_long_text"),
    (with_field("text", ["deploy"], "annotation"), "ill_typed_text"),
    (with_field("id", "", "annotation"), "empty_id"),
    (with_field("id", "i" * 256, "annotation"), "too_long_id"),
    (with_field("id", "i\x00", "annotation"), "control_character_in_id"),
    (with_field("url", "javascript:alert(1)", "annotation"), "malformed_url"),
    (with_field("url", "https://a b", "annotation"), "malformed_url"),
    (with_field("url", "https://a\n", "annotation"), "malformed_url"),
    (with_field("url", "https://" + "a" * 2_000, "annotation"), "too_long_url"),
    (with_field("groups", "orders*", "annotation"), "ill_typed_groups"),
    (with_field("groups", [""], "annotation"), "empty_groups"),
    (with_field("hosts", ["h" * 1_001], "annotation"), "too_long_hosts"),
    (with_field("hosts", ["h\x7f"], "annotation"), "control_character_in_hosts"),
    (with_field("client_ids", ["c"] * 101, "annotation"), "too_many_client_ids"),
    (with_field("cluster", "", "annotation"), "empty_cluster"),
    (with_field("from", "yesterday", "annotation"), "from_unparsable"),
    (with_field("from", "2026-11-21T07:12:00", "annotation"), "from_without_zone"),
    (with_field("to", NOW // 1_000, "annotation"), "to_before_2000"),
    (with_field("to", NOW - 86_400_000, "annotation"), "to_before_from"),
    # times
    (with_field("event_time", "21.11.2026 07:12"), "event_time_unparsable"),
    (with_field("event_time", "2026-02-30T00:00:00Z"), "event_time_unparsable"),
    (with_field("event_time", str(NOW)), "event_time_unparsable"),
    (with_field("event_time", "2026-11-21T07:12:00"), "event_time_without_zone"),
    (with_field("event_time", float(NOW)), "ill_typed_event_time"),
    (with_field("event_time", True), "ill_typed_event_time"),
    (with_field("event_time", None), "ill_typed_event_time"),
    (with_field("event_time", 946_684_799_999), "event_time_before_2000"),
    (with_field("event_time", NOW // 1000), "event_time_before_2000"),
    (with_field("event_time", -1), "event_time_before_2000"),
    (with_field("event_time", "1999-12-31T23:59:59.999Z"), "event_time_before_2000"),
    (with_field("event_time", 4_102_444_800_001), "event_time_after_2100"),
    (with_field("event_time", 10**30), "event_time_after_2100"),
    (with_field("event_time", NOW + 600_001), "event_time_ahead_of_clock"),
    (with_field("joined_at", "yesterday", "group_snapshot"), "joined_at_unparsable"),
    (with_field("joined_at", 0, "group_snapshot"), "joined_at_before_2000"),
    (with_field("queues", [{**QUEUE, "last_pull_at": 0}], "assignment_reported"), "last_pull_at_before_2000"),
    (with_field("queues", [{**QUEUE, "held_since": "now"}], "assignment_reported"), "held_since_unparsable"),
    (with_field("queues", [{**QUEUE, "locked": 1}], "assignment_reported"), "ill_typed_locked"),
    (
        with_field("queues", [{**QUEUE, "last_pull_at": NOW}, {**QUEUE, "locked": True}], "assignment_reported"),
        "duplicate_queue",
    ),
    (with_field("departures", [{"member_id": "m", "kind": "left", "at": 5}], "group_snapshot"), "at_before_2000"),
    (with_field("departures", [{"member_id": "m", "kind": "died"}], "group_snapshot"), "unknown_kind"),
    (with_field("departures", [{"kind": "left"}], "group_snapshot"), "missing_member_id"),
    (
        with_field("departures", [{"member_id": "a\tb", "kind": "left"}], "group_snapshot"),
        "control_character_in_departures",
    ),
    (with_field("observations", [{"kind": ""}], "group_snapshot"), "empty_kind"),
    (with_field("observations", [{"kind": "a\nb"}], "group_snapshot"), "control_character_in_observations"),
    # envelopes
    (line(envelope(specversion="0.3")), "cloudevent_unknown_specversion"),
    (line(envelope(specversion=1)), "cloudevent_unknown_specversion"),
    (line(envelope(id=...)), "cloudevent_without_id"),
    (line(envelope(id="")), "cloudevent_without_id"),
    (line(envelope(source=...)), "cloudevent_without_source"),
    (line(envelope(data=...)), "cloudevent_without_data"),
    (line(envelope(data=None)), "cloudevent_without_data"),
    (line(envelope(data=..., data_base64="%%%")), "cloudevent_ill_typed_data_base64"),
    (line(envelope(data=[])), "not_an_object"),
    (line(envelope(data="not an event")), "not_json"),
    (line(envelope(data={**VALID["clock"], "cluster": ""})), "empty_cluster"),
    (line(envelope(data={**VALID["clock"], "event_time": NOW + 600_001})), "event_time_ahead_of_clock"),
]


@pytest.mark.parametrize(("raw", "reason"), BAD_INPUTS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_bad_input_is_rejected_with_its_reason(raw: bytes, reason: str) -> None:
    outcome = parse(raw, NOW, RULES)
    assert isinstance(outcome, Rejection), outcome
    assert outcome.reason == reason, outcome
    assert outcome.detail


def test_there_are_many_kinds_of_bad_input() -> None:
    assert len({reason for _, reason in BAD_INPUTS}) >= 80


def test_an_event_longer_than_the_limit_is_rejected_and_one_at_the_limit_is_not() -> None:
    fitting = line(VALID["clock"]).ljust(1024)
    assert isinstance(parse(fitting, NOW, SMALL), Clock)
    outcome = parse(fitting + b" ", NOW, SMALL)
    assert isinstance(outcome, Rejection)
    assert outcome.reason == "oversized_event"


@pytest.mark.parametrize("name", VALID)
def test_a_valid_event_of_every_type_is_read_whole(name: str) -> None:
    event = parse(line(VALID[name]), NOW, RULES)
    assert not isinstance(event, Rejection), event
    # Everything that was written is there, with times in ms; nothing else is.
    expected = dict(VALID[name])
    if "joined_at" in expected:
        expected["joined_at"] = NOW - 1500
    assert json.loads(msgspec.json.encode(event)) == expected


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("needed", [True, False])
def test_no_field_of_any_event_takes_an_object_of_another_shape(name: str, needed: bool) -> None:
    free = {"strategy_settings", "assignments"}
    for field in VALID[name]:
        if field in free or (field in COMMON or field in MEMBER) != needed:
            continue
        outcome = parse(with_field(field, {"x": {"y": 1}}, of=name), NOW, RULES)
        assert isinstance(outcome, Rejection), field
        assert outcome.reason == f"ill_typed_{field}"


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbf" + line(VALID["heartbeat"]),
        line(VALID["heartbeat"]) + b"\r",
        b"\t " + line(VALID["heartbeat"]) + b" \r\n",
        line(VALID["heartbeat"]).replace(b", ", b",\r"),
        with_field("unheard_of", {"any": ["thing", None, 1e300]}),
        with_field("unheard_of", "\x00\x07"),
        with_field("client_id", None),
        with_field("event_time", "2026-11-21T07:12:00Z"),
        with_field("event_time", "2026-11-21t07:12:00.000z"),
        with_field("event_time", "2026-11-21 09:12:00+02:00"),
        with_field("event_time", "2026-11-20T23:27:00.000999999999-07:45"),
        line(envelope(data=VALID["heartbeat"])),
        line(envelope(data=VALID["heartbeat"], specversion="1.0.2", datacontenttype="application/json")),
        line(envelope(data=json.dumps(VALID["heartbeat"]))),
        line(envelope(data=..., data_base64=base64.b64encode(line(VALID["heartbeat"])).decode())),
    ],
)
def test_other_ways_to_write_the_same_heartbeat_are_accepted(raw: bytes) -> None:
    event = parse(raw, NOW, RULES)
    assert isinstance(event, Heartbeat), event
    assert (event.cluster, event.group, event.member_id, event.event_time) == ("c1", "g1", "m1", NOW)


def test_the_limits_of_time_themselves_are_accepted() -> None:
    for time, batch_ms in ((946_684_800_000, NOW), (4_102_444_800_000, 4_102_444_800_000), (NOW + 600_000, NOW)):
        assert not isinstance(parse(with_field("event_time", time), batch_ms, RULES), Rejection)


def test_the_same_content_has_the_same_id_whatever_its_notation() -> None:
    event = {**VALID["member_left"], "event_time": "2026-11-21T08:12:00.000+01:00", "note": "not of the contract"}
    backwards = dict(reversed(VALID["member_left"].items()))
    ids = {
        carry_event(parse(line(content), NOW, RULES), "", "").event_id
        for content in (event, backwards, VALID["member_left"])
    }
    other = carry_event(parse(with_field("reason", "crash", "member_left"), NOW, RULES), "", "").event_id
    assert len(ids) == 1
    assert other not in ids


def test_times_inside_of_lists_may_be_text_too() -> None:
    event = parse(
        with_field("queues", [{**QUEUE, "last_pull_at": "2026-11-21T07:11:58.5Z"}], "assignment_reported"), NOW, RULES
    )
    assert isinstance(event, AssignmentReported)
    assert event.queues[0].last_pull_at == NOW - 1_500
    departure = {"member_id": "m", "kind": "left", "at": "2026-11-21T08:11:58.5+01:00"}
    snapshot = parse(with_field("departures", [departure], "group_snapshot"), NOW, RULES)
    assert isinstance(snapshot, GroupSnapshot)
    assert [departed.at for departed in snapshot.departures or ()] == [NOW - 1_500]


def test_blank_lines_are_nothing() -> None:
    assert all(is_blank(raw) for raw in (b"", b"\r", b" \t\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"))
    assert not any(is_blank(raw) for raw in (b"\x00", b"{}", b"\xef\xbb\xbf\xef\xbb\xbf"))


# Hostile input: sound lines with pieces cut, doubled, swapped and spoilt; and plain noise.
_PIECES = st.sampled_from(
    [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"\\u0000",
        b"\\ud800",
        b"\x00",
        b"\xff",
        b"\n",
        b"-1",
        b"1e9",
        b'""',
    ]
)
_TOKENS = st.sampled_from(
    [
        b"NaN",
        b"true",
        b"null",
        b"99999999999999999999",
        b"\xef\xbb\xbf",
        b"group",
        b"kafka",
        b"type",
        b"2026-11-21T07:12:00",
    ]
)


@st.composite
def spoilt_lines(draw: st.DrawFn) -> bytes:
    """A sound line, spoilt in up to three places."""
    raw = line(draw(st.sampled_from([*VALID.values(), envelope()])))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(raw)))
        end = min(len(raw), start + draw(st.integers(0, 12)))
        raw = (
            raw[:start]
            + draw(st.one_of(_PIECES, _TOKENS, st.binary(max_size=3), st.just(raw[start:end] * 2)))
            + raw[end:]
        )
    return raw


HOSTILE = st.one_of(spoilt_lines(), st.binary(max_size=200))


@settings(max_examples=1000)
@given(HOSTILE)
@example(b"")
@example(b'{"specversion":"1.0"}')
def test_parsing_never_raises_and_names_what_it_rejects(raw: bytes) -> None:
    outcome = parse(raw, NOW, RULES)
    if isinstance(outcome, Rejection):
        # The last resort, for what no other reason names, is never needed.
        assert outcome.reason != "invalid_event", outcome


@settings(max_examples=500)
@given(st.lists(HOSTILE, max_size=6))
def test_the_fast_way_accepts_nothing_that_the_slow_way_rejects(lines: list[bytes]) -> None:
    decoded = decode_lines(lines)
    assert len(decoded) == len(lines)
    for raw, event in zip(lines, decoded, strict=True):
        if isinstance(event, BareHeartbeat):
            slow = parse(raw, NOW, RULES)
            if isinstance(slow, Heartbeat):
                assert (slow.cluster, slow.group, slow.member_id) == (event.cluster, event.group, event.member_id)
            else:  # types are right, so it can only be what the fast way leaves to be checked
                assert slow.reason.startswith(("event_time_", "control_character_in_")), slow
        elif event is not None:
            assert admit(event, raw, NOW, RULES) == parse(raw, NOW, RULES)
