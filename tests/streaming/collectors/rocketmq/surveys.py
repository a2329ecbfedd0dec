"""Surveys as a test writes them: brokers, and which members of each group are connected to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from streaming.collectors.rocketmq.diffing.cluster_diff import ClusterDiff, diff_cluster
from streaming.collectors.rocketmq.diffing.remembered import RememberedState, VolatileState
from streaming.collectors.rocketmq.options import RocketMqOptions
from streaming.collectors.rocketmq.polling.survey import (
    ObservedBroker,
    ObservedGroup,
    ObservedMember,
    ObservedProxy,
    ObservedRoute,
    Survey,
)
from streaming.collectors.rocketmq.remoting.messages import (
    BrokerData,
    ConsumerConnections,
    MemberConnection,
    MessageQueue,
    ProcessQueue,
    QueueData,
    QueueOffsets,
    RunningInfo,
    Subscription,
    TopicConfig,
    TopicRoute,
)
from tests.cluster_options import rocketmq_options
from udfs.model.events import AnyEvent, AssignmentReported, Clock, GroupSettings, GroupSnapshot, Progress

OPTIONS = rocketmq_options("127.0.0.1:9876", cluster="test")
Lists = Mapping[str, Mapping[str, ConsumerConnections | None]]  # by group, by broker
START_MS = 1_790_000_000_000
AVG = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1b2c3d"


def broker(name: str, **more: Any) -> ObservedBroker:
    """Make a broker that answers, with no topics, and the group ``g``."""
    fields: dict[str, Any] = {
        "addresses": {0: f"{name}:10911"},
        "boot_ms": 1,
        "topics": {},
        "groups": frozenset({"g"}),
        **more,
    }
    if fields.get("problem"):
        fields |= {"topics": None, "groups": None, "boot_ms": None}
    return ObservedBroker(name=name, **fields)


def connections(
    ids: Iterable[str | tuple[str, str]], topics: Mapping[str, str] | None = None, **more: Any
) -> ConsumerConnections:
    """Make a list: client ids, or pairs of an id and an address; topics with their expressions."""
    pairs = [(client_id, f"{client_id}:1") if isinstance(client_id, str) else client_id for client_id in ids]
    return ConsumerConnections(
        connections=tuple(MemberConnection(name, address, "JAVA", 513) for name, address in pairs),
        subscriptions={
            topic: Subscription(topic, expression, more.pop("sub_version", 1))
            for topic, expression in (topics or {"t": "*"}).items()
        },
        consume_type=more.get("consume_type", "CONSUME_PASSIVELY"),
        message_model=more.get("message_model", "CLUSTERING"),
    )


def info(
    *queues: tuple[str, str, int],
    topics: Sequence[str] = ("t",),
    pulled_ms: int = START_MS,
    strategy: str | None = AVG,
    locked: bool | None = True,
    **properties: str,
) -> RunningInfo:
    """Make a member's own report."""
    found = {"PROP_CONSUMEORDERLY": "false", "messageModel": "CLUSTERING", **properties}
    if strategy is not None:
        found["allocateMessageQueueStrategy"] = strategy
    return RunningInfo(
        properties=found,
        subscriptions=tuple(Subscription(topic, "*") for topic in topics),
        queues={MessageQueue(*queue): ProcessQueue(last_pull_timestamp=pulled_ms, locked=locked) for queue in queues},
    )


def route(topic: str, counts: Mapping[str, int], perm: int = 6) -> TopicRoute:
    """Make a route."""
    return TopicRoute(
        topic=topic,
        brokers=tuple(BrokerData(name, "c", {0: f"{name}:10911"}) for name in counts),
        queues=tuple(QueueData(name, count, perm) for name, count in counts.items()),
    )


def config(topic: str, count: int, perm: int = 6) -> dict[str, TopicConfig]:
    """Make a broker's settings of one topic."""
    return {topic: TopicConfig(count, perm)}


def offsets(**by_queue: int | tuple[int, int]) -> dict[MessageQueue, QueueOffsets]:
    """Make offsets of queues of the topic t on broker a: ``q0=5``, and where it ends: ``q0=(5, 9)``; else also at 5."""
    stand = {name: offset if isinstance(offset, tuple) else (offset, offset) for name, offset in by_queue.items()}
    return {MessageQueue("t", "a", int(name[1:])): QueueOffsets(end, offset) for name, (offset, end) in stand.items()}


class Rounds:
    """One round after another, and what each reported."""

    def __init__(self, options: RocketMqOptions = OPTIONS) -> None:
        self.options = options
        self.state = RememberedState()
        self.volatile = VolatileState()
        self.now_ms = START_MS

    def take(
        self,
        groups: Lists | None = None,
        *,
        brokers: Sequence[ObservedBroker] | None = None,
        proxies: Mapping[str, ConsumerConnections | str | None] | None = None,
        infos: Mapping[str, RunningInfo | str] | None = None,
        topics: Mapping[str, TopicRoute | None] | None = None,
        offsets: Mapping[MessageQueue, QueueOffsets] | None = None,
        unpolled: Sequence[str] = (),
        topic_modes: Mapping[str, str] | None = None,
        unseen_topics: Sequence[str] = (),
        later_ms: int = 5_000,
    ) -> list[AnyEvent]:
        """Take a round, so much later than the one before; return its events without the clock.

        Args:
            groups: By name: by broker: its list. proxies: By address, for the group ``g``: its list, or why the proxy
                does not answer. infos: By client id, for the group ``g``: a member's own report, or why there is none.
                offsets, unpolled, topic_modes: Of the group ``g``. unseen_topics: Their routes
                were not read yet.
        """
        self.now_ms += later_ms
        polled_brokers = list(brokers or [broker("a")])
        survey = Survey(began_ms=self.now_ms - 100, ended_ms=self.now_ms)
        survey.brokers = {polled.name: polled for polled in polled_brokers}
        survey.proxies = {
            name: ObservedProxy(problem=found if isinstance(found, str) else None)
            for name, found in (proxies or {}).items()
        }
        survey.unseen_topics = set(unseen_topics)
        survey.topics = {
            name: ObservedRoute(at_ms=self.now_ms - 50, route=found) for name, found in (topics or {}).items()
        }
        for name in {*(groups or {}), *self.state.groups}:
            lists = dict((groups or {}).get(name, {}))
            survey.groups[name] = ObservedGroup(lists=lists, at_ms=self.now_ms - 40 if lists else 0)
        if "g" in survey.groups:
            group = survey.groups["g"]
            group.proxy_lists = {name: found for name, found in (proxies or {}).items() if not isinstance(found, str)}
            group.members = {
                client_id: ObservedMember(client_id=client_id, at_ms=self.now_ms - 20, info=found)
                if isinstance(found, RunningInfo)
                else ObservedMember(client_id=client_id, at_ms=self.now_ms - 20, failure=found)  # type: ignore[arg-type]
                for client_id, found in (infos or {}).items()
            }
            group.offsets, group.offsets_at_ms = offsets, self.now_ms - 10
            group.offset_brokers = frozenset({"a"} if offsets is not None else ())
            group.unpolled = set(unpolled)
            group.topic_modes = dict(topic_modes or {})
        found = self.diff(survey)
        self.state, self.volatile = found.state, found.volatile
        if not found.events:
            return []
        *events, clock = found.events
        assert isinstance(clock, Clock)
        assert clock.event_time == self.now_ms
        return events

    def diff(self, survey: Survey) -> ClusterDiff:
        """Report a survey, and check the rules that hold for every round."""
        kept = msgspec.json.encode(self.state)
        found = diff_cluster(self.state, self.volatile, survey, self.options)
        assert msgspec.json.encode(self.state) == kept, "the known state was changed"
        times = [event.event_time for event in found.events]
        assert times == sorted(times)
        assert all(self.state.clock_ms < time <= survey.ended_ms for time in times)
        assert RememberedState.decoded(found.state.encoded()) == found.state
        return found

    def restart(self) -> None:
        """Continue as another process would."""
        self.state, self.volatile = RememberedState.decoded(self.state.encoded()), VolatileState()


def snapshots(events: Iterable[AnyEvent]) -> list[GroupSnapshot]:
    """Return the snapshots among events."""
    return [event for event in events if isinstance(event, GroupSnapshot)]


def ids(event: AnyEvent) -> list[str]:
    """Return the members of a snapshot."""
    assert isinstance(event, GroupSnapshot)
    return [member.member_id for member in event.members]


def observed(event: AnyEvent) -> list[str]:
    """Return the kinds of a snapshot's observations."""
    assert isinstance(event, GroupSnapshot)
    return [observation.kind for observation in event.observations or ()]


A, B = broker("a"), broker("b")


ONE = {"g": {"a": connections(["c1"])}}


TWO = {"g": {"a": connections(["c1", "c2"])}}


def reports(events: list[AnyEvent]) -> list[AssignmentReported]:
    """Return the reported assignments among events."""
    return [event for event in events if isinstance(event, AssignmentReported)]


def settings(events: list[AnyEvent]) -> list[GroupSettings]:
    """Return the settings among events."""
    return [event for event in events if isinstance(event, GroupSettings)]


def details(events: list[AnyEvent], kind: str) -> list[str | None]:
    """Return the details of the observations of one kind in the only snapshot."""
    (snapshot,) = snapshots(events)
    return [observation.detail for observation in snapshot.observations or () if observation.kind == kind]


def lags(events: list[AnyEvent]) -> dict[int, tuple[int | None, int | None, bool]]:
    """Return the reported offsets, by queue."""
    queues = [queue for event in events if isinstance(event, Progress) for queue in event.queues]
    return {queue.queue_id: (queue.offset, queue.end_offset, queue.moved) for queue in queues}


def both(*members: str) -> Lists:
    """Let two brokers list the same members of the group ``g``."""
    return {"g": {"a": connections(members), "b": connections(members)}}


def first_round(*members: str, rounds: Rounds | None = None) -> Rounds:
    """Take a first round with two brokers."""
    rounds = rounds or Rounds()
    rounds.take(both(*members), brokers=[A, B], infos=dict.fromkeys(members, info()))
    return rounds
