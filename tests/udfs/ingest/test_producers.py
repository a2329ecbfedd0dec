"""The two newest event times of a cluster by different producers."""

import hypothesis.strategies as st
import msgspec
import numpy as np
from hypothesis import given

from tests.udfs.event_lines import COMMON, MEMBER, VALID
from udfs.ingest.commit_columns import CommitColumns
from udfs.ingest.heartbeat_columns import HeartbeatColumns
from udfs.ingest.producers import speakers
from udfs.model.events import AnyEvent, Heartbeat, Progress, QueueOffset
from udfs.packets.packet import COLLECTOR, group_key, member_key

LATEST = 100
TIMES = st.integers(95, 105)


def event(kind: str, at: int, **fields: object) -> AnyEvent:
    return msgspec.convert({**VALID[kind], "event_time": at, **fields}, AnyEvent)


def columns(spoken: list[tuple[str, int]]) -> HeartbeatColumns:
    beats = [Heartbeat(**{**COMMON, **MEMBER, "member_id": member}) for member, _ in spoken]
    return HeartbeatColumns.of(beats, np.array([at for _, at in spoken], np.int64))


def two_newest(spoken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the newest time of all, and the newest of any other producer, with the smallest effort of thought."""
    newest = {producer: max(at for at, name in spoken if name == producer) for _, producer in spoken}
    return sorted(((at, producer) for producer, at in newest.items()), reverse=True)[:2]


@given(
    st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), TIMES), max_size=6),
    st.lists(st.tuples(st.sampled_from(["g1", "g2"]), TIMES), max_size=4),
    st.lists(st.tuples(st.sampled_from(["m1", "m4"]), TIMES), max_size=4),
)
def test_each_producer_counts_once_with_its_newest_time_up_to_the_latest_and_beyond_it(
    beats: list[tuple[str, int]], commits: list[tuple[str, int]], departures: list[tuple[str, int]]
) -> None:
    queue = (QueueOffset("t", 0),)
    progress = [Progress(**{**COMMON, "event_time": at}, group=group, queues=queue) for group, at in commits]
    events = [event("member_left", at, member_id=member) for member, at in departures]
    found = speakers(columns(beats), CommitColumns.of(progress), events, LATEST)
    spoken = [(at, member_key(member)) for member, at in beats + departures]
    spoken += [(at, group_key("c1", group)) for group, at in commits]
    values = {at for at, _ in spoken}
    for part, kept in ((0, [at for at in values if at <= LATEST]), (1, [at for at in values if at > LATEST])):
        expected = two_newest([pair for pair in spoken if pair[0] in kept])
        result = found.get("c1", ([], []))[part]
        assert [at for at, _ in result] == [at for at, _ in expected]
        # Of equal times either producer may be named; two are never the same one.
        assert set(result) <= set(spoken)
        assert len({producer for _, producer in result}) == len(result)


def test_members_coordinators_and_collectors_are_producers_and_rare_descriptions_support_no_clock() -> None:
    kinds = {
        "member_joined": member_key("m1"),
        "described heartbeat": member_key("m1"),
        "member_left": member_key("m1"),
        "assignment_reported": member_key("m1"),
        "group_snapshot": group_key("c1", "g1"),
        "group_record": group_key("c1", "g1"),
        "progress": group_key("c1", "g1"),
        "clock": COLLECTOR,
        "topic_queues": None,
        "group_settings": None,
        "group_deleted": None,
        "commits_deleted": None,
    }
    for kind, producer in kinds.items():
        found = speakers(columns([]), [], [event(kind, 50)], LATEST)
        assert found == ({} if producer is None else {"c1": ([(50, producer)], [])}), kind


def test_clusters_do_not_support_each_other() -> None:
    events = [event("clock", 50), event("clock", 101, cluster="c2")]
    assert speakers(columns([("m1", 60)]), [], events, LATEST) == {
        "c1": ([(60, member_key("m1")), (50, COLLECTOR)], []),
        "c2": ([], [(101, COLLECTOR)]),
    }
