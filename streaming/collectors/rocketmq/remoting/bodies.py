"""Shell: the bodies of answers, decoded to the types of ``model``. Pure.

Most bodies are JSON that msgspec reads straight into its types. Bodies with queues as keys become JSON by one
substitution; other output of fastjson goes through the slower reader of ``fastjson``. All readers give the same result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from streaming.collectors.rocketmq.remoting import fastjson
from streaming.collectors.rocketmq.remoting.codes import RequestCode
from streaming.collectors.rocketmq.remoting.messages import (
    Assignment,
    BrokerData,
    BrokerRuntime,
    ClusterInfo,
    ConsumerConnections,
    ConsumeStats,
    LogBounds,
    MemberConnection,
    MessageQueue,
    MessageRequestMode,
    PopProcessQueue,
    ProcessQueue,
    QueueData,
    QueueOffsets,
    RunningInfo,
    StaticMapping,
    Subscription,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicRoute,
)

T = TypeVar("T")

_KEY_AS_TEXT: Final = re.compile("([^\0]*+)\0([^\0]*+)\0(-?[0-9]{1,10})")
# A queue as a key, in the orders in which Java and Go clients write it. Between quotation marks no string can hold it
# unescaped, so it occurs nowhere else.
_JAVA_KEY: Final = re.compile(
    rb'(?<=[{,])\{"brokerName":"([^"\\]*+)","queueId":(-?[0-9]{1,10}),"topic":"([^"\\]*+)"\}(?=:)'
)
_GO_KEY: Final = re.compile(
    rb'(?<=[{,])\{"topic":"([^"\\]*+)","brokerName":"([^"\\]*+)","queueId":(-?[0-9]{1,10})\}(?=:)'
)
_JAVA_KEY_AS_TEXT: Final = rb'"\3\\u0000\1\\u0000\2"'
_GO_KEY_AS_TEXT: Final = rb'"\1\\u0000\2\\u0000\3"'
# fastjson 1 writes a repeated object like this. No recorded answer has one, and read as an object it would be empty.
_REFERENCE: Final = b'{"$ref":'


class BodyError(ValueError):
    """A body that does not answer its request.

    Args:
        problem: The error, with the field and its position, if it has one.
    """

    def __init__(self, code: int, problem: str) -> None:
        super().__init__(f"body of the answer to request {code}: {problem}")
        self.code = code
        self.problem = problem


class Page(msgspec.Struct, Generic[T]):
    """A table, or as much of it as a broker returns at a time.

    Attributes:
        entries: By name.
        data_version: The broker's version of the table, as JSON; "" if it reports none.
    """

    entries: Mapping[str, T]
    data_version: str


class _ClusterInfo(msgspec.Struct, rename="camel"):
    broker_addr_table: dict[str, BrokerData] = {}


class _TopicRoute(msgspec.Struct, rename="camel"):
    broker_datas: tuple[BrokerData, ...] = ()
    queue_datas: tuple[QueueData, ...] = ()
    topic_queue_mapping_by_broker: dict[str, StaticMapping] | None = None


class _TopicConfigs(msgspec.Struct, rename="camel"):
    topic_config_table: dict[str, TopicConfig]
    data_version: dict[str, Any] | None = None


class _Groups(msgspec.Struct, rename="camel"):
    subscription_group_table: dict[str, SubscriptionGroupConfig]
    data_version: dict[str, Any] | None = None


class _Connections(msgspec.Struct, rename="camel"):
    connection_set: tuple[MemberConnection, ...]
    subscription_table: dict[str, Subscription] = {}
    consume_type: str | None = None
    message_model: str | None = None


class _RunningInfo(msgspec.Struct, rename="camel"):
    properties: dict[str, str | None]
    mq_table: dict[Any, ProcessQueue]
    subscription_set: tuple[Subscription, ...] | None = None
    mq_pop_table: dict[Any, PopProcessQueue] = {}


class _ConsumeStats(msgspec.Struct, rename="camel"):
    offset_table: dict[Any, QueueOffsets]


class _TopicStats(msgspec.Struct, rename="camel"):
    offset_table: dict[Any, LogBounds]


class _Modes(msgspec.Struct, rename="camel"):
    message_request_mode_map: dict[str, dict[str, MessageRequestMode]] = {}


class _Assignments(msgspec.Struct, rename="camel"):
    message_queue_assignments: tuple[Assignment, ...] | None = None


class _Runtime(msgspec.Struct):
    table: dict[str, str]


def cluster_info(body: bytes) -> ClusterInfo:
    """Decode the answer to 106."""
    read = _decode(RequestCode.GET_BROKER_CLUSTER_INFO, body, _ClusterInfo)
    return ClusterInfo({name: read.broker_addr_table[name] for name in sorted(read.broker_addr_table)})


def topic_route(topic: str, body: bytes) -> TopicRoute:
    """Decode the answer to 105, which does not name its topic."""
    read = _decode(RequestCode.GET_ROUTEINFO_BY_TOPIC, body, _TopicRoute)
    return TopicRoute(
        topic,
        tuple(sorted(read.broker_datas, key=lambda data: data.broker_name)),
        tuple(sorted(read.queue_datas, key=lambda data: data.broker_name)),
        read.topic_queue_mapping_by_broker or {},
    )


def topic_configs(body: bytes) -> Page[TopicConfig]:
    """Decode the answer to 21."""
    read = _decode(RequestCode.GET_ALL_TOPIC_CONFIG, body, _TopicConfigs)
    return Page(read.topic_config_table, _as_json(read.data_version))


def groups(body: bytes) -> Page[SubscriptionGroupConfig]:
    """Decode the answer to 201."""
    read = _decode(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, body, _Groups)
    return Page(read.subscription_group_table, _as_json(read.data_version))


def connections(body: bytes) -> ConsumerConnections:
    """Decode the answer to 203."""
    read = _decode(RequestCode.GET_CONSUMER_CONNECTION_LIST, body, _Connections)
    return ConsumerConnections(
        connections=read.connection_set,
        subscriptions=read.subscription_table,
        consume_type=read.consume_type,
        message_model=read.message_model,
    )


def running_info(body: bytes) -> RunningInfo:
    """Decode the answer to 307; clients of some languages write numbers as texts."""
    code = RequestCode.GET_CONSUMER_RUNNING_INFO
    read = _decode(code, body, _RunningInfo)
    return RunningInfo(
        properties={name: value for name, value in read.properties.items() if value is not None},
        subscriptions=read.subscription_set or (),
        queues=_by_queue(code, "mqTable", read.mq_table),
        pop_queues=_by_queue(code, "mqPopTable", read.mq_pop_table),
    )


def consume_stats(body: bytes) -> ConsumeStats:
    """Decode the answer to 208."""
    code = RequestCode.GET_CONSUME_STATS
    read = _decode(code, body, _ConsumeStats)
    return ConsumeStats(_by_queue(code, "offsetTable", read.offset_table))


def topic_stats(body: bytes) -> dict[MessageQueue, LogBounds]:
    """Decode the answer to 202."""
    code = RequestCode.GET_TOPIC_STATS_INFO
    return _by_queue(code, "offsetTable", _decode(code, body, _TopicStats).offset_table)


def message_request_modes(body: bytes) -> tuple[MessageRequestMode, ...]:
    """Decode the answer to 402: sorted by topic and group."""
    table = _decode(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, body, _Modes).message_request_mode_map
    return tuple(table[topic][group] for topic in sorted(table) for group in sorted(table[topic]))


def assignments(body: bytes) -> tuple[Assignment, ...] | None:
    """Decode the answer to 400; None if the broker decides nothing."""
    read = _decode(RequestCode.QUERY_ASSIGNMENT, body, _Assignments).message_queue_assignments
    return None if read is None else tuple(sorted(read, key=lambda assignment: assignment.message_queue))


def broker_runtime(body: bytes) -> BrokerRuntime:
    """Decode the answer to 28."""
    return BrokerRuntime(_decode(RequestCode.GET_BROKER_RUNTIME_INFO, body, _Runtime).table)


def _decode(code: RequestCode, body: bytes, shape: type[T]) -> T:
    if not body:
        raise BodyError(code, "it is empty")
    if _REFERENCE in body:
        raise BodyError(code, "a reference ($ref) is not read")
    text = body
    if b"{{" in body:
        text = _GO_KEY.sub(_GO_KEY_AS_TEXT, _JAVA_KEY.sub(_JAVA_KEY_AS_TEXT, body))
    try:
        return msgspec.json.decode(text, type=shape, strict=False)
    except msgspec.ValidationError as error:
        raise BodyError(code, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # it is not JSON, but fastjson may have written it
    try:
        return msgspec.convert(fastjson.read(body), shape, strict=False, str_keys=True)
    except (msgspec.ValidationError, fastjson.FastjsonError) as error:
        raise BodyError(code, str(error)) from None


def _as_json(data_version: dict[str, Any] | None) -> str:
    return "" if data_version is None else msgspec.json.encode(data_version, order="sorted").decode()


def _by_queue(code: RequestCode, field: str, table: Mapping[Any, T]) -> dict[MessageQueue, T]:
    """Return a table by its queues, sorted.

    Keys are ``topic NUL broker NUL queue id``, or `fastjson`'s form of an object as a key, or its JSON as a text.
    """
    found: dict[MessageQueue, T] = {}
    for key, value in table.items():
        queue = _queue_of(key)
        if queue is None:
            raise BodyError(code, f"Expected a queue as a key - at `$.{field}`, got {str(key)[:100]!r}")
        found[queue] = value
    return {queue: found[queue] for queue in sorted(found)}


def _queue_of(key: Any) -> MessageQueue | None:
    if isinstance(key, str):
        if parts := _KEY_AS_TEXT.fullmatch(key):
            return MessageQueue(parts[1], parts[2], int(parts[3]))
        try:
            return msgspec.json.decode(key, type=MessageQueue)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str):
        return MessageQueue(*key)
    return None
