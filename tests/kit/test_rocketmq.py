"""The kit's RocketMQ: clusters start, stop and come back, and members say which queues they hold."""

import pytest

from tests.kit.rocketmq_members import queues_of, wait_until_dealt

pytestmark = pytest.mark.broker


def test_two_members_share_as_avg_says_and_the_queues_of_a_killed_one_go_to_the_other(
    each_rocketmq, new_rocketmq_member
):
    each_rocketmq.create_topic("shared", 5)
    first = new_rocketmq_member(each_rocketmq, "sharing", ["shared"], instance="a")
    assert first.wait_until_started() == "127.0.0.1@a"
    wait_until_dealt([first], queues_of("shared", 5))
    second = new_rocketmq_member(each_rocketmq, "sharing", ["shared"], instance="b")
    wait_until_dealt([first, second], queues_of("shared", 5))
    assert first.held() == tuple(queues_of("shared", 3))
    assert each_rocketmq.member_ids("sharing") == ["127.0.0.1@a", "127.0.0.1@b"]

    second.kill()
    wait_until_dealt([first], queues_of("shared", 5))
