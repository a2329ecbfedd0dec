"""A client beside a scripted cluster, for the tests of clients and of endpoints."""

import asyncio

import pytest

from streaming.collectors.rocketmq.remoting.client import ClientLimits, RocketMqClient
from streaming.collectors.rocketmq.remoting.errors import RemotingError
from tests.kit.rocketmq_script import Script

# The longest wait for something that must come; only a failing test waits this long.
LONG_S = 60.0
PATIENT = ClientLimits(
    request_timeout_s=LONG_S, relayed_timeout_s=LONG_S, connect_timeout_s=LONG_S, first_backoff_s=0.01
)


def orders_script(brokers=("broker-a",), members=2):
    """Return a script with a topic of two queues and a group that subscribes to it."""
    script = Script(brokers)
    script.add_topic("orders", 2)
    script.add_group("billing", ["orders"], members)
    return script


def run_client(cluster, use, name_servers=None, limits=PATIENT, **more):
    """Let `use(client)` run in a client of its own."""

    async def main():
        async with RocketMqClient(name_servers or cluster.name_servers, limits=limits, **more) as client:
            return await asyncio.wait_for(use(client), 4 * LONG_S)

    return asyncio.run(main())


def always(answer):
    """Return a responder that answers every request with this."""

    def override(_):
        return answer

    return override


async def failure_of(request):
    """Return the error with which a request ends."""
    with pytest.raises(RemotingError) as caught:
        await request
    return caught.value
