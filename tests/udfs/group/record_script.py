"""Gives one group the records of Kafka's coordinator, as a broker writes them: one step, one time."""

from __future__ import annotations

from typing import Any

from tests.udfs.group.group_script import Script
from udfs.model.events import GroupRecord, MemberInfo, TopicPartitions

Held = dict[str, str]  # what each member has of topic t: "0 1"
T_ID, U_ID = "dHR0dHR0dHR0dHR0dHR0dA", "dXV1dXV1dXV1dXV1dXV1dQ"
IDS = {"t": T_ID, "u": U_ID}

_DESCRIBED = ("instance_id", "host", "client_id", "rebalance_timeout_ms")


class RecordScript(Script):
    """One consumer group; ``t`` has four partitions from the beginning.

    Args:
        has_offsets: Records say in which order they were written.
    """

    def __init__(self, partitions: int | None = 4, has_offsets: bool = False, **reported: Any) -> None:
        super().__init__(**reported)
        self.next_offset = 0 if has_offsets else None
        if partitions is not None:
            self.queues(0, "t", partitions, topic_id=T_ID)

    def record(self, at: int, kind: str, **fields: Any) -> None:
        """Have one record wait for the next batch."""
        if self.next_offset is not None:
            fields["offset"] = self.next_offset
            self.next_offset += 1
        self.event(GroupRecord, at, **{"protocol": "consumer", "record": kind, **fields})

    def epoch(self, at: int, epoch: int) -> None:
        self.record(at, "group", epoch=epoch)

    def member(self, at: int, member: str, topics: tuple[str, ...] = ("t",), **fields: Any) -> None:
        """Describe a member; ``assignor``, ``instance_id``, ``host``: of its description."""
        assignor = fields.pop("assignor", None)
        info = MemberInfo(
            member_id=member,
            subscriptions=topics,
            strategies=(assignor,) if assignor else (),
            **{name: fields.pop(name) for name in _DESCRIBED if name in fields},
        )
        self.record(at, "member", member_id=member, member=info, **fields)

    def target(self, at: int, epoch: int, held: Held) -> None:
        """Publish a target; only of members whose target changed."""
        self.record(at, "target", epoch=epoch)
        for member, queues in held.items():
            self.record(at, "member_target", member_id=member, partitions=partitions(queues))

    def current(self, at: int, member: str, epoch: int, owned: str, state: str = "stable", revoking: str = "") -> None:
        self.record(
            at,
            "member_current",
            member_id=member,
            epoch=epoch,
            state=state,
            partitions=partitions(owned),
            revoking=partitions(revoking),
        )

    def delete_member(self, at: int, member: str) -> None:
        """Delete all records of a member."""
        for kind in ("member_current", "member_target", "member"):
            self.record(at, kind, member_id=member, deleted=True)

    def come_back(self, at: int, former: str, member: str, epoch: int, owned: str, instance_id: str = "i") -> None:
        """Have a static member come back under another id; it owns its whole target."""
        self.delete_member(at, former)
        self.member(at, member, instance_id=instance_id)
        self.record(at, "member_target", member_id=member, partitions=partitions(owned))
        self.current(at, member, epoch, owned)

    # ---- stories

    def first_member(self, at: int = 10, member: str = "a", **fields: Any) -> None:
        """Have one member join the empty group in epoch 1, and own all of ``t``."""
        self.member(at, member, **fields)
        self.epoch(at, 1)
        self.target(at, 1, {member: "0 1 2 3"})
        self.current(at, member, 1, "0 1 2 3")

    def second_member(self, at: int = 20, member: str = "b", epoch: int = 2, **described: Any) -> None:
        """Have a second one join: ``a`` revokes 2 and 3 five and owns less ten ms later, it gets them fifteen later."""
        self.member(at, member, **described)
        self.epoch(at, epoch)
        self.target(at, epoch, {"a": "0 1", member: "2 3"})
        self.current(at, member, epoch, "", "unreleased")
        self.current(at + 5, "a", epoch - 1, "0 1", "unrevoked", "2 3")
        self.current(at + 10, "a", epoch, "0 1")
        self.current(at + 15, member, epoch, "2 3")

    def static_second_member(self) -> None:
        """Have a static one join: ``a`` owns less five ms later, and ``b`` nothing yet."""
        self.member(20, "b", instance_id="i")
        self.epoch(20, 2)
        self.target(20, 2, {"a": "0 1", "b": "2 3"})
        self.current(20, "b", 2, "", "unreleased")
        self.current(25, "a", 2, "0 1")


def partitions(text: str, topic: str = T_ID) -> tuple[TopicPartitions, ...]:
    """Spell partitions: "0 1" is 0 and 1 of topic t."""
    numbers = tuple(int(number) for number in text.split())
    return (TopicPartitions(topic, numbers),) if numbers else ()
