"""Contents of MetaQ's nodes, of current and of old versions, and contents that are not valid."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.collectors.metaq.znodes import (
    Concern,
    Paths,
    UnreadableNode,
    client_of_member,
    concern_of,
    read_broker,
    read_offset,
    read_owner,
    read_partition,
    read_share,
    read_subscriptions,
    violation_of,
)
from udfs.model.events import MAX_INT64, MAX_QUEUE_COUNT

ANY_BYTES = st.binary(max_size=60) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass"))
LIKELY = st.sampled_from([b"0", b"-", b"12", b'{"broker":"0-m","numParts":', b"}", b"[", b"9" * 19, b"a,b", b"\xff"])


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b'{"broker":"0-m","numParts":12}', 12),
        (b'{"numParts":"7","broker":"0-s1"}', 7),
        (b'{"numParts":0}', 0),
        (b'{"numParts":-3}', 0),
        (b"{}", 0),
        (b'{"numParts":5,"later":{"fields":[1]}}', 5),
    ],
)
def test_a_brokers_share_is_read(data: bytes, count: int) -> None:
    assert read_share(data) == count


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"12", "not_a_topic_broker"),
        (b"", "not_a_topic_broker"),
        (b'{"numParts":"many"}', "not_a_topic_broker"),
        (b'{"numParts":1e400}', "not_a_topic_broker"),
        (b"[" * 5_000, "not_a_topic_broker"),
        (b'{"x":' * 5_000, "not_a_topic_broker"),
        (b"\xff\xfe", "not_utf8"),
        (b'{"numParts":%d}' % (MAX_QUEUE_COUNT + 1), "too_many_partitions"),
    ],
)
def test_a_share_that_cannot_be_read_has_a_named_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableNode) as reported:
        read_share(data)
    assert str(reported.value) == reason


def test_a_share_of_old_is_digits_alone() -> None:
    assert [read_share(text, old=True) for text in (b"0", b"12", b" 7\n", b"+3")] == [0, 12, 7, 3]
    for text in (b"", b"-1", b"1.5", b'{"numParts":3}', "١٢".encode()):
        with pytest.raises(UnreadableNode):
            read_share(text, old=True)


@pytest.mark.parametrize(
    ("data", "offset"),
    [(b"71234-500", 500), (b"500", 500), (b"-5-7", 7), (b"0", 0), (b"1-%d" % MAX_INT64, MAX_INT64)],
)
def test_offsets_of_both_ages_are_read(data: bytes, offset: int) -> None:
    assert read_offset(data) == offset


@pytest.mark.parametrize("data", [b"", b"-", b"-5", b"5-", b"abc", b"1-%d" % (MAX_INT64 + 1), b"\xff", b"1 2"])
def test_offsets_that_are_none_are_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableNode):
        read_offset(data)


def test_names() -> None:
    assert read_partition("0-11") == ("0", 11)
    assert [read_broker(name) for name in ("0-m", "12-s3", "0--m")] == ["0", "12", "0"]
    for name in ("0", "a-1", "0-1-2", "-1", "0-99999999999", "", "0-²"):
        with pytest.raises(UnreadableNode):
            read_partition(name)
    for name in ("0", "a-m", "0-m-1", "", "-"):
        with pytest.raises(UnreadableNode):
            read_broker(name)
    assert read_subscriptions(b"b,a,,b, c") == ("a", "b", "c")
    assert read_subscriptions(b"") == ()
    assert read_owner(b"billing_x") == "billing_x"
    with pytest.raises(UnreadableNode):
        read_owner(b"")


def test_a_consumers_own_id_and_address() -> None:
    assert client_of_member("g", "g_10.0.0.7-4711-1772334720250-1") == ("10.0.0.7-4711-1772334720250-1", "10.0.0.7")
    assert client_of_member("g", "g_chosen") == ("chosen", None)
    assert client_of_member("g", "another") == ("another", None)
    assert client_of_member("g", "g_") == ("g_", None)


@pytest.mark.parametrize(
    ("path", "concern"),
    [
        ("/meta/consumers", Concern("groups")),
        ("/meta/consumers/g/ids", Concern("group", "g")),
        ("/meta/consumers/g/ids/g_1", Concern("group", "g")),
        ("/meta/consumers/g/owners", Concern("group", "g")),
        ("/meta/consumers/g/owners/t", Concern("owners", "g")),
        ("/meta/brokers/topics-sub", Concern("topics")),
        ("/meta/brokers/topics-pub", Concern("topics")),
        ("/meta/brokers/topics/t/0-m", Concern("topic", "t")),
        ("/meta/brokers/ids", None),
        ("/elsewhere", None),
    ],
)
def test_the_group_or_topic_that_a_change_concerns(path: str, concern: Concern | None) -> None:
    assert concern_of(Paths("/meta"), path) == concern


@given(st.lists(LIKELY | ANY_BYTES, max_size=6).map(b"".join))
def test_no_bytes_are_worse_than_unreadable(data: bytes) -> None:
    violation = violation_of("/x", "reason", data)
    assert len(violation.raw) <= 200
    for read in (read_share, lambda data: read_share(data, old=True), read_offset, read_owner, read_subscriptions):
        with contextlib.suppress(UnreadableNode):
            read(data)
    for read_a_name in (read_partition, read_broker):
        with contextlib.suppress(UnreadableNode):
            read_a_name(data.decode(errors="replace"))
