"""Shell: the protocol's codes of requests and responses.

Source: RocketMQ 4.9.8 and 5.5.0, ``org.apache.rocketmq.remoting.protocol.RequestCode`` and ``ResponseCode`` (in 4.x
under ``org.apache.rocketmq.common.protocol``).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

# `MQVersion` as an ordinal: V5_5_0. From V4_9_4 (401) on the name server writes routes as standard JSON.
CLIENT_VERSION: Final = 513


class RequestCode(IntEnum):
    """Request codes, none of which changes anything on a server."""

    GET_ALL_TOPIC_CONFIG = 21
    GET_BROKER_RUNTIME_INFO = 28
    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_TOPIC_STATS_INFO = 202
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_CONSUME_STATS = 208
    GET_CONSUMER_RUNNING_INFO = 307
    QUERY_ASSIGNMENT = 400
    GET_ALL_MESSAGE_REQUEST_MODE = 402


class ResponseCode(IntEnum):
    """Response codes, as far as the monitor distinguishes them."""

    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    GO_AWAY = 1500
