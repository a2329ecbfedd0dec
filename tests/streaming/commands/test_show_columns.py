"""The columns of `show`: as Kafka's own tool names them, with cluster and group where rows are of several groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from streaming.commands.show_columns import (
    audit_columns,
    finding_columns,
    group_columns,
    member_columns,
    progress_columns,
    rebalance_columns,
)
from streaming.terminal.output import Shown


def titles(columns: Sequence[Shown]) -> list[str]:
    return [column.header for column in columns]


@pytest.mark.parametrize("columns", [audit_columns, finding_columns, rebalance_columns])
def test_rows_of_several_groups_name_their_cluster_and_group(columns: Callable[..., list[Shown]]) -> None:
    alone, together = titles(columns(with_group=False)), titles(columns(with_group=True))
    assert [title for title in together if title not in alone] == ["CLUSTER", "GROUP"]
    assert [title for title in together if title in alone] == alone


def test_members_have_the_columns_of_which_some_has_a_value() -> None:
    plain, streams = titles(member_columns([{"epoch": None}])), titles(member_columns([{"epoch": None}, {"epoch": 3}]))
    assert [title for title in streams if title not in plain] == ["CURRENT-EPOCH", "TARGET-EPOCH"]
    described = {"target": [], "protocol": "streams", "process_id": "p"}
    more = [title for title in titles(member_columns([described])) if title not in plain]
    assert more == ["TARGET-ASSIGNMENT", "PROTOCOL", "PROCESS"]


@pytest.mark.parametrize(
    ("pods", "host", "pod"),
    [((), True, False), ((None, None), True, False), (("p", None), True, True), (("p", "q"), False, True)],
)
def test_in_a_narrow_space_members_have_pods_for_hosts_where_all_are_known(
    pods: tuple[str | None, ...], host: bool, pod: bool
) -> None:
    shown = member_columns([{"pod": name} for name in pods])
    assert {column.header for column in shown} >= {"HOST"}
    narrow = [column.header for column in shown if not column.is_wide]
    assert ("HOST" in narrow, "POD" in narrow) == (host, pod)
    assert not {"WORKLOAD", "IMAGE"} & {*narrow}


def test_brokers_are_shown_where_queues_have_them() -> None:
    kafka, rocketmq = titles(progress_columns([{"broker": None}])), titles(progress_columns([{"broker": "b"}]))
    assert kafka[:3] == ["GROUP", "TOPIC", "PARTITION"]
    assert rocketmq[:4] == ["GROUP", "TOPIC", "BROKER", "PARTITION"]
    assert kafka[3:] == rocketmq[4:]


def test_a_group_without_a_protocol_of_its_own_has_a_dash() -> None:
    [protocol] = [column for column in group_columns() if column.header == "PROTOCOL"]
    assert [protocol.cell({"protocol": name}) for name in (None, "share")] == ["-", "share"]
