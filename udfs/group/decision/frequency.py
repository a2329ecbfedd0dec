"""Core: how often a group rebalances, after one more rebalance, and which rebalances are one story. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from udfs.group.decision.episode_step import EpisodeStep, episodes_after, planned_times
from udfs.group.state.flapping import Flapping, Usual, flapping, remember, remember_clients
from udfs.group.state.group import Owners
from udfs.group.state.view import GroupView
from udfs.model.journal import Rebalance, Trigger


class Frequency(NamedTuple):
    """The memory of a group's rebalances after one more.

    Attributes:
        recent, usual, clients: See ``flapping``. step: The episodes.
        unplanned: When the group rebalanced within the window, and which clients caused it, without deploys and
            scalings. flapping: How much more often than usual that is.
    """

    recent: Sequence[int]
    usual: Usual | None
    clients: Sequence[Sequence[int]]
    step: EpisodeStep
    unplanned: Sequence[tuple[int, Sequence[int]]] = ()
    flapping: Flapping | None = None


def frequency_after(view: GroupView, row: Rebalance, before: Owners) -> Frequency:
    """Return how often a group rebalances after one more rebalance; nothing is changed.

    Args:
        row: Its causes name their clients. before: The owners before it.
    """
    group, at = view.group, row.event_time
    if all(trigger.topic is not None and view.is_quiet(trigger.topic) for trigger in row.triggers):
        step = EpisodeStep(group.roots, group.episodes, ())
        recent, usual, clients = group.recent, group.usual, group.recent_clients
    else:
        step = episodes_after(view, row, before)
        recent, usual = remember(group.recent, group.usual, at, view.config)
        clients = remember_clients(group.recent_clients, _causing_clients(row.triggers), len(recent))
    planned = planned_times(step, recent)
    unplanned = [(time, marks) for time, marks in zip(recent, clients, strict=True) if time not in planned]
    stories = [episode for episode in step.episodes if episode.episode_id == step.episode_id and not episode.is_planned]
    # What is one story is one finding, and one alert: once open it stays so until the story is over.
    much = flapping(recent, usual, view.config, planned, goes_on=bool(stories) and "flapping" in group.findings)
    if much is not None and stories:
        (story,) = stories
        much = msgspec.structs.replace(much, closes_at=max(much.closes_at, story.closes_at), episode=story.kind)
    if much is not None and much.closes_at <= at:
        much = None
    return Frequency(recent, usual, clients, step, unplanned, much)


def _causing_clients(triggers: Sequence[Trigger]) -> set[str]:
    """Return the clients of the causes; a group's first members do not count as a cause."""
    if triggers[0].kind == "group_created":
        return set()
    return {trigger.client for trigger in triggers if trigger.client}
