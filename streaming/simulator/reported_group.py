"""Shell: simulated Kafka groups whose coordinator reports every generation, as in its records."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from streaming.simulator.cluster import Cluster
from streaming.simulator.group_life import GroupLife
from streaming.simulator.leader import Partitions, assign_range, assign_roundrobin, cooperative, custom
from streaming.simulator.truth import Cause, ExpectedRebalance
from udfs.model.events import GroupDeleted, GroupSnapshot, MemberInfo, Progress, QueueOffset, QueueRef

COMMIT_INTERVAL_MS = 5_000
_RHYTHM_OF = 3  # commits that show how often a member commits
# Once the coordinator has noticed, the others rejoin with their next heartbeat.
REJOIN_MS = (100, 3_000)
CUSTOM_STRATEGY = "acme.tiers"
LEADERS = {
    "range": assign_range,
    "roundrobin": assign_roundrobin,
    "cooperative-sticky": cooperative,
    CUSTOM_STRATEGY: custom,
}


class Consumer:
    """One Kafka consumer as its coordinator knows it."""

    def __init__(
        self, member_id: str, client_id: str, host: str, instance_id: str | None, subscriptions: tuple[str, ...]
    ):
        self.member_id = member_id
        self.client_id = client_id
        self.host = host
        self.instance_id = instance_id
        self.subscriptions = subscriptions
        self.held: Partitions = []
        self.commits = 0  # since it owns its current queues
        self.alive = True


class ReportedGroup(GroupLife):
    """A classic group: one snapshot for each completed rebalance, and commits in between."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: list[str],
        rng: random.Random,
        *,
        size: int,
        timeout_ms: int,
        strategy: str,
        commits: bool,
        first_generation: int = 1,
    ) -> None:
        super().__init__(cluster, group_id, topics, rng)
        self.size = size
        self.timeout_ms = timeout_ms
        self.strategy = strategy
        self.commits = commits
        self.static = rng.random() < 0.3
        self.deletes = rng.random() < 0.2
        self.may_repeat = not self.deletes
        self.generation = first_generation - 1
        self.created = False
        self.consumers: list[Consumer] = []
        self.counts: dict[str, int] = {}  # by topic, as the last leader saw it
        self.subscribed: set[str] = set()  # by any member, in the last generation
        self.pending: list[Cause] = []  # for the next generation
        self.is_moving = False  # between the two generations of a cooperative rebalance
        self._names = 0

    # -- generations -----------------------------------------------------------------------------------------

    def complete(self, causes: list[Cause], missed: int = 0, generation: int | None = None) -> None:
        """Complete a rebalance: assign, report the new generation, and record its causes."""
        counts = {name: self.cluster.topics[name].count for name in self.topics}
        subscribed = {name for consumer in self.consumers for name in consumer.subscriptions}
        grown = sorted(name for name in subscribed & self.subscribed if self.counts[name] != counts[name])
        causes = [*self.pending, *causes, *(Cause("queue_count_changed", topic=name) for name in grown)]
        self.pending, self.counts, self.subscribed = [], counts, subscribed
        wanted = self._assign()
        moves = self.strategy == "cooperative-sticky" and self._hand_out_but_what_moves(wanted)
        if not moves:
            self._hand_out(wanted)
        self._report(causes, missed, generation)
        if moves:
            self.is_moving = True
            self.later(self.rng.randrange(150, 900), self._follow_up)

    def _assign(self) -> dict[str, Partitions]:
        members = [
            (consumer.member_id, consumer.instance_id, consumer.subscriptions, list(consumer.held))
            for consumer in self.consumers
        ]
        return LEADERS[self.strategy](members, self.counts)

    def _hand_out_but_what_moves(self, wanted: dict[str, Partitions]) -> bool:
        held = {partition: consumer.member_id for consumer in self.consumers for partition in consumer.held}
        moving = False
        for consumer in self.consumers:
            now = [
                partition
                for partition in wanted[consumer.member_id]
                if held.get(partition, consumer.member_id) == consumer.member_id
            ]
            moving = moving or len(now) < len(wanted[consumer.member_id])
            self._give(consumer, now)
        return moving

    def _hand_out(self, wanted: dict[str, Partitions]) -> None:
        for consumer in self.consumers:
            self._give(consumer, wanted[consumer.member_id])

    def _follow_up(self) -> None:
        self.is_moving = False
        self._hand_out(self._assign())
        self._report([Cause("cooperative_follow_up")], 0, None)

    def between_generations(self, wait_ms: int, action: Callable[[], None]) -> None:
        """Run ``action`` later, but not between the two halves of a cooperative rebalance."""
        self.later(wait_ms, lambda: self.between_generations(1_000, action) if self.is_moving else action())

    def _give(self, consumer: Consumer, partitions: Partitions) -> None:
        if consumer.held != partitions:
            consumer.held = partitions
            consumer.commits = 0

    def _report(self, causes: list[Cause], missed: int, generation: int | None) -> None:
        self.generation = self.generation + 1 + missed if generation is None else generation
        first = not self.created
        if first:
            self.created = True
            causes = [Cause("group_created"), *causes]
        self._emit_snapshot()
        self.cluster.truth.add(
            ExpectedRebalance(
                cluster=self.cluster.name,
                system="kafka",
                group_id=self.group_id,
                event_time=self.now,
                causes=causes or [Cause("unexplained")],
                generation=self.generation,
                generation_source="reported",
                generations_missed=missed or None,
                members_after=len(self.consumers),
            )
        )

    def _emit_snapshot(self) -> None:
        """Report the group's current state in the form of the coordinator's own record."""
        empty = not self.consumers
        members = tuple(
            MemberInfo(
                member_id=consumer.member_id,
                client_id=consumer.client_id,
                host=consumer.host,
                instance_id=consumer.instance_id,
                subscriptions=consumer.subscriptions,
                strategies=(self.strategy,),
                session_timeout_ms=self.timeout_ms,
                rebalance_timeout_ms=300_000,
            )
            for consumer in self.consumers
        )
        event = GroupSnapshot(
            **self.fields(),
            generation=self.generation,
            state="Empty" if empty else "Stable",
            joined_at=self.now - self.rng.randrange(3, 60),
            strategy=None if empty else self.strategy,
            leader=None if empty else self.consumers[0].member_id,
            members=members,
            assignments={
                consumer.member_id: tuple(QueueRef(topic, number) for topic, number in consumer.held)
                for consumer in self.consumers
            },
        )
        self.cluster.emit(event, may_repeat=self.may_repeat, rng=self.rng)

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.later(self.rng.randrange(50, 3_000), self._begin)
        self.later(self.rng.randrange(4_000, 4_000 + COMMIT_INTERVAL_MS), self._commit_all)
        self.rest()

    def _begin(self) -> None:
        if self.generation == 0 and self.rng.random() < 0.3:
            self._emit_snapshot()  # the coordinator's record of a new group is not a rebalance
        self.between_generations(200, lambda: self._join(self.size))

    def new_consumer(self) -> Consumer:
        """Create a consumer with ids in Kafka's form."""
        self._names += 1
        client_id = f"consumer-{self.group_id}-{self._names}"
        instance = f"{self.group_id}-{self._names}" if self.static else None
        host = f"/10.{self.rng.randrange(8)}.{self.rng.randrange(16)}.{self.rng.randrange(2, 250)}"
        # The simulated leader of the cooperative strategy only supports equal subscriptions.
        picky = self.rng.random() < 0.15 and self.strategy != "cooperative-sticky"
        wanted = self.some_topics() if picky else tuple(sorted(self.topics))
        return Consumer(self._member_id(instance or client_id), client_id, host, instance, wanted)

    def _member_id(self, prefix: str) -> str:
        return f"{prefix}-{self.hexadecimal(8)}-{self.hexadecimal(4)}-4{self.hexadecimal(3)}-{self.hexadecimal(12)}"

    def _join(self, number: int) -> None:
        came = [self.new_consumer() for _ in range(number)]
        self.consumers += came
        self.complete([Cause("member_joined", consumer.member_id) for consumer in came])

    def _commit_all(self) -> None:
        for consumer in self.consumers:
            if consumer.alive:
                self._commit(consumer)
        self.later(COMMIT_INTERVAL_MS, self._commit_all)

    def _commit(self, consumer: Consumer) -> None:
        if self.commits and consumer.held:
            queues = tuple(QueueOffset(topic, number, offset=self.now % 10**9) for topic, number in consumer.held)
            self.cluster.emit(Progress(**self.fields(), queues=queues), may_repeat=False, rng=self.rng)
            consumer.commits += 1

    def on_topic_changed(self, topic: str) -> None:
        """Ignore it, because only a new generation is a rebalance here."""

    def source_falls_silent(self) -> None:
        """Ignore it, because its records are read later."""

    def topic_grown(self, topic: str) -> None:
        if topic in self.topics:
            self.between_generations(self.rng.randrange(500, 8_000), self._notice_growth)

    def _notice_growth(self) -> None:
        if self.busy_until > self.now:
            self.between_generations(self.busy_until - self.now + 300, self._notice_growth)
            return
        subscribed = {name for consumer in self.consumers for name in consumer.subscriptions}
        if any(self.counts.get(name) != self.cluster.topics[name].count for name in subscribed):
            self.complete([])

    # -- what happens to the group ---------------------------------------------------------------------------

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        possible: list[tuple[int, Callable[[], None]]] = []
        if not self.created or self.is_moving or self.pending:
            return possible
        if len(self.consumers) < 2 * self.size:
            possible.append((4, lambda: self._join(self.rng.randint(1, 2))))
        if self.consumers:
            possible += [(1, self.rebalance_for_no_reason), (1, self.repeat_snapshot), (1, self.forget_generations)]
            if self.strategy != "cooperative-sticky":
                possible.append((2, self.subscribe_otherwise))
            if self.static:
                possible.append((3, self.restart_static))
        if len(self.consumers) >= 2:
            possible += [(4, self.leave_some), (4, self.crash_one), (2, self.deploy), (1, self.drain)]
            possible += [(1, self.miss_generations), (1, self.leave_and_join)]
            if self.strategy in ("range", "roundrobin"):
                possible.append((1, self.change_strategy))
        return possible

    def _goodbye(self, consumer: Consumer) -> Cause:
        """Remove a consumer that left, and return the visible kind of its departure."""
        if self.static:
            # A static consumer sends no leave, so its coordinator waits for its session to end.
            raise ValueError(f"{consumer.member_id} is static")
        self._commit(consumer)
        self.consumers.remove(consumer)
        return Cause("member_left" if consumer.commits else "member_gone", consumer.member_id)

    def leave_some(self) -> None:
        """One or two members close their consumers, which commit as they leave."""
        if self.static:
            self.crash_one()
            return
        leaving = self.rng.sample(self.consumers, min(len(self.consumers), self.rng.choice((1, 1, 2))))
        causes = [self._goodbye(consumer) for consumer in leaving]
        self._soon(causes)

    def _soon(self, causes: list[Cause]) -> None:
        self.pending += causes
        wait = self.rng.randrange(*REJOIN_MS)
        self.busy_for(wait + 50)
        self.between_generations(wait, lambda: self.complete([]) if self.pending else None)

    def crash_one(self) -> None:
        """One member is killed; its coordinator notices when its session ends."""
        consumer = self.rng.choice(self.consumers)
        consumer.alive = False
        wait = self.timeout_ms + self.rng.randrange(*REJOIN_MS)
        self.busy_for(wait + 50)
        self.between_generations(wait, lambda: self._miss(consumer))

    def _miss(self, consumer: Consumer) -> None:
        if consumer not in self.consumers:
            return
        self.consumers.remove(consumer)
        if consumer.commits:
            # Its rhythm of commits must be known, and another member must continue.
            is_known = consumer.commits > _RHYTHM_OF and any(other.commits > _RHYTHM_OF for other in self.consumers)
            cause = Cause("session_expired", consumer.member_id, also=() if is_known else ("member_gone",))
        else:
            # Commits of the queues' previous owners may or may not count as evidence.
            also = ("session_expired",) if self.commits and consumer.held else ()
            cause = Cause("member_gone", consumer.member_id, also=also)
        self.complete([cause])

    def leave_and_join(self) -> None:
        """One member leaves and another joins within one generation."""
        if self.static:
            return
        causes = [self._goodbye(self.rng.choice(self.consumers))]
        newcomer = self.new_consumer()
        self.consumers.append(newcomer)
        self._soon([*causes, Cause("member_joined", newcomer.member_id)])

    def deploy(self) -> None:
        """Each consumer in turn leaves and rejoins as another."""
        if self.static:
            self.restart_static()
            return
        step = self.rng.choice((2_500, 4_000, 7_000))
        old = list(self.consumers)
        for number, consumer in enumerate(old):
            self.between_generations(number * step, partial(self._replace, consumer))
        self.busy_for(len(old) * step + 4_000)

    def _replace(self, consumer: Consumer) -> None:
        if consumer in self.consumers:
            self.pending.append(self._goodbye(consumer))
            self.between_generations(100, lambda: self.complete([]) if self.pending else None)
            self.between_generations(1_300, lambda: self._join(1))

    def drain(self) -> None:
        """All members leave; later some join, after the group was deleted or not."""
        if self.static:
            return
        causes = [self._goodbye(consumer) for consumer in list(self.consumers)]
        self._soon(causes)
        back = self.rng.randrange(10_000, 30_000)
        if self.deletes:
            self.later(back - 3_000, self._delete)
        self.between_generations(back, lambda: self._join(self.size))
        self.busy_for(back + 1_000)

    def _delete(self) -> None:
        if not self.consumers:
            self.cluster.emit(GroupDeleted(**self.fields()), may_repeat=False, rng=self.rng)
            self.created = False
            self.generation = 0
            self.counts, self.subscribed = {}, set()

    def restart_static(self) -> None:
        """A static consumer comes back under a new member id, in the same generation: no rebalance."""
        if not self.static or not self.consumers:
            return
        consumer = self.rng.choice(self.consumers)
        if not consumer.alive:
            return
        consumer.member_id = self._member_id(consumer.instance_id or consumer.client_id)
        consumer.commits = 0  # those of the former process do not show how often this one commits
        self._emit_snapshot()

    def subscribe_otherwise(self) -> None:
        """One consumer subscribes to other topics."""
        consumer = self.rng.choice(self.consumers)
        wanted = self.some_topics()
        if wanted != consumer.subscriptions:
            consumer.subscriptions = wanted
            self.complete([Cause("subscription_changed", consumer.member_id)])

    def change_strategy(self) -> None:
        """The group changes its strategy."""
        self.strategy = "roundrobin" if self.strategy == "range" else "range"
        self.complete([Cause("strategy_changed")])

    def rebalance_for_no_reason(self) -> None:
        """A member requests a rebalance without any visible change."""
        self.complete([])

    def repeat_snapshot(self) -> None:
        """The same generation is reported again: no rebalance."""
        self._emit_snapshot()

    def miss_generations(self) -> None:
        """Records of some generations were compacted away before they were read."""
        newcomer = self.new_consumer()
        self.consumers.append(newcomer)
        self.complete([Cause("member_joined", newcomer.member_id)], missed=self.rng.randint(1, 3))

    def forget_generations(self) -> None:
        """The coordinator loses its memory and counts from the beginning."""
        if self.generation > 3:
            self.complete([Cause("coordinator_changed")], generation=self.rng.randint(1, self.generation - 1))
