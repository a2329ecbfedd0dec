"""A RocketMQ cluster as a test imagines it, and the bodies with which its servers would answer.

Bodies have fastjson's odd forms where real servers use them: integers and objects as keys. Each is made once and kept
until the script says that something changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

BOOTED_MS: Final = 1_700_000_000_000
AVERAGELY: Final = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1b2c3d4"
_SYSTEM_GROUPS: Final = ("TOOLS_CONSUMER", "SELF_TEST_C_GROUP", "CID_RMQ_SYS_TRANS")

Queue = tuple[str, str, int]  # topic, broker, queue id


@dataclass(eq=False)
class Member:
    """A consumer.

    Attributes:
        address: its end of the connection; a restarted process has another.
        held: what it says it holds; None: what AVG gives it.
        topics: what it subscribes to; None: what its group does.
        is_silent: it is connected and does not answer.
        knows_running_info: clients of some languages do not.
        unseen_by: names of brokers that do not list it.
        properties: over those that every member has.
    """

    client_id: str
    address: str
    held: Sequence[Queue] | None = None
    topics: Sequence[str] | None = None
    strategy: str = AVERAGELY
    language: str = "JAVA"
    version: int = 513
    is_silent: bool = False
    knows_running_info: bool = True
    unseen_by: frozenset[str] = frozenset()
    properties: Mapping[str, str] = field(default_factory=dict)
    sub_version: int = BOOTED_MS
    last_pull_ms: int = BOOTED_MS
    last_consume_ms: int = BOOTED_MS
    popped: Sequence[Queue] = ()


@dataclass(eq=False)
class Group:
    """A consumer group.

    Attributes:
        offsets: how far it has come, and the queue's end; queues that are not named: 0 of 0.
    """

    name: str
    topics: list[str]
    members: list[Member] = field(default_factory=list)
    message_model: str = "CLUSTERING"
    consume_type: str = "CONSUME_PASSIVELY"
    offsets: dict[Queue, tuple[int, int]] = field(default_factory=dict)


@dataclass(eq=False)
class Topic:
    """A topic.

    Attributes:
        queues: how many on which broker.
        scope: of a static topic, whose queues are then numbered through.
    """

    name: str
    queues: dict[str, int]
    perm: int = 6
    scope: str | None = None


@dataclass(eq=False)
class Broker:
    """A broker, always a master.

    Attributes:
        address: where it listens; the server fills it in.
        is_registered: whether name servers know it.
    """

    name: str
    version: str = "V5_5_0"
    booted_ms: int = BOOTED_MS
    address: str = ""
    is_registered: bool = True


class Script:
    """All of a cluster. Change it through `ScriptedRocketMq.change`, so that no answer is made of half a change."""

    def __init__(self, brokers: Sequence[str] = ("broker-a",), cluster: str = "scripted") -> None:
        self.cluster = cluster
        self.brokers = {name: Broker(name) for name in brokers}
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.starts: dict[tuple[str, str, int], int] = {}  # where queues begin, other than at 0
        self.stored_at: dict[tuple[str, str, int], int] = {}  # when the message before the commit was stored
        self.modes: dict[tuple[str, str], tuple[str, int]] = {}  # (topic, group): (mode, share)
        self.has_routes = True  # false: a name server that was just started
        self._kept: dict[Any, bytes] = {}

    def changed(self) -> None:
        """Forget all bodies that were made."""
        self._kept.clear()

    def add_topic(self, name: str, count: int, brokers: Sequence[str] | None = None) -> Topic:
        """Add a topic with so many queues on each of these brokers, else on all."""
        topic = self.topics[name] = Topic(name, dict.fromkeys(brokers or self.brokers, count))
        return topic

    def add_group(self, name: str, topics: Sequence[str], members: int = 0) -> Group:
        """Add a group with so many members, its retry topic included."""
        self.topics[f"%RETRY%{name}"] = Topic(f"%RETRY%{name}", dict.fromkeys(self.brokers, 1))
        group = self.groups[name] = Group(name, list(topics))
        for number in range(members):
            self.add_member(name, f"10.0.{number // 250}.{number % 250}@{1000 + number}#{number}")
        return group

    def add_member(self, group: str, client_id: str, **more: Any) -> Member:
        """Add a member with a connection of its own."""
        members = self.groups[group].members
        number = len(members)
        member = Member(
            client_id, more.pop("address", f"10.1.{number // 250}.{number % 250}:{40_000 + number}"), **more
        )
        members.append(member)
        return member

    def queues_of(self, topic: str) -> list[Queue]:
        """List the queues of a topic, sorted."""
        found = self.topics.get(topic)
        return (
            []
            if found is None
            else sorted((topic, name, n) for name, count in found.queues.items() for n in range(count))
        )

    def held(self, group: Group, member: Member) -> list[Queue]:
        """List what a member holds: contiguous blocks, the first ones larger by one."""
        if member.held is not None:
            return list(member.held)
        held: list[Queue] = []
        ids = sorted(other.client_id for other in group.members)
        for topic in [*(member.topics or group.topics), f"%RETRY%{group.name}"]:
            queues = self.queues_of(topic)
            if group.message_model == "BROADCASTING":
                held += queues
                continue
            at, each, more = ids.index(member.client_id), *divmod(len(queues), len(ids))
            start = at * each + min(at, more)
            held += queues[start : start + each + (at < more)]
        return held

    def cluster_info(self) -> bytes:
        """Return 106."""
        registered = [broker for broker in self.brokers.values() if broker.is_registered and self.has_routes]
        table = {
            broker.name: {
                "brokerAddrs": {0: broker.address},
                "brokerName": broker.name,
                "cluster": self.cluster,
                "enableActingMaster": False,
            }
            for broker in registered
        }
        clusters = {self.cluster: [broker.name for broker in registered]} if registered else {}
        return fastjson({"brokerAddrTable": table, "clusterAddrTable": clusters})

    def route(self, name: str) -> bytes | None:
        """Return 105; None: unknown."""
        topic = self.topics.get(name)
        if topic is None or not self.has_routes:
            return None
        return self._once(("route", name), lambda: self._route(topic))

    def _route(self, topic: Topic) -> Any:
        brokers = [self.brokers[name] for name in topic.queues if self.brokers[name].is_registered]
        body: dict[str, Any] = {
            "brokerDatas": [
                {"brokerAddrs": {"0": broker.address}, "brokerName": broker.name, "cluster": self.cluster}
                for broker in brokers
            ],
            "filterServerTable": {},
            "queueDatas": [
                {
                    "brokerName": broker.name,
                    "perm": topic.perm,
                    "readQueueNums": topic.queues[broker.name],
                    "topicSysFlag": 0,
                    "writeQueueNums": topic.queues[broker.name],
                }
                for broker in brokers
            ],
        }
        if topic.scope is not None:
            total = sum(topic.queues.values())
            body["topicQueueMappingByBroker"] = {
                broker.name: {"bname": broker.name, "epoch": 1, "scope": topic.scope, "totalQueues": total}
                for broker in brokers
            }
        return body

    def runtime(self, broker: Broker) -> bytes:
        """Return 28; what real brokers report beside it is left out."""
        return fastjson({"table": {"bootTimestamp": str(broker.booted_ms), "brokerVersionDesc": broker.version}})

    def topic_configs(self, broker: Broker) -> bytes:
        """Return 21."""
        return self._once(("topics", broker.name), lambda: self._topic_configs(broker))

    def _topic_configs(self, broker: Broker) -> Any:
        table = {
            topic.name: {
                "order": False,
                "perm": topic.perm,
                "readQueueNums": topic.queues[broker.name],
                "topicFilterType": "SINGLE_TAG",
                "topicName": topic.name,
                "topicSysFlag": 0,
                "writeQueueNums": topic.queues[broker.name],
            }
            for topic in self.topics.values()
            if broker.name in topic.queues
        }
        return {"dataVersion": {"counter": 1, "timestamp": BOOTED_MS}, "topicConfigTable": table}

    def group_configs(self, broker: Broker) -> bytes:
        """Return 201."""
        return self._once(("groups", broker.name), self._group_configs)

    def _group_configs(self) -> Any:
        table = {
            name: {
                "brokerId": 0,
                "consumeBroadcastEnable": True,
                "consumeEnable": True,
                "consumeFromMinEnable": True,
                "groupName": name,
                "notifyConsumerIdsChangedEnable": True,
                "retryMaxTimes": 16,
                "retryQueueNums": 1,
                "whichBrokerWhenConsumeSlowly": 1,
            }
            for name in (*_SYSTEM_GROUPS, *self.groups)
        }
        return {"dataVersion": {"counter": 1, "timestamp": BOOTED_MS}, "subscriptionGroupTable": table}

    def connections(self, broker: Broker, group: Group) -> bytes | None:
        """Return 203; None: nobody is connected."""
        listed = [member for member in group.members if broker.name not in member.unseen_by]
        if not listed:
            return None
        return self._once(("connections", broker.name, group.name), lambda: self._connections(group, listed))

    def _connections(self, group: Group, listed: Sequence[Member]) -> Any:
        # As with real brokers, the last heartbeat decides for all.
        last = max(listed, key=lambda member: member.sub_version)
        return {
            "connectionSet": [
                {
                    "clientAddr": member.address,
                    "clientId": member.client_id,
                    "language": member.language,
                    "version": member.version,
                }
                for member in listed
            ],
            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "consumeType": group.consume_type,
            "messageModel": group.message_model,
            "subscriptionTable": {subscription["topic"]: subscription for subscription in _subscriptions(group, last)},
        }

    def running_info(self, group: Group, member: Member) -> bytes:
        """Return 307."""
        return self._once(
            ("running", group.name, member.client_id, member.address), lambda: self._running(group, member)
        )

    def _running(self, group: Group, member: Member) -> Any:
        ordered = member.properties.get("PROP_CONSUMEORDERLY", "false")
        return {
            "mqPopTable": {
                queue: {"droped": False, "lastPopTimestamp": member.last_pull_ms, "waitAckCount": 0}
                for queue in member.popped
            },
            "mqTable": {
                queue: {
                    "cachedMsgCount": 0,
                    "cachedMsgMaxOffset": 0,
                    "cachedMsgMinOffset": 0,
                    "cachedMsgSizeInMiB": 0,
                    "commitOffset": group.offsets.get(queue, (0, 0))[0],
                    "droped": False,
                    "lastConsumeTimestamp": member.last_consume_ms,
                    "lastLockTimestamp": BOOTED_MS,
                    "lastPullTimestamp": member.last_pull_ms,
                    "locked": True,
                    "transactionMsgCount": 0,
                    "transactionMsgMaxOffset": 0,
                    "transactionMsgMinOffset": 0,
                    "tryUnlockTimes": 0,
                }
                for queue in self.held(group, member)
            },
            "properties": {
                "PROP_CLIENT_VERSION": "V5_5_0",
                "PROP_CONSUMEORDERLY": ordered,
                "PROP_CONSUMER_START_TIMESTAMP": str(BOOTED_MS),
                "PROP_CONSUME_TYPE": group.consume_type,
                "PROP_NAMESERVER_ADDR": "127.0.0.1:9876",
                "allocateMessageQueueStrategy": member.strategy,
                "consumerGroup": group.name,
                "messageModel": group.message_model,
                **member.properties,
            },
            "statusTable": {},
            "subscriptionSet": _subscriptions(group, member),
            "userConsumerInfo": {},
        }

    def consume_stats(self, broker: Broker, group: Group, topic: str | None) -> bytes:
        """Return 208."""
        return self._once(("stats", broker.name, group.name, topic), lambda: self._stats(broker, group, topic))

    def _stats(self, broker: Broker, group: Group, topic: str | None) -> Any:
        topics = [*group.topics, f"%RETRY%{group.name}"] if topic is None else [topic]
        queues = [queue for name in topics for queue in self.queues_of(name) if queue[1] == broker.name]
        table = {}
        for queue in queues:
            consumed, end = group.offsets.get(queue, (0, 0))
            stored_at = self.stored_at.get(queue, 0) if consumed else 0
            offsets = {"brokerOffset": end, "consumerOffset": consumed, "pullOffset": consumed}
            table[queue] = offsets | {"lastTimestamp": stored_at}
        return {"consumeTps": 0.0, "offsetTable": table}

    def topic_stats(self, broker: Broker, topic: str) -> bytes:
        """Return 202."""
        table = {}
        for queue in self.queues_of(topic):
            if queue[1] == broker.name:
                ends = [group.offsets[queue][1] for group in self.groups.values() if queue in group.offsets]
                bounds = {"lastUpdateTimestamp": 0, "maxOffset": max(ends, default=0)}
                table[queue] = bounds | {"minOffset": self.starts.get(queue, 0)}
        return fastjson({"offsetTable": table})

    def request_modes(self) -> bytes:
        """Return 402."""
        table: dict[str, dict[str, Any]] = {}
        for (topic, group), (mode, share) in self.modes.items():
            reported = {"consumerGroup": group, "mode": mode, "popShareQueueNum": share, "topic": topic}
            table.setdefault(topic, {})[group] = reported
        return fastjson({"messageRequestModeMap": table})

    def assignment(self, group: Group, member: Member, topic: str) -> bytes:
        """Return 400."""
        mode, _ = self.modes.get((topic, group.name), ("PULL", 0))
        queues = [queue for queue in self.held(group, member) if queue[0] == topic]
        if mode == "POP":
            queues = [(topic, name, -1) for name in sorted(self.topics[topic].queues)]
        reported = [
            {"messageQueue": {"brokerName": broker, "queueId": number, "topic": topic}, "mode": mode}
            for _, broker, number in queues
        ]
        return fastjson({"messageQueueAssignments": reported})

    def _once(self, key: Any, make: Callable[[], Any]) -> bytes:
        body = self._kept.get(key)
        if body is None:
            body = self._kept[key] = fastjson(make())
        return body


def _subscriptions(group: Group, member: Member) -> list[dict[str, Any]]:
    return [
        {
            "classFilterMode": False,
            "codeSet": [],
            "expressionType": "TAG",
            "subString": "*",
            "subVersion": member.sub_version,
            "tagsSet": [],
            "topic": topic,
        }
        for topic in [*(member.topics or group.topics), f"%RETRY%{group.name}"]
    ]


def fastjson(value: Any) -> bytes:
    """Write a value as fastjson does: integers as keys stay bare, queues as keys are objects."""
    return _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_key(key)}:{_text(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: Any) -> str:
    if isinstance(key, tuple):
        topic, broker, number = key
        return _text({"brokerName": broker, "queueId": number, "topic": topic})
    return str(key) if isinstance(key, int) else json.dumps(key, ensure_ascii=False)
