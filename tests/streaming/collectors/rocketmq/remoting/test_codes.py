"""The requests that the monitor knows."""

import re

import pytest

from streaming.collectors.rocketmq.remoting.codes import RequestCode, ResponseCode
from tests.streaming.collectors.rocketmq.golden_answers import NAMES, VERSIONS, recorded


def test_only_reading_requests_exist():
    # Names in RocketMQ's own RequestCode.
    assert all(re.match(r"(GET|QUERY)_", code.name) for code in RequestCode)


def test_each_code_is_the_number_of_the_protocol():
    # Numbers in the classes of RocketMQ 4.9.8 and 5.5.0.
    assert {code.name: code.value for code in RequestCode} == {
        "GET_ALL_TOPIC_CONFIG": 21,
        "GET_BROKER_RUNTIME_INFO": 28,
        "GET_ROUTEINFO_BY_TOPIC": 105,
        "GET_BROKER_CLUSTER_INFO": 106,
        "GET_ALL_SUBSCRIPTIONGROUP_CONFIG": 201,
        "GET_TOPIC_STATS_INFO": 202,
        "GET_CONSUMER_CONNECTION_LIST": 203,
        "GET_CONSUME_STATS": 208,
        "GET_CONSUMER_RUNNING_INFO": 307,
        "QUERY_ASSIGNMENT": 400,
        "GET_ALL_MESSAGE_REQUEST_MODE": 402,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_answer_has_a_listed_code(version):
    names = [name.partition("/")[2] for name in NAMES if name.startswith(f"{version}/")]
    assert len(names) > 5
    assert {recorded(version, name).code for name in names} <= set(ResponseCode)
