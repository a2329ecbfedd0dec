"""Core: the episodes of a group after one more rebalance, and their ends. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from udfs.group.batch.context import GroupContext
from udfs.group.batch.episode_texts import episode_changed
from udfs.group.decision.episode_roots import members_of, root_of
from udfs.group.decision.episode_rules import COME_OR_GO, Tied, tied_to
from udfs.group.state.episodes import MAX_EPISODES, MAX_ROOTS, ROOTS_KEPT_MS, Deed, Episode, Root
from udfs.group.state.group import Owners
from udfs.group.state.view import GroupView
from udfs.model.episode_changed import EpisodeChanged
from udfs.model.ids import episode_id
from udfs.model.journal import Rebalance


class EpisodeStep(NamedTuple):
    """The memory after one more rebalance, and the episodes that it changed; ``episode_id``: the one it belongs to."""

    roots: Sequence[Root]
    episodes: Sequence[Episode]
    changes: Sequence[EpisodeChanged]
    episode_id: str | None = None


def episodes_after(view: GroupView, row: Rebalance, before: Owners) -> EpisodeStep:
    """Return the memory of a group after one more rebalance; nothing is changed.

    Args:
        before: The owners before it.
    """
    at, group = row.event_time, view.group
    kept = [root for root in group.roots if root.at > at - ROOTS_KEPT_MS][1 - MAX_ROOTS :]
    roots = [msgspec.structs.replace(root) for root in kept]
    episodes = [msgspec.structs.replace(episode) for episode in group.episodes]
    newest, named = root_of(view, row, roots, before)
    roots.append(newest)
    open_now = {episode.number: episode for episode in episodes}
    tied = None
    if newest.follows:
        # A later generation of the rebalance before belongs where that one does.
        current = open_now.get(roots[-2].episode) if len(roots) > 1 else None
    else:
        tied = tied_to(view, newest, roots[:-1], named, episodes)
        current = _episode_of(tied, open_now) if tied is not None else _that_goes_on(newest, episodes)
    if tied is None and current is None:
        return EpisodeStep(roots, episodes, ())
    changes: list[EpisodeChanged] = []
    if current is None and tied is not None:
        for former in [*_superseded(tied, episodes), *sorted(episodes, key=_age)[: -MAX_EPISODES + 1]]:
            if former in episodes:
                episodes.remove(former)
                changes.append(episode_changed(former, closed_at=at))
        current = _opened(view, tied, roots, episodes)
        episodes.append(current)
    if current is None:
        return EpisodeStep(roots, episodes, changes)
    belonging = _with_followers(roots, [newest] if tied is None else tied.roots)
    _claim(current, belonging, newest)
    if tied is not None:
        _describe(current, tied, roots)
    current.ghosts = _ghosts(view, current)
    for root in roots:
        if root.episode == current.number:
            root.is_planned = current.is_planned
    changes.append(episode_changed(current))
    return EpisodeStep(roots, episodes, changes, current.episode_id)


def planned_times(step: EpisodeStep, times: Sequence[int]) -> set[int]:
    """Return those times of rebalances that are part of a deploy or of a scaling."""
    planned = {root.at for root in step.roots if root.is_planned}.intersection(times)
    for episode in step.episodes:
        if episode.is_planned:
            planned.update(time for time in times if episode.began_at <= time <= episode.last_at)
    return planned


def _age(episode: Episode) -> int:
    return episode.last_at


def _episode_of(tied: Tied, open_now: Mapping[int, Episode]) -> Episode | None:
    """Return the open episode that some of the rebalances are part of, by the newest of them."""
    return next((open_now[root.episode] for root in reversed(tied.roots) if root.episode in open_now), None)


def _that_goes_on(newest: Root, episodes: Sequence[Episode]) -> Episode | None:
    """Return the open episode whose client caused a rebalance, although no rule holds at it."""
    marks = {client.mark for client in newest.clients if not client.deeds & Deed.SHARED}
    return next((episode for episode in episodes if episode.culprit.client and episode.culprit.mark in marks), None)


def _superseded(tied: Tied, episodes: Sequence[Episode]) -> list[Episode]:
    """Return the deploys that another deploy of the same clients follows."""
    return [
        episode
        for episode in episodes
        if (episode.kind, episode.culprit.mark) == (tied.kind, tied.culprit.mark) and tied.kind == "rolling_deploy"
    ]


def _opened(view: GroupView, tied: Tied, roots: Sequence[Root], episodes: Sequence[Episode]) -> Episode:
    first = tied.roots[0]
    number = 1 + max([0, *(root.episode for root in roots), *(episode.number for episode in episodes)])
    name = episode_id(view.facts.cluster, view.facts.group_id, first.rebalance_id.hex())
    return Episode(number=number, episode_id=name, kind=tied.kind, began_at=first.at, last_at=first.at)


def _with_followers(roots: Sequence[Root], belonging: Sequence[Root]) -> list[Root]:
    """Return rebalances with the later generations of each that follow it at once."""
    ids = {root.rebalance_id for root in belonging}
    found, belongs = [], False
    for root in roots:
        belongs = root.rebalance_id in ids or (belongs and root.follows)
        if belongs:
            found.append(root)
    return found


def _claim(episode: Episode, belonging: Sequence[Root], newest: Root) -> None:
    """Count rebalances for an episode, those that it does not have yet."""
    for root in belonging:
        if root.episode:
            continue
        if root is not newest:
            if len(episode.earlier_ids) == MAX_ROOTS:
                continue
            episode.earlier_ids = [*episode.earlier_ids, root.rebalance_id]
        root.episode = episode.number
        episode.gap_ms = max(episode.gap_ms, root.at - episode.last_at)
        episode.began_at, episode.last_at = min(episode.began_at, root.at), max(episode.last_at, root.at)
        episode.rebalances += 1
        episode.moved += root.moved
        episode.pause_ms = _sum(episode.pause_ms, root.pause_ms)
        episode.queue_pause_ms = _sum(episode.queue_pause_ms, root.queue_pause_ms)
        episode.repeated = _sum(episode.repeated, root.repeated)
        for client in root.clients:
            episode.late_polls += bool(client.deeds & Deed.POLLED_TOO_LATE)


def _sum(first: int | None, other: int | None) -> int | None:
    return first if other is None else (first or 0) + other


def _describe(episode: Episode, tied: Tied, roots: Sequence[Root]) -> None:
    """Let an episode be of the kind that its newest rebalance shows."""
    mine = [root for root in roots if root.episode == episode.number]
    is_same = episode.kind == tied.kind
    episode.kind = tied.kind
    if not is_same or episode.culprit.mark == tied.culprit.mark or tied.returns > episode.returns:
        episode.culprit, episode.returns = tied.culprit, tied.returns
    episode.period_ms, episode.period_of = tied.period_ms, list(tied.period_of)
    episode.has_joined = tied.has_joined
    marks, newest = _doers(mine, tied), _doers(mine[-1:], tied) - _doers(mine[:-1], tied)
    # Older ones may be forgotten.
    episode.clients = max(len(marks), episode.clients + len(newest) if is_same else 0)
    ghosts = [client for root in mine for client in root.clients if client.ghost_ms]
    if ghosts:
        longest = max(ghosts, key=lambda client: client.ghost_ms)
        if longest.ghost_ms >= (episode.ghost_ms or 0):
            episode.ghost_ms, episode.ghost_queues = longest.ghost_ms, longest.ghost_queues


def _doers(roots: Sequence[Root], tied: Tied) -> set[int]:
    """Return who makes an episode: clients or, where they find a topic, members."""
    deeds = {"topic_discovered": Deed.SUBSCRIBED, "rolling_deploy": Deed.JOINED}.get(tied.kind, COME_OR_GO)
    return {client.mark for root in roots for client in root.clients if client.deeds & deeds}


def _ghosts(view: GroupView, episode: Episode) -> int:
    """Return how many former members of its client are still present beside the newest."""
    if episode.kind != "same_client_again" or episode.culprit.client is None:
        return 0
    return max(0, len(members_of(view, episode.culprit.client)) - 1)


def end_episodes(context: GroupContext, at: int) -> None:
    """Close the episodes that are over at a time."""
    context.end_episodes([episode for episode in context.group.episodes if episode.closes_at <= at], at)
