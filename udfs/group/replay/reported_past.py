"""Core: a group whose coordinator reported its generations: decided by the core as recorded, and under policies.

No I/O.
"""

from __future__ import annotations

import msgspec

from udfs.group.replay.decided_generations import Generation, GenerationDecider, Scenario
from udfs.group.replay.member_policies import Lived, lived
from udfs.group.replay.policy import Policy
from udfs.group.replay.recorded_generations import RecordedGeneration, recorded_generations, reported_owners
from udfs.group.replay.replay import History, Replayed
from udfs.group.replay.stays import Stay, stays_of
from udfs.group.state.group import Owners
from udfs.model.config import CoreConfig
from udfs.model.events import GroupSnapshot

DECIDED_OTHERWISE = "decided_otherwise"


class RecordedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded generation beside what the core decides of it.

    Attributes:
        reason: Why the core does not give it: a reason of ``RecordedGeneration.excluded``, why it is not decided, or
            ``DECIDED_OTHERWISE``; None if members and owners are the same.
    """

    recorded: RecordedGeneration
    decided: Generation
    reason: str | None


class ReportedPast:
    """A group of Kafka's classic protocol, with its past."""

    def __init__(self, history: History, replayed: Replayed, config: CoreConfig) -> None:
        """Take a history.

        Args:
            replayed: What the coordinator decides over it.
        """
        self._history, self._config = history, config
        self._stays: list[Stay] = stays_of(history, replayed.changes)
        self._recorded = recorded_generations(history, replayed)
        self._was = Scenario(stays=self._stays)
        name = (history.cluster, history.system, history.group_id)
        self._decider = GenerationDecider(name, self._recorded, self._was, _first_owners(history), config)

    def as_recorded(self) -> list[RecordedDecision]:
        """Return each recorded generation with what the core decides of it."""
        decided = self._decider.decide(self._was, is_recorded=True)
        return [
            RecordedDecision(recorded=recorded, decided=generation, reason=_reason(recorded, generation))
            for recorded, generation in zip(self._recorded, decided, strict=True)
        ]

    def under(self, policy: Policy) -> tuple[list[Generation], Lived]:
        """Return the generations under a policy, and what members did."""
        config, history = self._config, self._history
        staying = [stay for stay in self._stays if stay.member_id not in policy.without]
        default_ms = config.session_timeouts_ms[history.system]
        end_ms = max((generation.time_ms for generation in self._recorded), default=0)
        done = lived(policy.members, staying, history.system, default_ms, end_ms)
        scenario = Scenario(stays=done.stays, counts=policy.queues, strategy=policy.strategy)
        return self._decider.decide(scenario), done


def _first_owners(history: History) -> Owners:
    """Return the owners of each queue when the history began."""
    for due in history.events:
        if isinstance(due.event, GroupSnapshot) and due.event.restored:
            return reported_owners(due.event)
    return {}


def _reason(recorded: RecordedGeneration, decided: Generation) -> str | None:
    if recorded.excluded is not None:
        return recorded.excluded
    if decided.undecided is not None:
        return decided.undecided
    is_same = recorded.owners is None or decided.owners == recorded.owners
    return None if is_same else DECIDED_OTHERWISE
