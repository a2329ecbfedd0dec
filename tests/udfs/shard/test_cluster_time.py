"""A cluster's own time: what one producer's clock may do to it, and that it advances whichever producer is silent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.core_config import core_config
from tests.corners.corner_run import BASE_MS, CornerRun, in_one, in_waves
from udfs.ingest.heartbeat_columns import HeartbeatColumns
from udfs.ingest.producers import speakers
from udfs.model.events import Clock, Heartbeat
from udfs.packets.packet import Packet
from udfs.shard.cluster_time import ClusterTime

STEP_MS = 10_000  # from one batch of a corner's run to the next
FIRST_BATCH_MS = 30_000
RULES = core_config()

Event = dict[str, Any]
_FOREIGN = ('"group_id": "other"', '"topic": "V"', "foreign")  # what the foreign event itself may bring


def crew(lag_ms: int, rounds: int = 9, clocks: bool = False, members: int = 3) -> list[Event]:
    """Make a group whose members send heartbeats, all of which arrive so late."""
    start = FIRST_BATCH_MS - lag_ms
    events: list[Event] = [{"t": start - 20_000, "type": "topic_queues", "topic": "T", "queue_count": 6}]
    names = [f"m{number}" for number in range(members)]
    for name in names:
        described = {"subscriptions": ["T"], "session_timeout_ms": 15_000, "event_id": f"join-{name}"}
        events.append(_of("member_joined", name, start - 15_000, **described))
    for wave in range(rounds):
        for beat in (-5_000, 0):
            at = start + wave * STEP_MS + beat
            events += [_of("heartbeat", name, at + number, wave=wave) for number, name in enumerate(names)]
            if clocks:
                events.append({"t": at + 50, "type": "clock", "wave": wave})
    return events


def _of(kind: str, member: str, t: int, group: str = "crew", **fields: Any) -> Event:
    return {"t": t, "type": kind, "group": group, "member_id": member, **fields}


def foreign(t: int, wave: int, kind: str, group: str = "other") -> Event:
    event = {"t": t, "type": kind, "wave": wave, "event_id": "foreign"}
    if kind == "topic_queues":
        return event | {"topic": "V", "queue_count": 3}
    if kind == "group_snapshot":
        return event | {"group": group, "generation": 7, "members": [{"member_id": "x", "subscriptions": ["T"]}]}
    if kind == "group_settings":
        return event | {"group": group, "strategy": "roundrobin"}
    return event | {"group": group, "member_id": "x", "subscriptions": ["T"], "session_timeout_ms": 15_000}


def rows_of_crew(run: CornerRun) -> dict[str, list[str]]:
    """Return all that was decided, but for what is of the foreign event."""
    found = {}
    for table, rows in run.outcome().items():
        found[table] = [row for row in rows if not any(word in row for word in _FOREIGN)]
    return found


@cache
def rows_undisturbed(lag_ms: int, clocks: bool) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return what is decided of a crew alone, in its batches and in one."""
    events = crew(lag_ms, clocks=clocks)
    return rows_of_crew(CornerRun(events, soon=True)), rows_of_crew(CornerRun(events, in_one, soon=True))


@pytest.mark.parametrize("clocks", [False, True])
@pytest.mark.parametrize(
    ("lag_ms", "ahead_ms"), [(0, 120_000), (60_000, 30_000), (60_000, 590_000), (300_000, 120_000)]
)
@pytest.mark.parametrize("kind", ["member_joined", "group_snapshot", "topic_queues"])
def test_one_event_from_a_clock_ahead_has_its_own_effects_and_no_other(
    kind: str, ahead_ms: int, lag_ms: int, clocks: bool
) -> None:
    events = crew(lag_ms, clocks=clocks)
    ahead = foreign(FIRST_BATCH_MS - lag_ms + 2 * STEP_MS + ahead_ms, 2, kind)
    without, without_in_one = rows_undisturbed(lag_ms, clocks)

    for cut in (in_waves, _after_its_wave):
        assert rows_of_crew(CornerRun([*events, ahead], cut, soon=True)) == without
    assert rows_of_crew(CornerRun([*events, ahead], in_one, soon=True)) == without_in_one
    assert [json.loads(row)["trigger"] for row in without["rebalances"]] == ["group_created"]
    assert without["rejected_events"] == []


def _after_its_wave(events: Sequence[Event]) -> list[list[Event]]:
    """Let the foreign event come in a batch of its own."""
    batches = in_waves([event for event in events if event["event_id"] != "foreign"])
    return [*batches[:3], [event for event in events if event["event_id"] == "foreign"], *batches[3:]]


@pytest.mark.parametrize("member", ["m0", "x"])
def test_a_clock_ahead_within_the_group_expires_no_other_member(member: str) -> None:
    events = crew(60_000)
    ahead = _of("heartbeat", member, 500_000, wave=1, event_id="foreign")
    run = CornerRun([*events, ahead], soon=True)
    assert [row["trigger"] for row in run.core.rows()] == ["group_created"]
    assert run.core.rejected == []


def test_a_producer_that_is_always_ahead_decides_nothing_either() -> None:
    events = crew(60_000)
    beats = [event for event in events if event["type"] == "heartbeat"]
    ahead = [_of("heartbeat", "x", event["t"] + 200_000, "other", wave=event["wave"]) for event in beats]
    without = rows_of_crew(CornerRun(events, soon=True))
    assert rows_of_crew(CornerRun([*events, *ahead], soon=True)) == without


@pytest.mark.parametrize("lag_ms", [0, 60_000])
def test_two_clocks_ahead_of_their_batch_decide_nothing_while_others_are_in_time(lag_ms: int) -> None:
    events = crew(lag_ms)
    ahead = [
        _of("heartbeat", name, FIRST_BATCH_MS + wave * STEP_MS + 120_000 + number, "other", wave=wave)
        for wave in range(1, 9)
        for number, name in enumerate(("x", "y"))
    ]
    without = rows_of_crew(CornerRun(events, soon=True))
    assert rows_of_crew(CornerRun([*events, *ahead], soon=True)) == without


def test_two_producers_ahead_of_a_source_that_lags_are_the_rest_of_the_cluster_to_each_other() -> None:
    """They look like two with correct clocks while the others are late; either of them alone moves nothing."""
    others = [(BASE_MS + 1_000, 1), (BASE_MS + 2_000, 2)]
    ahead = [(BASE_MS + 40_000, 3), (BASE_MS + 50_000, 4)]
    for spoken, supported in ((ahead[:1], 2_000), (ahead[1:], 2_000), (ahead, 40_000)):
        packet = Packet(newest_ms=BASE_MS + 50_000, speakers=[*others, *spoken])
        found, _ = ClusterTime().advance([packet], BASE_MS + 50_000, BASE_MS + 60_000, RULES)
        assert found == BASE_MS + supported


def test_events_ahead_apply_when_the_clusters_time_reaches_them() -> None:
    events = crew(60_000, rounds=20)
    ahead = foreign(100_000, 1, "member_joined")
    rows = CornerRun([*events, ahead], soon=True).core.rows()
    assert [row["event_time"] - BASE_MS for row in rows if row["group_id"] == "other"][:1] == [100_000]
    assert len([row for row in rows if row["group_id"] == "crew"]) == 1


@pytest.mark.parametrize("shards", [1, 8])
def test_all_shards_find_the_same_time(shards: int) -> None:
    events = [*crew(60_000), foreign(300_000, 1, "member_joined")]
    events += [{**event, "group": "second"} for event in events if event.get("group") == "crew"]
    rows = CornerRun(events, soon=True, config=core_config(shards=shards)).core.rows()
    assert sorted(row["group_id"] for row in rows) == ["crew", "second"]


def test_one_of_two_members_that_dies_expires_without_events_of_others() -> None:
    events = [event for event in crew(0, members=2) if event.get("member_id") != "m1" or event["t"] < 40_000]
    rows = CornerRun(events, soon=True).core.rows()
    assert [(row["trigger"], row["event_time"] - BASE_MS) for row in rows] == [
        ("group_created", 15_000),
        ("session_expired", 50_001),
    ]


def test_a_recording_is_taken_as_it_is() -> None:
    events = [*crew(60_000), foreign(420_000, 1, "member_joined")]
    rows = CornerRun(events).core.rows()
    assert {row["group_id"] for row in rows if row["trigger"] == "session_expired"} == {"crew"}


def test_the_only_one_that_speaks_is_the_clusters_time() -> None:
    time = ClusterTime()
    for at in (1_000, 4_000, 7_000):
        packet = Packet(newest_ms=BASE_MS + at, speakers=[(BASE_MS + at, 7)])
        assert time.advance([packet], BASE_MS + at, BASE_MS + at + 500, RULES) == (BASE_MS + at, -500)


def test_the_newest_producers_do_not_depend_on_how_tasks_and_batches_are_cut() -> None:
    events = [_heartbeat(name, at) for name, at in (("a", 5), ("b", 3), ("a", 9), ("c", 7), ("b", 8))]
    events += [Clock(schema_version=1, event_time=BASE_MS + 4, system="kafka", cluster="c")]
    times = []
    for size in (1, 2, 3, 6):
        time = ClusterTime()
        for start in range(0, len(events), size):
            packets = [
                Packet(newest_ms=BASE_MS + 9, speakers=_spoken([event])) for event in events[start : start + size]
            ]
            time.advance(packets, BASE_MS + 9, BASE_MS + 100, RULES)
        times.append((time.spoken, time.clock))
    assert times == [times[0]] * 4
    assert [at - BASE_MS for at, _ in times[0][0]] == [9, 8]


def _heartbeat(member: str, at: int) -> Heartbeat:
    return Heartbeat(
        schema_version=1, event_time=BASE_MS + at, system="kafka", cluster="c", group="g", member_id=member
    )


def _spoken(events: Iterable[Any]) -> list[tuple[int, int]]:
    return speakers(HeartbeatColumns.of([], np.empty(0, np.int64)), [], events, BASE_MS + 10**6)["c"][0]
