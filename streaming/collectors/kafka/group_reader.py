"""Shell: reads a cluster's groups by admin calls, for principals that may not read ``__consumer_offsets``.

Three calls of librdkafka together show a group; none does alone:

- ``list_groups`` (ListGroups, and one DescribeGroups for each broker) has the members' own bytes: their subscriptions,
  their former partitions and generation. It is deprecated in favour of the last call, which has none of these;
  kafka-python has them too, but would need every login a second time, in options of its own.
- ``list_consumer_groups`` shows which groups use the new protocol (KIP-848); ``list_groups`` shows those as dead. It
  lacks share and streams groups: a dead group that it lists is deleted, any other is of a kind that no call describes.
- ``describe_consumer_groups`` describes new-protocol groups, and has the instance ids of static members; it costs one
  request per group.

No call has the generation, the leader or the members' timeouts.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec
from confluent_kafka import ConsumerGroupType, KafkaException

from streaming.collectors.kafka.metadata_client import MetadataClient, answer_of
from udfs.model.events import QueueRef

_CONSUMERS = "consumer"
DEAD = "Dead"


class PolledMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member in the admin calls.

    Attributes:
        metadata, assignment: The bytes of a classic member; empty during a rebalance, and for other members.
        queues: The queues of a member of the new protocol.
    """

    member_id: str
    client_id: str
    host: str
    metadata: bytes = b""
    assignment: bytes = b""
    queues: tuple[QueueRef, ...] = ()
    instance_id: str | None = None


class DescribedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group in the admin calls.

    Attributes:
        state: Kafka's name: Stable, PreparingRebalance, ... protocol: ``classic``, ``consumer`` (KIP-848).
        protocol_type: The type of a classic group: ``consumer``, ``connect``, ...; empty while it has no members.
    """

    state: str
    protocol: Literal["classic", "consumer"] = "classic"
    protocol_type: str = ""
    strategy: str = ""
    members: tuple[PolledMember, ...] = ()


class PolledGroups(msgspec.Struct, frozen=True, kw_only=True):
    """All groups in one poll.

    Attributes:
        unreadable: Groups that this user may not describe, or that could not be described just now.
        is_whole: Whether every broker replied, so that a missing group is deleted.
    """

    groups: dict[str, DescribedGroup]
    unreadable: frozenset[str] = frozenset()
    is_whole: bool = True


class GroupReader(MetadataClient):
    """A connection to one cluster that also reads its groups.

    Calls raise the same errors as those of ``MetadataClient``.
    """

    def groups(self) -> PolledGroups:
        """Return all groups that this user may describe, classic ones without instance ids."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            listed: list[Any] = self._admin.list_groups(timeout=self._timeout_s)
        answer = answer_of(self._admin.list_consumer_groups(request_timeout=self._timeout_s), self._timeout_s)
        of_new_protocol = [listing.group_id for listing in answer.valid if listing.type is ConsumerGroupType.CONSUMER]
        of_consumers = {listing.group_id for listing in answer.valid}
        described = self.described(of_new_protocol)
        found: dict[str, DescribedGroup] = {}
        unreadable = {group_id for group_id in of_new_protocol if group_id not in described}
        for group in listed:
            name: str = group.id
            if name in described or name in unreadable or (group.state == DEAD and name in of_consumers):
                continue
            if group.error is not None:
                unreadable.add(name)
                continue
            found[name] = DescribedGroup(
                state=group.state,
                protocol_type=group.protocol_type,
                strategy=group.protocol,
                members=tuple(
                    PolledMember(
                        member_id=member.id,
                        client_id=member.client_id,
                        host=member.client_host,
                        metadata=member.metadata or b"",
                        assignment=member.assignment or b"",
                    )
                    for member in group.members
                ),
            )
        found |= {name: group for name, group in described.items() if group.state != DEAD}
        return PolledGroups(groups=found, unreadable=frozenset(unreadable), is_whole=not answer.errors)

    def described(self, groups: Collection[str]) -> dict[str, DescribedGroup]:
        """Return each of these groups from a call of its own; groups that cannot be described are left out."""
        if not groups:
            return {}
        answers = self._admin.describe_consumer_groups(sorted(groups), request_timeout=self._timeout_s)
        found: dict[str, DescribedGroup] = {}
        for name, answer in answers.items():
            try:
                group = answer_of(answer, self._timeout_s)
            except KafkaException:
                continue
            found[name] = DescribedGroup(
                state=_STATES.get(group.state.name, group.state.name.title()),
                protocol="consumer" if group.type is ConsumerGroupType.CONSUMER else "classic",
                protocol_type=_CONSUMERS,
                strategy=group.partition_assignor,
                members=tuple(
                    PolledMember(
                        member_id=member.member_id,
                        client_id=member.client_id,
                        host=member.host,
                        instance_id=member.group_instance_id or None,
                        queues=tuple(
                            sorted(
                                QueueRef(partition.topic, partition.partition)
                                for partition in member.assignment.topic_partitions
                            )
                        ),
                    )
                    for member in group.members
                ),
            )
        return found


# ``ConsumerGroupState`` in the words of Kafka's own protocol.
_STATES: Mapping[str, str] = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
}
