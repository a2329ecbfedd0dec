"""Shell: decides whether a cluster's groups are read from ``__consumer_offsets`` or by admin calls.

``auto`` tries the permissions. Its choice lasts as long as the collector's memory, because events of the two do not mix
seamlessly (a counted number would be followed by a reported one). Each start tries the permissions again, so that it
can report the reason.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from streaming.collectors.kafka.options import KafkaOptions
from streaming.collectors.kafka.permissions import (
    Missing,
    check_admin_rights,
    check_rights,
    offsets_partitions,
    refuse_without,
)
from streaming.machine.logs import logger
from streaming.setup.errors import SetupError

Source: TypeAlias = Literal["records", "admin"]
_EARLIER = "an earlier start took it; "
_ALL_RIGHTS = "all rights for it are there"
_NEW_CHECKPOINT = "the rights for records are there now, which a new start without its memory would take"
_log = logger("kafka")


class GroupSource(NamedTuple):
    """The source of groups.

    Attributes:
        partitions: Partitions of ``__consumer_offsets``, if it is read.
    """

    source: Source
    partitions: int = 0
    why: str = ""

    def __str__(self) -> str:
        """Return the chosen source and the reason."""
        return f"{self.source}: {self.why}"


def choose_source(options: KafkaOptions, wanted: str, before: Source | None) -> GroupSource:
    """Check the permissions that a source needs; log the chosen source, the reason and missing permissions.

    Args:
        wanted: ``records``, ``admin`` or ``auto``. before: The source of an earlier start.

    Raises:
        SetupError: The cluster cannot be reached or refuses this user, or lacks a requirement of the wanted source.
    """
    if wanted == "admin":
        return _admin(options, "the settings say so")
    earlier = "" if wanted != "auto" or before is None else _EARLIER
    missing = check_rights(options)
    may_poll = wanted == "auto" and before != "records"
    lacking = [right for right in missing if right.needed]
    if may_poll and lacking:
        return _admin(options, earlier + "missing: " + "; ".join(str(right) for right in lacking))
    refuse_without(missing, options)
    try:
        partitions = offsets_partitions(options)
    except SetupError as error:
        if not may_poll:
            raise
        return _admin(options, earlier + error.problem)
    if may_poll and before == "admin":
        return _admin(options, earlier + _NEW_CHECKPOINT)
    _warn(missing, options)
    why = earlier + _ALL_RIGHTS if wanted == "auto" else "the settings say so"
    _log_choice(options, "records", why)
    return GroupSource("records", partitions, why)


def _admin(options: KafkaOptions, why: str) -> GroupSource:
    _warn(check_admin_rights(options), options)
    _log_choice(options, "admin", why)
    return GroupSource("admin", why=why)


def _warn(missing: list[Missing], options: KafkaOptions) -> None:
    for right in missing:
        _log.warning("a permission is missing", right=str(right), give_it_with=right.command(options))


def _log_choice(options: KafkaOptions, source: Source, why: str) -> None:
    _log.info("source of Kafka's groups", cluster=options.cluster, source=source, why=why)
