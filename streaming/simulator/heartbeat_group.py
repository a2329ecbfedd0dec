"""Shell: the actions of a simulated group whose members are tracked by their own heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from streaming.simulator.cluster import LONGEST_DELAY_MS
from streaming.simulator.heartbeat_members import STRATEGIES, HeartbeatMembers, SimulatedMember
from streaming.simulator.timeline import HEARTBEAT
from streaming.simulator.truth import Cause, ExpectedRebalance
from udfs.model.events import GroupDeleted, GroupSettings

# Late evidence must arrive well after everything else of its time was read and applied.
LATE_BY_MS = (15_000, 30_000)


class HeartbeatGroup(HeartbeatMembers):
    """Members join and leave: sometimes together, sometimes late, sometimes to the millisecond."""

    # -- what happens to the group ---------------------------------------------------------------------------

    def start(self) -> None:
        if self.cluster.system == "rocketmq" and not self.reports_strategies:
            self.strategy = "AVG"
            self.mode = self.rng.choice(("clustering", "clustering", "clustering", "broadcasting", "message"))
            self._emit_settings()
        together = self.rng.random() < 0.5
        first = self.rng.randrange(50, 3_000)
        for number in range(self.size):
            self.later(first + (0 if together else number * self.rng.randrange(1, 400)), self._join_new)
        self.rest()

    def _join_new(self) -> None:
        self.join(self.new_member())

    def _emit_settings(self) -> None:
        event = GroupSettings(
            **self.fields(),
            mode=self.mode,  # type: ignore[arg-type]
            strategy=self.strategy,
            strategy_settings={"virtual_nodes": self.setting} if self.setting else None,
        )
        self.cluster.emit(event, may_repeat=self.may_repeat, rng=self.rng)

    def settled(self) -> list[SimulatedMember]:
        """Return the members to which anything may happen, in order of their ids."""
        members = [member for member in self.members.values() if member.is_free]
        return sorted(members, key=lambda member: member.member_id)

    def actions(self) -> list[tuple[int, Callable[[], None]]]:
        self._forget_departed()
        members = self.settled()
        possible: list[tuple[int, Callable[[], None]]] = []
        if len(members) < 2 * self.size:
            possible.append((4, self.scale_out))
            if self.cluster.system == "metaq":
                possible.append((2, self.whisper))
        if len(members) >= 2:
            possible += [(3, self.scale_in), (4, self.crash_some), (3, self.deploy), (2, self.flap)]
            possible += [(2, self.subscribe_otherwise), (1, self.swap), (1, self.drain), (1, self.restart_unchanged)]
            if any(member.strategies for member in members):
                possible.append((2, self.prefer_otherwise))
            if self.strategy is not None:
                possible.append((2, self.change_settings))
        patience = self.timeout_ms + LATE_BY_MS[1] + 10_000  # longer than anything that needs a calm source
        calm = self.cluster.undisturbed_until(self.now + 2 * patience) and self.cluster.steady(self.topics)
        calm = calm and all(member.alive for member in self.members.values() if member.present)
        if self.cluster.system == "rocketmq" and calm and members:
            possible.append((2, self.start_twin))
        if self.cluster.disorder and calm and len(members) >= 3:
            possible += [(2, self.miss_the_deadline)]
            if self.timeout_ms > LATE_BY_MS[1] + 3 * self.interval_ms and not self.deletes:
                possible += [(1, self.leave_reported_late), (1, self.leave_reported_too_late)]
            if self.timeout_ms <= LATE_BY_MS[0] and not self.deletes:
                possible += [(1, self.lose_heartbeats)]
        return possible

    def _forget_departed(self) -> None:
        if len(self.members) > 4 * self.size:
            self.members = {name: member for name, member in self.members.items() if member.alive or member.present}

    def scale_out(self) -> None:
        """One to three newcomers, together or one after another."""
        apart = self.rng.choice((0, 0, 700, 2_500))
        for number in range(self.rng.randint(1, 3)):
            self.later(number * apart, self._join_new)
        self.busy_for(3 * apart + 10)

    def scale_in(self) -> None:
        """Some members leave together."""
        members = self.settled()
        for member in self.rng.sample(members, self.rng.randint(1, max(1, len(members) // 3))):
            self.leave(member)

    def crash_some(self) -> None:
        """One or two members crash; others may start in their place."""
        for member in self.rng.sample(self.settled(), self.rng.choice((1, 1, 2))):
            self.crash(member)
            if self.rng.random() < 0.6:
                self.later(self.rng.randrange(1_500, 20_000), self._join_new)
        self.busy_for(20_000)

    def deploy(self) -> None:
        """Each member in turn leaves and a new one joins."""
        step = self.rng.choice((800, 2_000, 4_000))
        members = self.settled()
        for number, member in enumerate(members):
            self.later(number * step, partial(self._replace, member, step // 2))
        self.busy_for((len(members) + 1) * step)

    def _replace(self, member: SimulatedMember, gap_ms: int) -> None:
        if member.is_free:
            self.leave(member)
            self.later(gap_ms, self._join_new)

    def flap(self) -> None:
        """One member leaves and rejoins again and again; its description stays."""
        member = self.rng.choice(self.settled())
        times = self.rng.randint(2, 4)
        for number in range(times):
            self.later(number * 3_000, lambda: self._leave_and_come(member))
        self.busy_for(times * 3_000 + 5_000)

    def _leave_and_come(self, member: SimulatedMember) -> None:
        if member.is_free:
            self.leave(member)
            self.later(self.rng.randrange(200, 2_000), lambda: self._come_again(member))

    def _come_again(self, member: SimulatedMember) -> None:
        if member.alive:
            return
        self.members[member.member_id] = member
        if self.rng.random() < 0.5:
            self.join(member)
            return
        member.alive = True
        member.life += 1
        self.send_heartbeat(member)
        self._schedule_heartbeat(member, self.interval_ms)

    def swap(self) -> None:
        """One member leaves and another joins in the same millisecond."""
        self.leave(self.rng.choice(self.settled()))
        self._join_new()

    def drain(self) -> None:
        """All members leave; later some join, after the group was deleted or not."""
        apart = self.rng.choice((0, 300))
        members = self.settled()
        for number, member in enumerate(members):
            self.later(number * apart, partial(self._leave_if_there, member))
        back = len(members) * apart + self.rng.randrange(5_000, 20_000)
        if self.deletes:
            self.later(back - 2_000, self._delete)
        for number in range(self.size):
            self.later(back + number * 100, self._join_new)
        self.busy_for(back + self.size * 100)

    def _leave_if_there(self, member: SimulatedMember) -> None:
        if member.is_free:
            self.leave(member)

    def _delete(self) -> None:
        if not any(member.present or member.alive for member in self.members.values()):
            self.cluster.emit(GroupDeleted(**self.fields()), may_repeat=False, rng=self.rng)
            self.created = False
            self.members.clear()
            if self.strategy is not None:
                self.later(500, self._emit_settings)

    def subscribe_otherwise(self) -> None:
        """Change the topics to which one member subscribes."""
        member = self.rng.choice(self.settled())
        wanted = self.some_topics()
        if wanted != member.subscriptions:
            member.subscriptions = wanted
            self.send_heartbeat(member, described=True)
            self.caused("subscription_changed", member.member_id)

    def prefer_otherwise(self) -> None:
        """Change the preferred strategies of one member."""
        member = self.rng.choice(self.settled())
        if member.strategies is None:
            return
        if self.cluster.system == "kafka":
            member.strategies = member.strategies[::-1]
        else:
            member.strategies = ("AVG_BY_CIRCLE",) if member.strategies == ("AVG",) else ("AVG",)
        self.send_heartbeat(member, described=True)
        self.caused("strategy_changed", member.member_id)

    def change_settings(self) -> None:
        """Give the group another strategy, or change its settings."""
        if self.rng.random() < 0.7:
            ours = STRATEGIES[self.cluster.system]
            self.strategy = ours[1 - ours.index(self.strategy or ours[0])]
            kind = "strategy_changed"
        else:
            if self.rng.random() < 0.5:
                self.setting += 5
            else:
                self.mode = "broadcasting" if self.mode == "clustering" else "clustering"
            kind = "settings_changed"
        self._emit_settings()
        if any(member.present for member in self.members.values()):
            self.caused(kind)

    def whisper(self) -> None:
        """A new member sends a heartbeat before its description."""
        member = self.new_member()
        wanted = member.subscriptions
        member.subscriptions = ()
        member.alive = True
        member.life += 1
        self.send_heartbeat(member)
        self.later(self.rng.randrange(500, 4_000), lambda: self._speak_up(member, wanted))
        self.busy_for(4_500)

    def _speak_up(self, member: SimulatedMember, wanted: tuple[str, ...]) -> None:
        member.subscriptions = wanted
        was_present = member.present
        self.join(member)
        if was_present:
            self.caused("subscription_changed", member.member_id)

    def restart_unchanged(self) -> None:
        """Restart a static member within its session timeout with the same description: nothing happens."""
        member = self.rng.choice(self.settled())
        self.later(self.interval_ms // 2, lambda: self.join(member) if member.is_free else None)
        self.busy_for(self.interval_ms)

    def start_twin(self) -> None:
        """A second consumer starts elsewhere with the client id of another; later it crashes."""
        first = self.rng.choice(self.settled())
        name = f"{first.member_id}#2"
        host = f"10.9.{self.rng.randrange(16)}.{self.rng.randrange(2, 250)}"
        duplicate = self.members[name] = SimulatedMember(name, first.client_id, host, first.subscriptions)
        duplicate.reported_id, duplicate.strategies = first.reported_id, first.strategies
        first.bound = duplicate.bound = True
        self.join(duplicate)
        life = self.rng.randrange(5_000, 20_000)
        self.later(life, lambda: self.crash(duplicate))
        self.later(life + self.timeout_ms + 1, lambda: setattr(first, "bound", False))

    # -- at the edge, and late -------------------------------------------------------------------------------

    def miss_the_deadline(self) -> None:
        """Silence one member until a millisecond before its deadline, exactly then, or a millisecond after."""
        member = self.rng.choice(self.settled())
        self.crash(member)
        time_ms = member.heartbeat_at + self.timeout_ms + self.rng.choice((-1, 0, 1))
        self.cluster.timeline.at(time_ms, lambda: self._beat_again(member), HEARTBEAT)
        self.busy_for(time_ms - self.now + 1)

    def _beat_again(self, member: SimulatedMember) -> None:
        member.alive = True
        member.life += 1
        self.send_heartbeat(member)
        self._schedule_heartbeat(member, self.interval_ms)

    def leave_reported_late(self) -> None:
        """Let a leave arrive long after its time, with nothing in between, so that it counts as in time."""
        span = self.rng.randrange(*LATE_BY_MS)
        member = self.rng.choice(self.settled())
        self.leave(member, delay_ms=span)
        member.present = False
        self.caused("member_left", member.member_id)
        self.busy_for(span + 10_000)
        self.hold_topics(span)

    def hold_topics(self, span_ms: int) -> None:
        """Keep the group's topics as they are, so that nothing else happens to it."""
        self.cluster.hold_topics(self.topics, self.now + span_ms + 5_000)

    def leave_reported_too_late(self) -> None:
        """Let a leave arrive long after its time, and after later events were reported and applied."""
        span = self.rng.randrange(*LATE_BY_MS)
        member = self.rng.choice(self.settled())
        left_at = self.now
        self.leave(member, delay_ms=span)
        member.present = False
        self.uncertain_until = self.now + span + 10_000
        self.later(1_000, self._join_new)
        self._expect_late("member_left", member, left_at, left_at + span + LONGEST_DELAY_MS, required=True)
        self.busy_for(span + 10_000)
        self.hold_topics(span)

    def lose_heartbeats(self) -> None:
        """Delay the heartbeats of one member past its deadline until all arrive at once: it never departed."""
        member = self.rng.choice(self.settled())
        member.alive = True
        member.life += 1
        deadline = member.heartbeat_at + self.timeout_ms
        first = max(self.now, member.heartbeat_at + 1)
        arrive = deadline + self.rng.randrange(*LATE_BY_MS)
        times = list(range(first, arrive, self.interval_ms))
        for time_ms in times:
            self.cluster.timeline.at(time_ms, lambda: self._held_up(member, arrive), HEARTBEAT)
        self._expect_late("session_expired", member, deadline, None, required=False)
        self._expect_late("member_joined", member, deadline, arrive + LONGEST_DELAY_MS, required=False)
        self.cluster.timeline.at(times[-1] + self.interval_ms, lambda: self._beat_again(member), HEARTBEAT)
        self.uncertain_until = arrive + 10_000
        self.busy_for(arrive - self.now + 10_000)
        self.hold_topics(arrive - self.now)

    def _held_up(self, member: SimulatedMember, arrive: int) -> None:
        self.send_heartbeat(member, delay_ms=arrive - self.now)
        member.heartbeat_at = self.now

    def _expect_late(self, kind: str, member: SimulatedMember, time_ms: int, until: int | None, required: bool) -> None:
        self.cluster.truth.forget_generation(self.cluster.name, self.group_id)
        self.cluster.truth.add(
            ExpectedRebalance(
                cluster=self.cluster.name,
                system=self.cluster.system,
                group_id=self.group_id,
                event_time=time_ms,
                causes=[Cause(kind, member.member_id)],
                late_until=until,
                required=required,
            )
        )
