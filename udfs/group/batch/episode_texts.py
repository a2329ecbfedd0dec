"""Core: an episode as a journal entry, with its text. No I/O."""

from __future__ import annotations

from udfs.group.batch.finding_texts import counted
from udfs.group.state.episodes import Episode
from udfs.model.episode_changed import EpisodeChanged

# What people look at next, by kind.
_NEXT = {
    "same_client_again": "Look into the log of that client, and why it ends.",
    "periodic": "Look for what runs at that period.",
}
_POLL = "max.poll.interval.ms"


def episode_changed(episode: Episode, closed_at: int | None = None) -> EpisodeChanged:
    """Return an episode as its journal entry."""
    culprit = episode.culprit
    return EpisodeChanged(
        episode_id=episode.episode_id,
        episode=episode.kind,
        began_at=episode.began_at,
        last_at=episode.last_at,
        closed_at=closed_at,
        text=episode_text(episode),
        client=culprit.client,
        host=culprit.host,
        instance_id=culprit.instance_id,
        prefix=culprit.prefix,
        topic=culprit.topic,
        clients=episode.clients,
        period_ms=episode.period_ms,
        period_of=tuple(episode.period_of),
        ghost_ms=episode.ghost_ms,
        rebalances=episode.rebalances,
        queues_moved=episode.moved,
        pause_ms=episode.pause_ms,
        queue_pause_ms=episode.queue_pause_ms,
        repeated_messages=episode.repeated,
        earlier_rebalance_ids=tuple(name.hex() for name in episode.earlier_ids),
    )


def episode_text(episode: Episode) -> str:
    """Return an episode as sentences."""
    what = {
        "same_client_again": _same_client,
        "periodic": _periodic,
        "rolling_deploy": _deploy,
        "scaling": _scaling,
        "topic_discovered": _topic,
    }[episode.kind](episode)
    span = (episode.last_at - episode.began_at) / 1_000
    within = f"{span / 60:.1f} min" if span >= 120 else f"{span:.1f} s"
    return " ".join(
        filter(
            None,
            [
                f"{what}: {counted(episode.rebalances, 'rebalance')} within {within}.",
                _ghost(episode),
                _cost(episode),
                _NEXT.get(episode.kind, ""),
            ],
        )
    )


def _same_client(episode: Episode) -> str:
    times = f"{episode.culprit.client} came back {counted(episode.returns, 'time')}"
    if episode.late_polls:
        times += f", and left by poll timeout ({_POLL}) {counted(episode.late_polls, 'time')}"
    return times + (f"; {counted(episode.clients - 1, 'other client')} with it" if episode.clients > 1 else "")


def _periodic(episode: Episode) -> str:
    period = f"A rebalance every {(episode.period_ms or 0) / 1_000:.1f} s"
    if episode.culprit.client:
        period += f" by {episode.culprit.client}"
    if not episode.period_of:
        return f"{period}, a period that no known setting has"
    return f"{period}, the period of {' or of '.join(episode.period_of)}"


def _deploy(episode: Episode) -> str:
    return f"A rolling deploy of {_fleet(episode)}, {counted(episode.clients, 'client')}, each once"


def _scaling(episode: Episode) -> str:
    way = "joined" if episode.has_joined else "left"
    return f"A scaling of {_fleet(episode)}: {counted(episode.clients, 'client')} {way}"


def _topic(episode: Episode) -> str:
    return f"{counted(episode.clients, 'member')} found topic {episode.culprit.topic}, one after the other"


def _fleet(episode: Episode) -> str:
    return "the group" if episode.culprit.prefix is None else episode.culprit.prefix


def _ghost(episode: Episode) -> str:
    if episode.kind != "same_client_again":
        return ""
    sentences = []
    if episode.ghost_ms:
        held = f"held {counted(episode.ghost_queues, 'queue')} for" if episode.ghost_queues else "stayed for"
        sentences.append(f"A former member {held} {episode.ghost_ms / 1_000:.1f} s beside its successor.")
    if episode.ghosts:
        sentences.append(
            f"{counted(episode.ghosts, 'former member')} of it still present: until a session ends, its queues wait."
        )
    return " ".join(sentences)


def _cost(episode: Episode) -> str:
    parts = [f"{counted(episode.moved, 'queue')} moved"]
    if episode.queue_pause_ms is not None:
        parts.append(f"queues paused for {episode.queue_pause_ms / 1_000:.1f} s in sum")
    if episode.repeated is not None:
        parts.append(f"{counted(episode.repeated, 'message')} read again")
    return f"{', '.join(parts)}."
