"""Errors between the monitor and a server: each names the server, and what happened."""

import pytest

from streaming.collectors.rocketmq.remoting.codes import RequestCode
from streaming.collectors.rocketmq.remoting.errors import ProtocolError, Refused, RemotingError, TimedOut, Unreachable


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unreachable("h:1", "Connection refused"), "h:1: Connection refused"),
        (TimedOut("h:1", RequestCode.GET_CONSUME_STATS, 2.5), "h:1: no answer to request 208 within 2.5 s"),
        (Refused("h:1", 203, 206, "not online"), "h:1: request 203 was refused with code 206: not online"),
        (Refused("h:1", 203, 1, None), "h:1: request 203 was refused with code 1: no remark"),
        (ProtocolError("h:1", "no JSON"), "h:1: no JSON"),
        (ProtocolError("h:1", "no JSON", 203), "h:1: answer to request 203: no JSON"),
    ],
)
def test_each_names_the_server_and_what_happened(error, text):
    assert isinstance(error, RemotingError)
    assert (str(error), error.address) == (text, "h:1")
    assert f"{error.address}: {error.problem}" == text
