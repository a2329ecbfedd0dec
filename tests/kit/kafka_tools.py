"""What Kafka's own tools print of groups, as rows: `kafka-consumer-groups.sh`, `kafka-groups.sh` and the others."""

from __future__ import annotations

import re
import subprocess

from tests.kit.brokers import Broker
from tests.kit.jars import class_path, kit_jars
from tests.kit.java_members import java_command

_TOOLS = "org.apache.kafka.tools."
CONSUMER_GROUPS = "consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = "consumer.group.ShareGroupCommand"
STREAMS_GROUPS = "streams.StreamsGroupCommand"
_GROUPS = "GroupsCommand"
_TIMEOUT_S = 120
_FIRST_COLUMNS = ("GROUP", "CLUSTER", "CONSUMER-ID")


def list_groups(broker: Broker) -> dict[str, tuple[str, str]]:
    """Return type and protocol of every group."""
    return {row["GROUP"]: (row["TYPE"], row["PROTOCOL"]) for row in _printed(broker, _GROUPS, "--list")}


def describe_groups(broker: Broker, *what: str, tool: str = CONSUMER_GROUPS) -> list[dict[str, str]]:
    """Return what a tool prints of all its groups: one row for each line, by the names of its columns.

    Args:
        what: `--state`, or `--members --verbose`; nothing for offsets and lag.
    """
    return _printed(broker, tool, "--describe", "--all-groups", *what)


def change_offsets(broker: Broker, group: str, *what: str) -> None:
    """Reset or delete a group's commits as an administrator does: `--reset-offsets …`, `--delete-offsets …`."""
    _printed(broker, CONSUMER_GROUPS, "--group", group, *what)


def states_of(broker: Broker, tool: str) -> dict[str, str]:
    """Return the state of every group of a tool's kind; of several groups, streams' tool of 4.1 describes only one."""
    return {row["GROUP"]: row["STATE"] for row in _printed(broker, tool, "--list", "--state")}


def _printed(broker: Broker, tool: str, *options: str) -> list[dict[str, str]]:
    jars = f"{class_path('kafka-4.1.1', 'Guarded')}:{kit_jars('kafka-tools-4.1.1')[0]}"
    command = java_command(jars, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    command += [_TOOLS + tool, "--bootstrap-server", broker.bootstrap, *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
    return parsed(done.stdout)


def parsed(output: str) -> list[dict[str, str]]:
    """Return the rows of tables whose columns lie below their names; an empty line ends a table.

    A line of names begins with GROUP, or with CLUSTER or CONSUMER-ID where the monitor prints it.
    """
    rows: list[dict[str, str]] = []
    starts: dict[str, int] = {}
    for line in output.splitlines():
        if not line.strip():
            starts = {}
        elif line.split()[0] in _FIRST_COLUMNS:
            names = line.replace("COORDINATOR (ID)", "COORDINATOR")
            starts = {found.group(): found.start() for found in re.finditer(r"\S+", names)}
            if "COORDINATOR" in starts:
                starts = {name: at + 5 * (at > starts["COORDINATOR"]) for name, at in starts.items()}
        elif starts:
            ends = [*list(starts.values())[1:], None]
            rows.append({name: line[at:end].strip() for (name, at), end in zip(starts.items(), ends, strict=True)})
    return rows
