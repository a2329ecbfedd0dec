"""Groups do what the tables of states and kinds say, all of it and nothing else; the page draws them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import group_states
from tests.model.check import cuts
from tests.model.core_tables import core_tables
from tests.model.histories import history
from tests.udfs.group.group_script import Script
from tests.udfs.group.random_coordinator import RandomCoordinator
from tests.udfs.group.record_script import RecordScript
from udfs.group import coordinator
from udfs.group.batch.context import GroupContext
from udfs.group.coordinator import Coordinator
from udfs.group.events.timers import Timer, TimerKind
from udfs.group.state.group import Group
from udfs.group.state.state_machine import KIND_TRANSITIONS, TRANSITIONS, GroupKind, GroupState, Step, kind_of, state_of
from udfs.model.events import GroupDeleted, GroupSnapshot, System, TopicQueues
from udfs.model.group_api import DueEvent

S, K = GroupState, GroupKind
FOREVER_MS = 8 * 86_400_000  # longer than a group is remembered
States = tuple[Step, GroupState, GroupState]
Kinds = tuple[Step, GroupKind, GroupKind]
Current = tuple[GroupState, GroupKind]


def current(context: GroupContext) -> Current:
    return state_of(context.group), context.kind


class Observed:
    """What led groups from which state and kind to which, and which changes came of no step."""

    def __init__(self) -> None:
        self.states: set[States] = set()
        self.kinds: set[Kinds] = set()
        self.current: Current | None = None
        self.outside: set[tuple[str, Current | None, Current]] = set()

    def begin(self, context: GroupContext, name: str) -> Current:
        """Return the state and kind before a step, which are those after the step before it."""
        if current(context) != self.current:
            self.outside.add((name, self.current, current(context)))
        return current(context)

    def end(self, context: GroupContext) -> Current:
        """Return the state and kind after a step."""
        self.current = current(context)
        return self.current

    def note(self, step: Step, before: Current, after: Current) -> None:
        if before[0] != after[0]:
            self.states.add((step, before[0], after[0]))
        if before[1] != after[1]:
            self.kinds.add((step, before[1], after[1]))


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Observed:
    """Watch every coordinator."""
    found = Observed()

    def watched(owner: Any, name: str, step_of: Callable[..., Step]) -> None:
        original = getattr(owner, name)

        def call(first: Any, *rest: Any) -> Any:
            context = getattr(first, "context", first)
            before = found.begin(context, name)
            answer = original(first, *rest)
            found.note(step_of(first, *rest), before, found.end(context))
            return answer

        monkeypatch.setattr(owner, name, call)

    def run(self: Coordinator) -> Any:
        found.current = current(self.context)
        answer = original_run(self)
        found.begin(self.context, "run")
        return answer

    original_run = Coordinator.run
    monkeypatch.setattr(Coordinator, "run", run)
    watched(Coordinator, "_apply_event", lambda self, due, _: step_of_event(self, due))
    watched(Coordinator, "_on_timer", lambda _, timer: step_of_timer(timer))
    watched(Coordinator, "_take_records", lambda *_: Step.GENERATION)
    watched(Coordinator, "_take_reports", lambda *_: Step.CHANGE)
    watched(coordinator, "apply_heartbeat", lambda *_: Step.CHANGE)
    watched(coordinator, "apply_expiry", lambda *_: Step.CHANGE)
    watched(coordinator, "end_event_time", lambda *_: Step.CANCEL)
    watched(coordinator, "register_empty_group", lambda *_: Step.POLL)
    watched(coordinator, "learn_topic", lambda *_: Step.TOPICS)
    return found


def step_of_event(self: Coordinator, due: DueEvent) -> Step:
    event = due.event
    if isinstance(event, GroupDeleted):
        return Step.DELETE
    if isinstance(event, TopicQueues) and self.context.kind is K.REPORTED:
        return Step.TOPICS
    if not isinstance(event, GroupSnapshot):
        return Step.CHANGE
    if event.restored:
        return Step.RESTORE
    if event.state == "not_followed":
        return Step.NOT_FOLLOWED
    if event.generation is not None:
        return Step.GENERATION
    return Step.CHANGE if event.members or self.context.group.pending is not None else Step.POLL


def step_of_timer(timer: Timer) -> Step:
    steps = {TimerKind.FORGET: Step.FORGET, TimerKind.COMMIT: Step.COMMIT}
    return steps.get(timer.kind, Step.SETTLE)


# ---- ways into each state, and what leads on


def report(script: Script, at: int, generation: int, state: GroupState) -> None:
    """Have a coordinator report a generation after which the group is in a state."""
    voters = {"m0": {"strategies": ("range",)}, "m1": {"strategies": ("roundrobin",)}}
    if state is S.FAILED:
        script.snapshot(at, generation, {name: ["t"] for name in voters}, describe=voters)
    elif state is S.EMPTY:
        script.snapshot(at, generation, {}, strategy="range")
    else:
        script.snapshot(at, generation, {"m0": ["u" if state is S.AWAITING_TOPICS else "t"]}, strategy="range")


def lead_to(script: Script, state: GroupState) -> list[str]:
    """Bring a new group to a state by 50, and return its members."""
    script.queues(0, "t", 2)
    members: list[str] = []
    match state:
        case S.PREPARING:
            script.join(45, "m0")
        case S.STABLE | S.EMPTY:
            script.join(10, "m0")
            members = ["m0"]
        case S.FAILED:
            script.join(10, "m0", strategies=("range",))
            script.join(10, "m1", strategies=("roundrobin",))
            members = ["m0", "m1"]
        case S.AWAITING_TOPICS:
            report(script, 10, 3, state)
        case S.NOT_FOLLOWED:
            script.snapshot(10, None, {}, state="not_followed")
    if state is S.EMPTY:
        script.leave(15, "m0")
        members = []
    script.run(50)
    assert state_of(script.group) is state
    return members


def take(script: Script, step: Step, after: GroupState, members: list[str]) -> None:
    """Have a step lead a group on."""
    match step:
        case Step.CHANGE:
            script.poll(60, *members, "z")
        case Step.CANCEL:
            script.poll(60, *members, "z")
            script.leave(60, "z")
        case Step.SETTLE if after is S.FAILED:
            script.join(52, "m1", strategies=("range",))
            script.join(52, "m2", strategies=("roundrobin",))
        case Step.SETTLE if after is S.EMPTY:
            script.leave(52, "m0")
        case Step.GENERATION:
            report(script, 60, 4, after)
        case Step.TOPICS:
            script.queues(60, "u", 1)
        case Step.COMMIT:
            script.commit(60, "t", 0)
        case Step.POLL:
            script.poll(60)
        case Step.DELETE:
            script.delete(60)
        case Step.NOT_FOLLOWED:
            script.snapshot(60, None, {}, state="not_followed")
        case Step.RESTORE:
            state = "not_followed" if after is S.NOT_FOLLOWED else None
            shown = {"m0": ["t"]} if after is S.STABLE else {}
            script.snapshot(60, 7, shown, restored=True, generation_source="counted", state=state)
    script.run(FOREVER_MS if step is Step.FORGET else 200)


def lead_to_kind(kind: GroupKind, after: GroupKind) -> Script:
    """Make a group of a kind, of a system in which it may become of another."""
    script = Script("rocketmq" if K.CLIENT_ASSIGNED in (kind, after) else "kafka", settle_ms=20)
    if kind is K.COUNTED and script.system == "rocketmq":
        script.settings(5, mode="broadcasting")
    if kind is K.REPORTED:
        report(script, 10, 3, S.EMPTY)
    if kind is K.NOT_FOLLOWED:
        script.snapshot(10, None, {}, state="not_followed")
    script.run(50)
    return script


def take_to_kind(script: Script, step: Step, before: GroupKind, after: GroupKind) -> None:
    """Have a step make a group of another kind."""
    if step is Step.CHANGE and before is not K.NOT_FOLLOWED:
        script.settings(60, mode="clustering" if after is K.CLIENT_ASSIGNED else "broadcasting")
        script.run(200)
        return
    if step is Step.CHANGE and script.system == "rocketmq" and after is K.COUNTED:
        script.settings(55, mode="broadcasting")
    if step is Step.RESTORE:
        source, state = ("reported", None) if after is K.REPORTED else ("counted", "not_followed")
        script.snapshot(60, 7, {}, restored=True, generation_source=source, state=state)
    else:
        take(script, step, S.EMPTY, [])
    script.run(FOREVER_MS if step is Step.FORGET else 200)


def states_of(step: Step, before: frozenset[Any], after: frozenset[Any]) -> list[tuple[Step, Any, Any]]:
    """Return each way on that one line of a table gives, in order."""
    pairs = [(state, other) for state in before for other in after if state is not other]
    return [(step, *pair) for pair in sorted(pairs, key=lambda pair: (pair[0].value, pair[1].value))]


STATES: list[States] = [way for line in TRANSITIONS for way in states_of(*line)]
KINDS: list[Kinds] = [way for line in KIND_TRANSITIONS for way in states_of(*line)]


@pytest.mark.parametrize(("step", "before", "after"), STATES)
def test_each_way_of_the_table_is_taken(step: Step, before: S, after: S, observed: Observed) -> None:
    script = Script(settle_ms=20)
    members = lead_to(script, after if step is Step.CANCEL else before)
    take(script, step, after, members)
    assert (step, before, after) in observed.states
    assert observed.states <= set(STATES)


@pytest.mark.parametrize("after", [S.STABLE, S.FAILED, S.EMPTY, S.AWAITING_TOPICS, S.NOT_FOLLOWED])
@pytest.mark.parametrize("before", GroupState)
def test_no_step_takes_another_way(before: S, after: S, observed: Observed) -> None:
    # An export is taken in by a new checkpoint.
    for step in set(Step) - (set() if before is S.NEW else {Step.RESTORE}):
        script = Script(settle_ms=20)
        take(script, step, after, lead_to(script, before))
    assert observed.states <= set(STATES)
    assert observed.kinds <= set(KINDS)
    assert observed.outside == set()


@pytest.mark.parametrize(("step", "before", "after"), KINDS)
def test_each_way_from_kind_to_kind_is_taken(step: Step, before: K, after: K, observed: Observed) -> None:
    script = lead_to_kind(before, after)
    take_to_kind(script, step, before, after)
    assert (step, before, after) in observed.kinds
    assert observed.kinds <= set(KINDS)


@pytest.mark.parametrize("after", GroupKind)
@pytest.mark.parametrize("before", GroupKind)
def test_no_step_takes_another_way_from_kind_to_kind(before: K, after: K, observed: Observed) -> None:
    for step in set(Step) - {Step.RESTORE}:
        take_to_kind(lead_to_kind(before, after), step, before, after)
    assert observed.kinds <= set(KINDS)
    assert observed.outside == set()


def test_no_history_takes_another_way(observed: Observed) -> None:
    for seed in range(60):
        batches, shards = cuts(history(seed))[0]
        core_tables(batches, shards)
    assert observed.states <= set(STATES)
    assert observed.kinds <= set(KINDS)
    assert observed.outside == set()
    assert len(observed.states) > 12


def test_no_coordinators_records_take_another_way(observed: Observed) -> None:
    for seed in range(20):
        script = RecordScript(partitions=None, has_offsets=True)
        RandomCoordinator(seed, script, at_once=0.3).run(60)
        script.run(10**6)
    assert observed.states <= set(STATES)
    assert observed.kinds <= set(KINDS)
    assert observed.outside == set()
    assert {step for step, _, _ in observed.states} >= {Step.GENERATION}


def test_the_page_draws_these_tables() -> None:
    assert group_states.drawn() == group_states.drawing(), "redraw them: python -m tests.group_states"


@pytest.mark.parametrize(
    ("system", "fields", "kind"),
    [
        ("kafka", {}, GroupKind.COUNTED),
        ("kafka", {"mode": "clustering"}, GroupKind.COUNTED),
        ("rocketmq", {}, GroupKind.CLIENT_ASSIGNED),
        ("metaq", {"mode": "clustering"}, GroupKind.CLIENT_ASSIGNED),
        ("rocketmq", {"mode": "broadcasting"}, GroupKind.COUNTED),
        ("rocketmq", {"mode": "message"}, GroupKind.COUNTED),
        # Generation 0 is a reported one.
        ("kafka", {"generation": 0}, GroupKind.REPORTED),
        ("rocketmq", {"generation": 7}, GroupKind.REPORTED),
        ("kafka", {"followed": False, "generation": 7}, GroupKind.NOT_FOLLOWED),
        ("rocketmq", {"followed": False}, GroupKind.NOT_FOLLOWED),
    ],
)
def test_a_groups_kind_names_what_counts_its_generations_and_what_assigns(
    system: System, fields: dict[str, object], kind: GroupKind
) -> None:
    assert kind_of(Group(**fields), system) is kind  # type: ignore[arg-type]
