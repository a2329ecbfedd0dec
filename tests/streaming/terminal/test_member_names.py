"""Ids of members, shortened for people."""

from __future__ import annotations

import pytest

from streaming.terminal.member_names import brief_id, client_of, is_opaque

UUID = "7d4fbd2e-8f0e-4a52-9d4b-0f6c6d2e8a11"
BASE64 = "nGq0YGz5S2K8mVf1l2Qq7g"


@pytest.mark.parametrize(
    ("member_id", "client_id", "client", "brief"),
    [
        (f"consumer-orders-1-{UUID}", "consumer-orders-1", "consumer-orders-1", "consumer-orders-1-7d4fbd2e"),
        (f"instance-1-{UUID}", "another", "instance-1", "instance-1-7d4fbd2e"),
        (f"rdkafka-{UUID}", None, "rdkafka", "rdkafka-7d4fbd2e"),
        (UUID, "orders-1", "orders-1", "7d4fbd2e"),
        (UUID, None, "7d4fbd2e", "7d4fbd2e"),
        (BASE64, "orders-1", "orders-1", BASE64),
        (BASE64, None, BASE64, BASE64),
        (
            "10.6.1.243@12345#54320647074079",
            "10.6.1.243@12345#54320647074079",
            *["10.6.1.243@12345#54320647074079"] * 2,
        ),
        ("orders_10.1.14.86-20945-6009802096614-7", None, *["orders_10.1.14.86-20945-6009802096614-7"] * 2),
        ("a", None, "a", "a"),
        ("", None, "", ""),
    ],
)
def test_the_permanent_part_of_a_member_is_shown(
    member_id: str, client_id: str | None, client: str, brief: str
) -> None:
    assert client_of(member_id, client_id) == client
    assert brief_id(member_id) == brief
    assert member_id.startswith(brief)


def test_an_id_may_be_nothing_but_random() -> None:
    assert [is_opaque(member_id) for member_id in (UUID, BASE64, f"a-{UUID}", "consumer-1")] == [
        True,
        True,
        False,
        False,
    ]
