"""Laws of telling over hostile rounds: brokers away, started anew, or listing a part, one twice, or nonsense."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.collectors.rocketmq.remoting.messages import ConsumerConnections, RunningInfo
from tests.cluster_options import rocketmq_options
from tests.streaming.collectors.rocketmq.surveys import Rounds, broker, connections, info, snapshots
from udfs.model.events import AssignmentReported, GroupSnapshot

BROKERS = ("a", "b")
IDS = ("c1", "c2", "c3")
OPTIONS = rocketmq_options("x", cluster="test")

listings = st.one_of(
    st.none(),
    st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(["h:1", "h:2", "h:3", ""])), max_size=5, unique=True).map(
        connections
    ),
)
answers = st.one_of(
    st.sampled_from(["silent", "offline", "unable"]),
    st.lists(st.tuples(st.just("t"), st.sampled_from(BROKERS), st.integers(-1, 2)), unique=True).map(
        lambda queues: info(*queues)
    ),
)
hostile_rounds = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(BROKERS), listings),
        st.dictionaries(st.sampled_from(BROKERS), st.sampled_from(["away", "restarted", "unsteady"])),
        st.dictionaries(st.sampled_from(IDS), answers, max_size=3),
        st.booleans(),
        st.integers(0, 40_000),
    ),
    max_size=12,
)


def brokers_of(states: dict[str, str], boots: Counter[str]):
    """Return the brokers, started anew as often as it says."""
    for name in BROKERS:
        state = states.get(name)
        if state == "restarted":
            boots[name] += 1
        yield broker(
            name, problem="away" if state == "away" else None, boot_ms=1 + boots[name], is_steady=state != "unsteady"
        )


@given(hostile_rounds)
@settings(deadline=None)
def test_whatever_is_seen_a_listed_member_is_told_and_what_is_told_twice_is_told_for_a_reason(rounds_seen) -> None:
    rounds = Rounds()
    boots: Counter[str] = Counter()
    last: GroupSnapshot | None = None
    for lists, states, infos, restarts, later_ms in rounds_seen:
        seen = {name: listed for name, listed in lists.items() if states.get(name) != "away"}
        events = rounds.take({"g": seen}, brokers=list(brokers_of(states, boots)), infos=infos, later_ms=later_ms + 1)
        for snapshot in snapshots(events):
            content = (snapshot.members, snapshot.observations)
            assert last is None or content != (last.members, last.observations), "told again though nothing changed"
            # Who is listed anywhere is a member, as often as the broker that lists it most often says.
            told = Counter(member.member_id for member in snapshot.members)
            for listed in seen.values():
                assert not Counter(one.client_id for one in listed.connections if listed) - told if listed else True
            # Who went is not there, and was there before.
            gone = {(one.member_id, one.host) for one in snapshot.departures or ()}
            assert not gone & {(member.member_id, member.host) for member in snapshot.members}
            last = snapshot
        for report in events:
            if isinstance(report, AssignmentReported):
                assert last is not None
                assert report.member_id in {member.member_id for member in last.members}
                assert all(queue.queue_id >= 0 for queue in report.queues)
        if restarts:
            rounds.restart()


part_lists = st.frozensets(st.sampled_from(IDS))


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(BROKERS), st.sampled_from(["away", "restarted", "unsteady"])),
            part_lists,
            st.booleans(),
        ),
        max_size=15,
    )
)
@settings(deadline=None)
def test_while_all_members_live_no_outage_or_start_of_a_broker_tells_that_one_went(outages) -> None:
    """One that is sound lists all; one that has just started those whom it has heard; within its start anybody."""
    rounds = Rounds(OPTIONS)
    boots: Counter[str] = Counter()
    rounds.take(
        {"g": dict.fromkeys(BROKERS, connections(IDS))}, brokers=[broker(name) for name in BROKERS], infos=told()
    )
    grace_until = dict.fromkeys(BROKERS, 0)
    heard: dict[str, set[str]] = {}
    for states, part, restarts in outages:
        now_ms = rounds.now_ms + 5_000
        lists: dict[str, ConsumerConnections | None] = {}
        for name in BROKERS:
            state = states.get(name)
            if state == "restarted":
                grace_until[name] = now_ms + OPTIONS.boot_grace_ms
                heard[name] = set()
            if state == "away":
                continue
            listed = part
            if state != "unsteady":
                if now_ms >= grace_until[name]:
                    listed = frozenset(IDS)
                else:
                    heard[name] |= part
                    listed = frozenset(heard[name])
            lists[name] = connections(sorted(listed)) if listed else None
        events = rounds.take({"g": lists}, brokers=list(brokers_of(states, boots)))
        for snapshot in snapshots(events):
            assert [member.member_id for member in snapshot.members] == list(IDS)
            assert not snapshot.departures
        if restarts:
            rounds.restart()


def told() -> dict[str, RunningInfo | str]:
    """Return what each member tells of itself."""
    return dict.fromkeys(IDS, info())
