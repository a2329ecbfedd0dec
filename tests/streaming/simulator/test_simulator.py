"""The simulated fleet: its events keep to its script, and its truth keeps to its events."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.machine.clock import now_ms
from streaming.simulator import Cause, ExpectedRebalance, Fleet, LiveWriter, record
from streaming.simulator.heartbeat_members import default_session_timeout_ms
from streaming.simulator.leader import assign_range, assign_roundrobin
from streaming.simulator.load import LoadFleet, write_load
from streaming.simulator.serializer import line
from streaming.simulator.timeline import ACTION, EXPIRY, HEARTBEAT, Delivery, Timeline
from streaming.simulator.truth import Truth, epoch_ms, read_truth, rfc3339, truth_lines
from tests.core_config import core_config
from udfs.ingest.parser import parse
from udfs.model.events import Heartbeat
from udfs.model.rejection import Rejection

TEN_MINUTES_MS = 600_000
SEEDS = range(6)


def lived(seed: int, **how: object) -> tuple[Fleet, list[Delivery]]:
    fleet = Fleet(seed, **how)  # type: ignore[arg-type]
    return fleet, [*fleet.deliveries_until(fleet.start_ms + TEN_MINUTES_MS), *fleet.finish()]


@pytest.fixture(scope="module", params=SEEDS)
def life(request: pytest.FixtureRequest) -> tuple[Fleet, list[Delivery]]:
    return lived(request.param, speed=2.0)


def counted(fleet: Fleet, kind: str) -> Iterator[tuple[ExpectedRebalance, Cause]]:
    """Return what happened in groups that are counted, as far as it does not depend on the reader."""
    for one in fleet.truth:
        for cause in one.causes:
            in_time = one.required and one.late_until is None
            is_twin = (cause.member_id or "").endswith("#2")  # its events carry the id of the other
            if cause.kind == kind and one.generation_source == "counted" and in_time and not is_twin:
                yield one, cause


def told_gone(deliveries: list[Delivery], kind: str) -> set[tuple[str, str, str, int]]:
    """Return who polls tell to have gone that way: cluster, group, member, time of the poll."""
    return {
        (one.event.cluster, one.event.group, departure.member_id, one.event.event_time)
        for one in deliveries
        for departure in getattr(one.event, "departures", None) or ()
        if departure.kind == kind
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class TestSeeds:
    def test_the_same_seed_gives_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            record(Fleet(11), tmp_path / name, 120_000)
        assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
        assert "truth.jsonl" in files_of(tmp_path / "one")

    def test_another_seed_gives_another_life(self) -> None:
        assert lived(1)[0].truth != lived(2)[0].truth

    def test_it_does_not_matter_in_which_steps_life_is_read(self) -> None:
        whole, stepwise = Fleet(3), Fleet(3)
        at_once = [line(one) for one in whole.deliveries_until(whole.start_ms + 60_000)]
        in_steps = [
            line(one) for step in range(0, 60_001, 250) for one in stepwise.deliveries_until(stepwise.start_ms + step)
        ]
        assert in_steps == at_once
        assert stepwise.truth == whole.truth


class TestEvents:
    def test_every_line_is_an_event_of_the_contract(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, deliveries = life
        later = fleet.start_ms + 2 * TEN_MINUTES_MS
        outcomes = [parse(line(one), later, core_config()) for one in deliveries]
        assert [one for one in outcomes if isinstance(one, Rejection)] == []

    def test_both_notations_say_the_same(self, life: tuple[Fleet, list[Delivery]]) -> None:
        _, deliveries = life
        for one in deliveries[:500]:
            said = [
                parse(line(Delivery(0, one.event, otherwise)), one.event.event_time, core_config())
                for otherwise in (True, False)
            ]
            assert said[0] == said[1]

    def test_without_disorder_everything_comes_soon_and_once(self) -> None:
        fleet, deliveries = lived(4, disorder=0.0)
        assert max(one.deliver_at - one.event.event_time for one in deliveries[:-3]) < 400
        plain = [line(Delivery(0, one.event)) for one in deliveries if not isinstance(one.event, Heartbeat)]
        with_id = [text for text in plain if b'"event_id"' in text]
        assert len(with_id) == len(set(with_id)) > 100
        assert all(one.required and one.late_until is None for one in fleet.truth)

    def test_a_silent_source_tells_nothing_of_its_silence(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, deliveries = life
        assert fleet.silences
        for silence in fleet.silences:
            times = {one.event.event_time for one in deliveries if one.event.cluster == silence.cluster}
            assert not [one for one in times if silence.silent_from < one < silence.silent_to]
            assert {silence.silent_from, silence.silent_to} <= times

    def test_some_events_come_twice_and_some_come_late(self) -> None:
        _, deliveries = lived(0, speed=4.0)
        times_told = Counter(line(Delivery(0, one.event)) for one in deliveries if not isinstance(one.event, Heartbeat))
        assert max(times_told.values()) > 1
        newest: dict[str, int] = {}
        behind = Counter()
        for one in deliveries:
            newest[one.event.cluster] = max(newest.get(one.event.cluster, 0), one.event.event_time)
            behind[(newest[one.event.cluster] - one.event.event_time) // 2_000] += 1
        assert behind[0] > 0.9 * len(deliveries)
        assert sum(behind.values()) > behind[0]


class TestTruth:
    def test_all_kinds_of_causes_come_up(self) -> None:
        kinds = {cause.kind for seed in SEEDS for one in lived(seed, speed=2.0)[0].truth for cause in one.causes}
        assert kinds == {
            "group_created",
            "session_expired",
            "member_left",
            "member_gone",
            "member_joined",
            "subscription_changed",
            "strategy_changed",
            "settings_changed",
            "queue_count_changed",
            "cooperative_follow_up",
            "coordinator_changed",
            "unexplained",
        }

    def test_a_session_ends_a_timeout_after_its_last_sign_of_life(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, deliveries = life
        signs: dict[tuple[str, str, str], list[tuple[int, int | None]]] = {}
        timeouts: dict[tuple[str, str, str], int] = {}
        for one in deliveries:
            event = one.event
            if event.__class__.__name__ in ("Heartbeat", "MemberJoined"):
                who = (event.cluster, event.group, event.member_id)
                signs.setdefault(who, []).append(event.event_time)
                if event.session_timeout_ms is not None:
                    timeouts[who] = event.session_timeout_ms
        checked = 0
        polled = told_gone(deliveries, "expired")
        for one, cause in counted(fleet, "session_expired"):
            who = (one.cluster, one.group_id, cause.member_id or "")
            if (*who, one.event_time) in polled:
                continue
            last = max(time for time in signs[who] if time <= one.event_time)
            assert last + timeouts.get(who, default_session_timeout_ms(one.system)) == one.event_time
            checked += 1
        assert checked > 5

    def test_who_joins_tells_so_at_that_moment(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, deliveries = life
        told = set()
        for one in deliveries:
            if one.event.__class__.__name__ in ("Heartbeat", "MemberJoined"):
                told.add((one.event.cluster, one.event.group, one.event.member_id, one.event.event_time))
            if one.event.__class__.__name__ == "GroupSnapshot":
                told |= {
                    (one.event.cluster, one.event.group, member.member_id, one.event.event_time)
                    for member in one.event.members
                }
        joins = [
            (one.cluster, one.group_id, cause.member_id, one.event_time)
            for one, cause in counted(fleet, "member_joined")
        ]
        assert len(joins) > 100
        assert set(joins) <= told

    def test_every_goodbye_of_a_member_is_a_cause_and_no_other(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, deliveries = life
        said = {
            (one.event.cluster, one.event.group, one.event.member_id, one.event.event_time)
            for one in deliveries
            if one.event.__class__.__name__ == "MemberLeft"
        } | told_gone(deliveries, "left")
        expected = {
            (one.cluster, one.group_id, cause.member_id, one.event_time)
            for one in fleet.truth
            for cause in one.causes
            if cause.kind == "member_left" and one.generation_source == "counted"
        }
        assert said == expected

    def test_each_new_generation_of_a_coordinator_is_one_rebalance(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, deliveries = life
        reported = [one for one in fleet.truth if one.generation_source == "reported"]
        told = {
            (one.event.cluster, one.event.group, one.event.generation, one.event.event_time)
            for one in deliveries
            if one.event.__class__.__name__ == "GroupSnapshot" and one.event.generation
        }
        expected = {(one.cluster, one.group_id, one.generation, one.event_time) for one in reported}
        assert len(expected) == len(reported) > 20
        assert expected <= told

    def test_causes_of_one_moment_are_one_rebalance(self) -> None:
        truth = Truth()
        truth.reported("c", 20)
        for cause in (Cause("member_left", "a"), Cause("member_joined", "b"), Cause("member_left", "a")):
            truth.counted("c", "kafka", "g", 10, cause, 3)
        (one,) = truth.rebalances()
        assert one.causes == [Cause("member_joined", "b"), Cause("member_left", "a")]
        assert one.generation == 1

    def test_what_lies_beyond_the_newest_event_cannot_be_known(self) -> None:
        truth = Truth()
        truth.reported("c", 20)
        truth.counted("c", "kafka", "g", 20, Cause("session_expired", "a"), 1)
        truth.counted("c", "kafka", "g", 21, Cause("session_expired", "b"), 0)
        assert [one.event_time for one in truth.rebalances()] == [20]

    def test_truth_is_taken_once_and_in_the_end_whole(self) -> None:
        whole, piecemeal = Fleet(8), Fleet(8)
        taken: list[ExpectedRebalance] = []
        for step in range(1_000, 120_001, 1_000):
            list(piecemeal.events_until(piecemeal.start_ms + step))
            taken += piecemeal.take_truth()
        list(whole.events_until(whole.start_ms + 120_000))
        assert sorted(truth_lines([one]) for one in taken) == sorted(truth_lines([one]) for one in whole.truth)

    def test_truth_is_read_as_it_was_written(self, life: tuple[Fleet, list[Delivery]]) -> None:
        fleet, _ = life
        assert read_truth(truth_lines(fleet.truth)) == fleet.truth

    def test_times_are_written_in_utc_with_milliseconds(self) -> None:
        assert rfc3339(1_767_225_600_007) == "2026-01-01T00:00:00.007Z"
        assert epoch_ms("2026-01-01T00:00:00.007Z") == 1_767_225_600_007


class TestLeaders:
    def test_range_deals_pieces_and_the_first_get_more(self) -> None:
        members = [(name, None, ("t",), []) for name in ("b", "a", "c")]
        assert assign_range(members, {"t": 7}) == {  # Kafka's RangeAssignor: 7 = 3 + 2 + 2
            "a": [("t", 0), ("t", 1), ("t", 2)],
            "b": [("t", 3), ("t", 4)],
            "c": [("t", 5), ("t", 6)],
        }

    def test_roundrobin_passes_over_who_does_not_subscribe(self) -> None:
        # The example in the javadoc of Kafka's RoundRobinAssignor.
        members = [("C0", None, ("t0",), []), ("C1", None, ("t0", "t1"), []), ("C2", None, ("t0", "t1", "t2"), [])]
        assert assign_roundrobin(members, {"t0": 1, "t1": 2, "t2": 3}) == {
            "C0": [("t0", 0)],
            "C1": [("t1", 0)],
            "C2": [("t1", 1), ("t2", 0), ("t2", 1), ("t2", 2)],
        }


class TestTimeline:
    def test_of_one_moment_actions_run_before_heartbeats_and_expiries_last(self) -> None:
        timeline, ran = Timeline(0), []
        for phase in (EXPIRY, HEARTBEAT, ACTION):
            timeline.at(5, lambda phase=phase: ran.append(phase), phase)
        timeline.run_until(5)
        assert ran == [ACTION, HEARTBEAT, EXPIRY]


class TestLive:
    def test_what_is_written_live_is_what_reaches_readers_by_then(self, tmp_path: Path) -> None:
        fleet, same = Fleet(5), Fleet(5)
        writer = LiveWriter(fleet, tmp_path, None)
        for step in range(1_000, 90_001, 1_000):
            writer.write_until(fleet.start_ms + step)
        written = [text for path in sorted(tmp_path.iterdir()) for text in path.read_bytes().splitlines(keepends=True)]
        assert written == [line(one) for one in same.deliveries_until(same.start_ms + 90_000)]
        assert writer.events == len(written)

    def test_nobody_sees_half_a_file_and_stopping_writes_the_rest(self, tmp_path: Path) -> None:
        fleet = Fleet(5, start_ms=now_ms() - 2_000)
        with LiveWriter(fleet, tmp_path / "events", tmp_path / "truth.jsonl"):
            pass
        names = [path.name for path in (tmp_path / "events").iterdir()]
        assert [name for name in names if not name.endswith(".jsonl") or name.startswith(".")] == []
        assert len(names) == 1


class TestLoad:
    def test_every_member_joins_once_and_beats_in_each_round(self, tmp_path: Path) -> None:
        said = write_load(tmp_path, groups=30, members=301, rounds=2)
        events = [json.loads(text) for path in sorted(tmp_path.iterdir()) for text in path.read_bytes().splitlines()]
        joined = Counter((one["group"], one["member_id"]) for one in events if one["type"] == "member_joined")
        beats = Counter((one["group"], one["member_id"]) for one in events if one["type"] == "heartbeat")
        assert said["events"] == len(events) == 1_000 + 301 * 3
        assert len(joined) == 301
        assert set(joined.values()) == {1}
        assert beats == dict.fromkeys(joined, 2)
        assert len({group for group, _ in joined}) == 30

    def test_pieces_of_a_round_are_the_round(self) -> None:
        fleet = LoadFleet(groups=7, members=50)
        assert b"".join(fleet.heartbeat_files(5, 10, 31, 4)) == fleet.heartbeats(5, 10, 31)

    def test_its_lines_are_events_of_the_contract(self) -> None:
        fleet = LoadFleet(groups=3, members=4)
        now = 1_767_225_600_000
        text = fleet.topics(now) + fleet.joins(now) + fleet.heartbeats(now)
        assert not [one for one in text.splitlines() if isinstance(parse(one, now, core_config()), Rejection)]


def test_a_recording_is_not_mixed_with_another(tmp_path: Path) -> None:
    record(Fleet(1), tmp_path, 5_000)
    with pytest.raises(FileExistsError):
        record(Fleet(2), tmp_path, 5_000)


def test_the_simulator_knows_nothing_of_the_core_but_the_events() -> None:
    import streaming.simulator

    folder = Path(streaming.simulator.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    assert {name for name in imported if name.split(".")[0] == "udfs"} == {"udfs.model.events"}
