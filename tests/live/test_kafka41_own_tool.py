"""`show group` prints the same as Kafka's own tools do of the same groups, for every kind of group."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from streaming.commands.app import app
from tests.job.commands import ManyRuns
from tests.kit.brokers import Broker, kafka_41
from tests.kit.java_members import wait_until
from tests.kit.kafka_tools import SHARE_GROUPS, STREAMS_GROUPS, describe_groups, list_groups, parsed
from tests.kit.light_members import start_light_member
from tests.kit.members import Member, wait_until_assigned
from tests.kit.other_groups import EVERY_KIND, FEATURES, join_classic_group, join_share_group, join_streams_group
from tests.kit.topics import create_topic, delete_group, send
from tests.live.job import RunningJob, running_job
from tests.live.story import partitions

# So that the tables have offsets soon.
_SETTINGS = {
    "REBALANCE_MONITOR_TIME__QUEUE_PROGRESS_MS": "1000",
    "REBALANCE_MONITOR_KAFKA__ENDS_INTERVAL_MS": "1000",
}
_NEW_PROTOCOL = {"group.protocol": "consumer"}
_GROUPS = ("mixed", "moving", "left", "new", "migrated", "loader")
_OTHERS = {"sharing": SHARE_GROUPS, "streaming": STREAMS_GROUPS}

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_show_group_prints_the_same_as_the_tool_where_both_have_it(
    new_member: Callable[..., Member], runs: ManyRuns, tmp_path: Path
) -> None:
    folder = tmp_path / "job"
    with (
        kafka_41(tmp_path / "broker", EVERY_KIND, features=FEATURES) as broker,
        running_job(runs, broker, folder, settings=_SETTINGS) as job,
        ExitStack() as stack,
    ):
        create_topic(broker, "orders", 4)
        create_topic(broker, "bills", 2)
        both = partitions("orders", 4) + partitions("bills", 2)
        mixed = [
            new_member(broker, "mixed", ["orders", "bills"], client_id="a"),
            new_member(broker, "mixed", ["orders"], client_id="b", instance_id="static"),
        ]
        moving = [
            new_member(broker, "moving", ["orders"], client_id=name, strategies=("cooperative-sticky",))
            for name in "cd"
        ]
        new = new_member(broker, "new", ["bills"], client_id="n", settings=_NEW_PROTOCOL)
        migrated: list[Member] = []
        for name, settings in (("old", {}), ("young", _NEW_PROTOCOL)):
            joining = start_light_member(broker, "migrated", ["orders"], {"client.id": name, **settings})
            migrated.append(stack.enter_context(joining))
            wait_until(migrated, lambda: sum(len(member.owned) for member in migrated) == 4)
        _commit(broker, "loader", 3)
        join_share_group(broker, "sharing", "orders", until_assigned=True)
        join_streams_group(broker, "streaming", "orders", until_assigned=True)
        join_classic_group(broker, "connecting", "connect")
        join_classic_group(broker, "schemas", "sr")
        left = new_member(broker, "left", ["orders"], client_id="e")
        wait_until_assigned([left], partitions("orders", 4))
        _send_to_all(broker, 3)
        left.wait_until(lambda: left.records_read == 12)
        left.stop()
        new.wait_until(lambda: len(new.owned) == 2)
        wait_until(migrated, lambda: [len(member.owned) for member in migrated] == [2, 2])
        wait_until_assigned(mixed, both)
        wait_until_assigned(moving, partitions("orders", 4))
        for members in (mixed, moving):
            generation = members[0].generation
            assert generation is not None
            job.wait_for_generation("mixed" if members is mixed else "moving", generation)
        job.wait_for_generation("left", 2)
        states: dict[str, dict[str, str]] = {}

        def are_settled() -> bool:
            """Members know their assignment before the coordinator knows that they do."""
            states.update((row["GROUP"], row) for row in describe_groups(broker, "--state", "--verbose"))
            return {states[group]["STATE"] for group in _GROUPS} == {"Stable", "Empty"}

        job.wait_for(are_settled, "groups whose coordinator has nothing left to do")
        theirs = describe_groups(broker, "--members", "--verbose")
        for group in _GROUPS:
            theirs_now = (_state(states[group]), sorted(_member(row) for row in theirs if row["GROUP"] == group))
            # Until metadata has named its topic, a group of the new protocol shows the topic's id.
            job.wait_for(partial(_shows, job, group, theirs_now), f"{group} as the tool has it: {theirs_now}")
        # No queue changes its owner any more: every owner commits, and only the empty group falls behind.
        _send_to_all(broker, 2)
        for group in _GROUPS:
            job.wait_for(partial(_shows_offsets, job, broker, group), f"offsets of {group} as the tool has them")
        text = CliRunner().invoke(app, ["show", "group", "new", "--tables", str(job.tables)]).stdout
        assert "Source of the cluster's groups: records: the settings say so." in text
        _compare_other_kinds(broker, job)
        behind = [row["LAG"] for row in describe_groups(broker) if row["GROUP"] == "left"]
        assert behind == ["2"] * 4
        new.stop_polling()  # so it does not revoke the queues that the next member is to get
        stack.enter_context(start_light_member(broker, "new", ["bills"], {"client.id": "o", **_NEW_PROTOCOL}))
        job.wait_for(partial(_is_shown_reconciling, job, broker), "members that reconcile as the tool has them")
        for group in ("left", "loader"):
            delete_group(broker, group)
        kinds = list_groups(broker)
        assert not {"left", "loader"} & kinds.keys()
        job.wait_for(lambda: _listed(job) == _as_listed(kinds), "deleted groups listed no more")
        assert job.stop() == 0


def _is_shown_reconciling(job: RunningJob, broker: Broker) -> bool:
    """Return whether both show the group `new` reconciling, with the same members and what each has and shall have."""
    states = {row["GROUP"]: row for row in describe_groups(broker, "--state", "--verbose")}
    theirs = [row for row in describe_groups(broker, "--members", "--verbose") if row["GROUP"] == "new"]
    ours, *rows = _shown(job, "new")
    members = [row for row in rows if "CONSUMER-ID" in row and "#PARTITIONS" in row]
    state = (ours["STATE"], ours["#MEMBERS"], states["new"]["STATE"])
    return state == ("reconciling", "2", "Reconciling") and sorted(map(_member, members)) == sorted(
        map(_member, theirs)
    )


def _has_the_same(broker: Broker, job: RunningJob, group: str, tool: str) -> bool:
    """Return whether both show one state, and one epoch, and the same of each member."""
    found = describe_groups(broker, "--state", "--verbose", tool=tool)
    theirs = describe_groups(broker, "--members", "--verbose", tool=tool)
    ours, *rows = _shown(job, group)
    members = [row for row in rows if "CONSUMER-ID" in row and "#PARTITIONS" in row]
    is_share = tool == SHARE_GROUPS
    if not found or found[0]["STATE"] != "Stable":
        return False
    state = {"STATE": "not_followed", "COORDINATOR-STATE": "stable", "#MEMBERS": found[0]["#MEMBERS"]}
    if not is_share:
        state["GENERATION"] = found[0]["GROUP-EPOCH"]
    if {name: ours[name] for name in state} != state:
        return False
    if is_share:
        # The tool shows no target of share groups. A member at the target's epoch holds its target.
        return [_member(row) for row in members] == [
            _member(row | {"TARGET-EPOCH": row["MEMBER-EPOCH"], "TARGET-ASSIGNMENT": row["ASSIGNMENT"]})
            for row in theirs
        ]
    return list(map(_task, members)) == list(map(_task, theirs))


def _commit(broker: Broker, group: str, offset: int) -> None:
    """Commit of each partition, without a member."""
    consumer = Consumer({**broker.client_settings(), "group.id": group})
    try:
        consumer.commit(offsets=[TopicPartition("orders", number, offset) for number in range(4)], asynchronous=False)
    finally:
        consumer.close()


def _compare_other_kinds(broker: Broker, job: RunningJob) -> None:
    """Compare all groups and their kinds; groups that are not followed have the tools' states and members."""
    kinds = list_groups(broker)
    assert {kinds[group] for group in ("connecting", "loader")} == {("Classic", "connect"), ("Classic", "")}
    job.wait_for(lambda: _listed(job) == _as_listed(kinds), f"the groups as the tool has them: {kinds}")
    for group, tool in _OTHERS.items():
        # A member may take its partitions or tasks over between the two readings.
        job.wait_for(partial(_has_the_same, broker, job, group, tool), f"{group} as {tool} has it")
    # The tool refuses to describe these.
    for group in ("connecting", "schemas"):
        job.wait_for(partial(_is_listed_with_one_member, job, group), f"the member of {group}")


def _is_listed_with_one_member(job: RunningJob, group: str) -> bool:
    ours, *_ = _shown(job, group)
    return (ours["STATE"], ours["COORDINATOR-STATE"], ours["#MEMBERS"]) == ("not_followed", "stable", "1")


def _listed(job: RunningJob) -> dict[str, str]:
    output = CliRunner().invoke(app, ["show", "groups", "--wide", "--tables", str(job.tables)]).stdout
    return {row["GROUP"]: row["PROTOCOL"] for row in parsed(output)}


def _as_listed(kinds: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Return what the monitor lists: nothing for classic groups that assign partitions, or have no members."""
    return {
        group: "-" if kind in (("Classic", "consumer"), ("Classic", "")) else kind[1] for group, kind in kinds.items()
    }


def _task(row: dict[str, str]) -> tuple[str, ...]:
    """Return a member's tasks: `ACTIVE: 0:[0,1]; TARGET-ACTIVE: ...;` in the tool, `subtopology 0(0,1)` here."""
    active, target = row.get("ASSIGNMENTS", "ACTIVE: TARGET-ACTIVE: ").split("ACTIVE: ")[1:3]
    tasks = [
        re.findall(r"(\d+)(?:\(|:\[)([\d,]+)", text)
        for text in (row.get("REPORTED", active), row.get("TARGET-ASSIGNMENT", target))
    ]
    names = (("CONSUMER-ID", "MEMBER"), ("PROTOCOL", "MEMBER-PROTOCOL"), ("CURRENT-EPOCH", "MEMBER-EPOCH"))
    described = [row.get(ours) or row[theirs] for ours, theirs in names]
    return *described, row["PROCESS"], row["CLIENT-ID"], str(tasks)


def _send_to_all(broker: Broker, number: int) -> None:
    """Append so many records to each partition."""
    for topic, count in (("orders", 4), ("bills", 2)):
        for partition in range(count):
            send(broker, topic, [b"value"] * number, partition)


_QUEUES = re.compile(r"([^\s(:;,]+)[(:]([\d,]+)")
_OFFSETS = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")


def _shows_offsets(job: RunningJob, broker: Broker, group: str) -> bool:
    """Return whether both have the same offsets, once the group has read everything if it has members."""
    theirs = [row for row in describe_groups(broker) if row["GROUP"] == group]
    ours = [row for row in _shown(job, group) if "CURRENT-OFFSET" in row]
    is_read = group in ("left", "loader") or all(row["LAG"] == "0" for row in theirs)
    return is_read and bool(theirs) and sorted(map(_offsets, ours)) == sorted(map(_offsets, theirs))


def _offsets(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("GROUP", *_OFFSETS))


def _shown(job: RunningJob, group: str) -> list[dict[str, str]]:
    command = ["show", "group", group, "--wide", "--tables", str(job.tables)]
    return parsed(CliRunner().invoke(app, command).stdout)


def _shows(job: RunningJob, group: str, expected: tuple[object, object]) -> bool:
    rows = _shown(job, group)
    members = [_member(row) for row in rows if "CONSUMER-ID" in row and "#PARTITIONS" in row]
    return bool(rows) and (_state(rows[0]), sorted(members)) == expected


def _state(row: dict[str, str]) -> tuple[str, ...]:
    """Return strategy, state, number of members and epoch; the monitor writes states small, and each strategy's system.

    The tool has the epochs of groups of the new protocol alone, and here one is shown where both are the same.
    """
    strategy = row["ASSIGNMENT-STRATEGY"].removeprefix("kafka.").removeprefix("server.")
    is_new = row.get("GROUP") in ("new", "migrated")
    epoch = row["GENERATION"] if "GENERATION" in row else row["GROUP-EPOCH"]
    if is_new and "TARGET-ASSIGNMENT-EPOCH" in row:
        assert row["TARGET-ASSIGNMENT-EPOCH"] == row["GROUP-EPOCH"], row
    shown = ("-" if row["#MEMBERS"] == "0" else strategy), row["STATE"].lower(), row["#MEMBERS"]
    return (*shown, epoch if is_new else "-")


def _member(row: dict[str, str]) -> tuple[str, ...]:
    """Return what both have of a member; queues are `orders(0,1)` here, and in the tool since 4.0 `orders:0,1`."""
    queues = row.get("REPORTED") or row.get("CURRENT-ASSIGNMENT") or row["ASSIGNMENT"]
    held = sorted(_QUEUES.findall(queues))
    instance = row.get("GROUP-INSTANCE-ID", "").replace("-", "") or "-"
    same = [row[name] for name in ("CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS")]
    # A member of a group of the newer protocols has an epoch, one of the new protocol a target.
    epochs = row.get("CURRENT-EPOCH") or row.get("MEMBER-EPOCH", "-"), row.get("TARGET-EPOCH", "-")
    target = sorted(_QUEUES.findall(row.get("TARGET-ASSIGNMENT", "-")))
    # The tool says so only of groups that have members of both protocols.
    is_classic = "classic" in (row.get("PROTOCOL"), {"false": "classic"}.get(row.get("UPGRADED", "")))
    return (*same, instance, *epochs, str(target), str(is_classic), str(held))
