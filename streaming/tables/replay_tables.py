"""Shell: the tables of replays, which a job of their own writes, and every table that there is. No I/O."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import pyarrow as pa

from streaming.tables.columns import COUNT, LONG, REAL, TEXT, TEXTS, TIME, TRUTH, Column, Table
from streaming.tables.schema import TABLES
from streaming.tables.shared_columns import CLUSTER, GROUP, SYSTEM

# A row names at most this many rebalances that would not have been, the newest ones; their number is in a column.
MAX_GONE: Final = 1_000
_SUMS = pa.list_(
    pa.struct(
        [
            *(("policy", TEXT), ("groups", LONG), ("groups_unknown", LONG), ("rebalances", LONG)),
            *(("queues_moved", LONG), ("queue_pause_ms", LONG), ("queue_pause_unknown", LONG)),
            *(("repeated_messages", LONG), ("repeated_unknown", LONG), ("gone_rebalances", LONG)),
            *(("queues_stopped", LONG), ("recorded_rebalances", LONG), ("recorded_queues_moved", LONG)),
            ("recorded_queues_stopped", LONG),
        ]
    )
)
_REPLAY = Column("replay_id", TEXT, "Identity of the replay: the same request over the same tables gives the same id")
_STARTED = Column("started_at", TIME, "When the replay was begun, by the clock of its machine")

REPLAYS = Table(
    "replays",
    "One row per replay: the past of many groups, decided again as it was and under policies",
    (
        _REPLAY,
        Column("cluster", TEXT, "The only cluster that was asked for; null = all"),
        Column("request", TEXT, "Hash of what was asked, as written: the same request continues an unfinished replay"),
        Column("groups_asked", TEXTS, "Names of the groups that were asked for; empty = all"),
        Column("policies", TEXTS, "Policies, as written"),
        Column("all_strategies", TRUTH, "Whether each strategy of a group's system was a policy, too"),
        Column(
            "covers_from", TIME, "Histories begin after the first rebalance since then; null = as early as possible"
        ),
        Column("covers_to", TIME, "Rebalances up to then count; null = all"),
        Column("tables_location", TEXT, "Location of the tables that were read"),
        Column("table_versions", TEXT, "Versions of the tables that were read, as JSON"),
        Column("code_version", TEXT, "Release that decided again"),
        _STARTED,
        Column("finished_at", TIME, "When all groups were in replay_groups; null = not yet"),
        Column("groups", LONG, "Groups in replay_groups; null = not finished"),
        Column(
            "sums",
            _SUMS,
            "For each policy, null as recorded, what its groups add up to, as far as known: of how many groups a figure"
            " is unknown or only a part is in *_unknown; recorded_* are what was recorded of the groups that it knows",
        ),
    ),
    key=("replay_id",),
    cluster_by=("started_at",),
    unique_texts=("replay_id",),
)

REPLAY_GROUPS = Table(
    "replay_groups",
    "One row per group and policy of a replay, and one without a policy: what was recorded",
    (
        _REPLAY,
        CLUSTER,
        SYSTEM,
        GROUP,
        Column("policy", TEXT, "Policy, as written; null = as recorded"),
        _STARTED,
        Column("covers_from", TIME, "First recorded rebalance that counts; null = the group has no history"),
        Column("covers_to", TIME, "Last recorded rebalance that counts; null = the group has no history"),
        Column("rebalances", COUNT, "Rebalances; null = unknown, and so are all figures"),
        Column("queues_moved", LONG, "Queues that moved from one member to another, summed"),
        Column(
            "queues_stopped",
            LONG,
            "Queues that stood still, summed: where a coordinator reports generations all"
            " that do so, else those that moved",
        ),
        Column("queue_pause_ms", LONG, "Queue-pause, summed as far as it is known; under a policy an estimate"),
        Column(
            "waiting_pause_ms",
            LONG,
            "Part of it under a policy: queues that stand still while rebalances wait for silent members",
        ),
        Column("repeated_messages", LONG, "Messages read twice, summed as far as known; under a policy an estimate"),
        Column("queue_outage_max_ms", LONG, "Longest outage of a queue, at most; null = unknown, as under a policy"),
        Column("idle_members", REAL, "Mean over time of the members without queues"),
        Column(
            "lasting_idle_members",
            COUNT,
            "So many members had no queue for 95 % of that time; null = not known of so much",
        ),
        Column("spread", REAL, "Mean over time of the most minus the fewest queues of a member"),
        Column(
            "move_pause_ms", LONG, "Median queue-pause of a queue that stopped in recorded rebalances: estimates use it"
        ),
        Column("move_repeated_messages", REAL, "Median of the messages read twice for a queue that got an owner then"),
        Column("measured_rebalances", COUNT, "Recorded rebalances that move_pause_ms rests on"),
        Column("gone_rebalances", COUNT, "Recorded rebalances that would not have been"),
        Column(
            "gone_rebalance_ids",
            TEXTS,
            f"Their ids, oldest first; beyond {MAX_GONE:,} of them only those of the newest",
        ),
        Column("added_rebalances", COUNT, "Rebalances at times at which there was none"),
        Column("notes", TEXTS, "What the policy did to members, and what the tables cannot tell of it, as sentences"),
        Column("settings", TEXTS, "How the policy is set for the group's clients, as sentences; empty = not known"),
        Column(
            "not_reproduced",
            COUNT,
            "Rebalances that differ, without a policy, from what was recorded",
        ),
        Column("unknown", TEXT, "What is not known, and why; null = everything is known"),
    ),
    key=("replay_id", "cluster", "group_id", "policy"),
    append_only=True,
    unique_texts=("gone_rebalance_ids",),
)

EVERY_TABLE = MappingProxyType(TABLES | {table.name: table for table in (REPLAYS, REPLAY_GROUPS)})
