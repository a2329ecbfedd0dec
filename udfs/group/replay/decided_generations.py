"""Core: the generations of a group of Kafka's classic protocol, decided anew from what its members did. No I/O.

Its coordinator reported the generations of its past, and the core only compared them. Here the core decides them: each
time members, topics or subscriptions change, the group as it is then gets the assignment that it gets in predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from udfs.group.assignment.library_choice import COOPERATIVE
from udfs.group.replay.recorded_generations import RecordedGeneration
from udfs.group.replay.stays import Stay
from udfs.group.state.assignment_diff import held_only_by
from udfs.group.state.group import Member, Owners, Queue, keys_of
from udfs.group.what_if.known_group import KnownGroup, figures_of, is_eager, one_generation
from udfs.model.config import CoreConfig
from udfs.model.errors import StrategyError
from udfs.model.queues import Queues, with_count
from udfs.model.systems import System, is_server_side

# A cooperative rebalance has two steps; more than a few show that its strategy does not settle.
_MOST_STEPS: Final = 8
# What a change of makes a member join again.
_RELEVANT: Final = ("subscriptions", "strategies", "strategy_settings", "rack")


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One generation as the core decides it.

    Attributes:
        queues_moved: How many queues have another owner than the last one that they had. queues_stopped: How many with
            an owner nobody reads meanwhile. owners: Of each queue.
        waited_ms: For how long these had stood before: an eager rebalance waits for silent members.
        undecided: Why the core does not decide it; the queues stay with the members that are there.
    """

    event_time: int
    members_before: int
    members_after: int
    queues_moved: int
    queues_stopped: int
    idle_members: int | None
    spread: int | None
    strategy: str | None
    owners: Owners
    undecided: str | None = None
    waited_ms: int = 0


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a group, or would have.

    Attributes:
        stays: What its members do. counts: The number of queues of topics where it is another one than recorded.
        strategy: The strategy that assigns; None for the recorded one.
    """

    stays: Sequence[Stay]
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    strategy: str | None = None


class GenerationDecider:
    """Decides the generations of one group, time by time."""

    def __init__(
        self,
        name: tuple[str, System, str],
        recorded: Sequence[RecordedGeneration],
        was: Scenario,
        first_owners: Owners,
        config: CoreConfig,
    ) -> None:
        """Take what was recorded.

        Args:
            name: Cluster, system and group. was: What happened as recorded. first_owners: The owners when it began.
        """
        self._cluster, self._system, self._group_id = name
        self._first_owners = first_owners
        self._recorded, self._was, self._config = recorded, was, config
        self._times = {generation.time_ms for generation in recorded}
        # The coordinator forgot all members, as when it loads a group anew: no generation shows that.
        ends = {stay.until for stay in was.stays if stay.until is not None} - self._times
        self._emptied = {time_ms for time_ms in ends if not self._was_there(time_ms)}
        self._unexplained = self._find_unexplained()

    def _find_unexplained(self) -> set[int]:
        """Return the times of recorded generations in which nothing changed that is known: somebody joined again."""
        found: set[int] = set()
        before = self._beginning(self._was)
        for generation in self._recorded:
            now = _Situation.of(self._was, generation.time_ms, generation.topics)
            if before is not None and not now.differs(before) and not generation.follows:
                found.add(generation.time_ms)
            before = now
        return found

    def decide(self, scenario: Scenario, *, is_recorded: bool = False) -> list[Generation]:
        """Return the generations of a scenario.

        Args:
            is_recorded: Decide one generation at each recorded time, and go on from the recorded owners where the core
                does not give them.
        """
        if not self._recorded:
            return []
        before = self._beginning(scenario)
        run = _Run(self._known(before), self._config)
        times = sorted(self._times | self._emptied | (set() if is_recorded else _times_of(scenario.stays)))
        following = dict(zip(times, [*times[1:], None], strict=True))
        at_time = {generation.time_ms: generation for generation in self._recorded}
        current = self._recorded[0]
        owed_since: int | None = None  # when it began that waits for silent members
        for time_ms in times:
            current = at_time.get(time_ms, current)
            now = _Situation.of(scenario, time_ms, _sized(current.topics, scenario.counts))
            run.rename(scenario.stays, time_ms)
            if time_ms in self._emptied and not now.members:
                run.empty()
                before = now
                continue
            is_changed = before is None or now.differs(before)
            is_due = (
                is_recorded
                or owed_since is not None
                or time_ms in self._unexplained
                or (run.is_pending and time_ms in self._times)
            )
            if not is_changed and not is_due:
                continue
            if before is None and not now.members and not self._began_empty(time_ms):
                continue
            # The coordinator waits for every member to join again, until the session of one that is silent is over. It
            # waits for their rebalance timeout at most, five minutes by default; longer sessions are not met.
            owed_since = time_ms if owed_since is None else owed_since
            if not is_server_side(scenario.strategy) and any(
                stay.is_there(time_ms) and stay.is_silent(time_ms) for stay in scenario.stays
            ):
                continue
            run.decide(now, current, scenario.strategy, time_ms - owed_since)
            owed_since = None
            if is_recorded:
                run.go_on_from(current)
            elif not self._follows(following[time_ms], at_time):
                run.finish()
            before = now
        return run.generations

    def _was_there(self, time_ms: int) -> bool:
        return any(stay.is_there(time_ms) for stay in self._was.stays)

    def _began_empty(self, time_ms: int) -> bool:
        """Return whether a generation was recorded before there were any members."""
        return time_ms in self._times and not any(stay.since <= time_ms for stay in self._was.stays)

    def _follows(self, time_ms: int | None, at_time: Mapping[int, RecordedGeneration]) -> bool:
        """Return whether the next thing that happens is the recorded next step of a cooperative rebalance."""
        return time_ms is not None and time_ms in at_time and at_time[time_ms].follows

    def _beginning(self, scenario: Scenario) -> _Situation | None:
        """Return the members with which the history began, and the topics of the generation after it."""
        first = [stay for stay in scenario.stays if stay.is_first]
        if not first or not self._recorded:
            return None
        return _Situation.of(scenario, first[0].since, _sized(self._recorded[0].topics, scenario.counts))

    def _known(self, first: _Situation | None) -> KnownGroup:
        members = () if first is None else first.members
        return KnownGroup(
            cluster=self._cluster,
            group_id=self._group_id,
            system=self._system,
            mode="clustering",
            strategy=None,
            settings={},
            leader=None,
            generation=0,
            members=members,
            topics={} if first is None else first.topics,
            owners=held_only_by(self._first_owners, [member.member_id for member in members]),
        )


class _Situation(msgspec.Struct, frozen=True):
    """The members of a group and the queues of its topics at one time."""

    time_ms: int
    members: tuple[Member, ...]
    topics: Mapping[str, Queues]

    @classmethod
    def of(cls, scenario: Scenario, time_ms: int, topics: Mapping[str, Queues]) -> _Situation:
        members = tuple(_member(stay, time_ms) for stay in scenario.stays if stay.is_there(time_ms))
        subscribed = {topic for member in members for topic in member.subscriptions or ()}
        return cls(time_ms, members, {topic: queues for topic, queues in topics.items() if topic in subscribed})

    def differs(self, before: _Situation) -> bool:
        """Return whether something changed that begins a generation; that a static member has a new id does not."""
        return self._seen() != before._seen() or self.topics != before.topics

    def _seen(self) -> set[tuple[Any, ...]]:
        return {
            (
                member.instance_id or member.member_id,
                *(str(getattr(member, name)) for name in _RELEVANT),
            )
            for member in self.members
        }


def _member(stay: Stay, time_ms: int) -> Member:
    described = next(fields for at, fields in reversed(stay.described) if at <= time_ms)
    return Member(**described, member_id=stay.member_id, name=stay.member_id, joined_at=stay.since)


def _times_of(stays: Iterable[Stay]) -> set[int]:
    times: set[int] = set()
    for stay in stays:
        times.update(at for at, _ in stay.described)
        if stay.until is not None:
            times.add(stay.until)
    return times


def _sized(topics: Mapping[str, Queues], counts: Mapping[str, int]) -> Mapping[str, Queues]:
    return {
        topic: with_count(queues, counts[topic], per_broker=False) if topic in counts else queues
        for topic, queues in topics.items()
    }


class _Run:
    """A group as its generations are decided."""

    def __init__(self, known: KnownGroup, config: CoreConfig) -> None:
        self._known, self._config = known, config
        self._last_owners = dict(known.owners)  # also of queues that a cooperative rebalance has revoked
        self.generations: list[Generation] = []

    def rename(self, stays: Iterable[Stay], time_ms: int) -> None:
        """Give the queues of a static member that came back to its new id."""
        former = {
            stay.last["instance_id"]: stay.member_id
            for stay in stays
            if stay.until == time_ms and stay.how == "replaced"
        }
        names = {
            former[stay.last["instance_id"]]: stay.member_id
            for stay in stays
            if stay.since == time_ms and stay.last["instance_id"] in former
        }
        if not names:
            return
        self._known = msgspec.structs.replace(
            self._known,
            owners=_renamed(self._known.owners, names),
            members=tuple(
                msgspec.structs.replace(member, member_id=names[member.member_id], name=names[member.member_id])
                if member.member_id in names
                else member
                for member in self._known.members
            ),
            leader=names.get(self._known.leader or "", self._known.leader),
        )
        self._last_owners = dict(_renamed(self._last_owners, names))

    @property
    def is_pending(self) -> bool:
        """Return whether a cooperative rebalance has revoked queues that it has yet to assign."""
        known = self._known
        if not self.generations or self.generations[-1].strategy != COOPERATIVE or not known.members:
            return False
        queues = {queue for topic, infos in known.topics.items() for queue in keys_of(infos, known.system, topic)}
        return bool(queues - known.owners.keys()) and self.generations[-1].undecided is None

    def decide(self, now: _Situation, recorded: RecordedGeneration, strategy: str | None, waited_ms: int) -> None:
        """Decide one generation; in Kafka's newer protocol each member that departs or joins has one of its own."""
        self._last_owners = {
            queue: holders
            for queue, holders in self._last_owners.items()
            if recorded.time_ms != now.time_ms or queue[0] not in recorded.made_again
        }
        strategy = recorded.strategy if strategy is None else strategy
        ids = {member.member_id for member in now.members}
        groups = [now.members]
        if is_server_side(strategy) and ids != set(self._known.member_ids):
            groups = list(_one_by_one(self._known.members, now.members))
        for members in groups:
            known = msgspec.structs.replace(
                self._known,
                members=members,
                topics=now.topics,
                topic_ids=recorded.topic_ids,
                strategy=strategy,
                settings={} if is_server_side(strategy) else recorded.settings,
                leader=recorded.leader if recorded.leader in ids else None,
            )
            here = set(self._known.member_ids)
            joined = [member.member_id for member in members if member.member_id not in here]
            self._step(known, now.time_ms, joined, waited_ms)

    def empty(self) -> None:
        """Forget all members and what they owned."""
        self._known = msgspec.structs.replace(self._known, members=(), owners={})
        self._last_owners = {}

    def finish(self) -> None:
        """Decide the other steps of a cooperative rebalance."""
        for _ in range(_MOST_STEPS):
            if not self.is_pending:
                return
            before = self._known.owners
            self._step(self._known, self.generations[-1].event_time, ())
            if self._known.owners == before:
                self.generations.pop()
                return

    def go_on_from(self, recorded: RecordedGeneration) -> None:
        """Take the recorded owners, where the core does not give them, or where they changed within the generation."""
        owners = recorded.last_owners
        if owners is None or (recorded.excluded is None and owners == recorded.owners):
            return
        self._known = msgspec.structs.replace(self._known, owners=owners)
        waiting = self._last_owners if recorded.strategy == COOPERATIVE else {}
        self._last_owners = {**waiting, **owners}

    def _step(self, known: KnownGroup, time_ms: int, newest: Sequence[str], waited_ms: int = 0) -> None:
        before, undecided = self._known, None
        strategy: str | None
        try:
            found = one_generation(known, self._config, newest)
            after, strategy = found.group, found.strategy
        except StrategyError as error:
            undecided, strategy = f"{error.code}: {error.message}", known.strategy
            owners = held_only_by(known.owners, known.member_ids)
            after = msgspec.structs.replace(known, owners=owners, generation=known.generation + 1)
        moved = [queue for queue, holders in after.owners.items() if self._last_owners.get(queue, holders) != holders]
        figures = figures_of(after, self._config)
        given_up = sum(after.owners.get(queue) != holders for queue, holders in before.owners.items())
        is_all = is_eager(after, strategy)
        waiting = self._last_owners if strategy == COOPERATIVE and after.members else {}
        self._last_owners = {**waiting, **after.owners}
        self._known = after
        self.generations.append(
            Generation(
                event_time=time_ms,
                members_before=len(before.members),
                members_after=len(after.members),
                queues_moved=len(moved),
                queues_stopped=len(before.owners) if is_all else given_up,
                waited_ms=waited_ms if is_all else 0,
                idle_members=figures.balance.idle,
                spread=figures.balance.spread,
                strategy=strategy if after.members else None,
                owners=after.owners,
                undecided=undecided,
            )
        )


def _one_by_one(before: Sequence[Member], after: Sequence[Member]) -> Iterator[tuple[Member, ...]]:
    """Yield the members after each departure, then after each join."""
    now = {member.member_id: member for member in after}
    present = [now.get(member.member_id, member) for member in before]
    for member in before:
        if member.member_id not in now:
            present = [staying for staying in present if staying.member_id != member.member_id]
            yield tuple(present)
    there = {member.member_id for member in before}
    for member in after:
        if member.member_id not in there:
            present = [*present, member]
            yield tuple(present)


def _renamed(owners: Mapping[Queue, tuple[str, ...]], names: Mapping[str, str]) -> Owners:
    return {queue: tuple(sorted(names.get(holder, holder) for holder in holders)) for queue, holders in owners.items()}
