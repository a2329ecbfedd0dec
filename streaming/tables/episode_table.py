"""Shell: the table of episodes. No I/O."""

from __future__ import annotations

from streaming.tables.columns import COUNT, LONG, TEXT, TEXTS, TIME, Column, Table
from streaming.tables.shared_columns import CLUSTER, GROUP

EPISODES = Table(
    "episodes",
    "One row per episode: rebalances of one group with one root, as of its newest. A rebalance belongs to it if"
    " its episode_id is this one's, or its rebalance_id is among earlier_rebalance_ids",
    (
        Column("episode_id", TEXT, "Identity of the episode"),
        CLUSTER,
        GROUP,
        Column("kind", TEXT, "topic_discovered, same_client_again, rolling_deploy, scaling or periodic"),
        Column("began_at", TIME, "Time of its first rebalance"),
        Column("last_at", TIME, "Time of its newest rebalance"),
        Column("closed_at", TIME, "When it was over, because nothing of it came any more; null = it may go on"),
        Column("text", TEXT, "What happened, to whom, and at what cost"),
        Column("client", TEXT, "Client that causes it; null = not one client, or not known"),
        Column("host", TEXT, "Host of that client, without a port"),
        Column("instance_id", TEXT, "Instance id of that client"),
        Column("prefix", TEXT, "What the client ids of a deployment have in common"),
        Column("topic", TEXT, "Topic that its members found"),
        Column("clients", COUNT, "Clients that came or left; of a topic the members that found it"),
        Column("period_ms", LONG, "Mean time between its beats; null = it is not periodic"),
        Column("period_of", TEXTS, "Settings and timers of clients that have this period; empty = none is known"),
        Column("ghost_ms", LONG, "For how long, at most, a former member stayed beside its successor"),
        Column("rebalances", COUNT, "Rebalances that belong to it"),
        Column("queues_moved", LONG, "Sum of their queues_moved"),
        Column("pause_ms", LONG, "Sum of their pause_ms; null = none was observed"),
        Column("queue_pause_ms", LONG, "Sum of their queue_pause_ms; null = none was observed"),
        Column("repeated_messages", LONG, "Sum of their repeated_messages; null = none is known"),
        Column(
            "earlier_rebalance_ids",
            TEXTS,
            "Its rebalances that were decided before they were known to belong to it: they lack its episode_id",
        ),
    ),
    key=("episode_id",),
    ends="closed_at",
    unique_texts=("episode_id",),
)
