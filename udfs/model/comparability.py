"""Core: why a reported assignment is not compared with a computed one. No I/O.

The reasons are the values of the column ``agrees_reason`` if ``agrees`` is null. An exception is the reason that says
what was left out of a true comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# The error of a rebalance whose assignment cannot be computed here.
NOT_RECOMPUTABLE = "not_recomputable"

# The members' queues are not reported, or there are no members.
NOT_REPORTED = "not_reported"
NO_MEMBERS = "no_members"
# The strategy failed here, or it is a custom class, or its settings are not reported.
STRATEGY_FAILED = "strategy_failed"
CUSTOM_STRATEGY = "custom_strategy"
# Some topics have no metadata yet.
TOPICS_UNKNOWN = "topics_unknown"
# Several client libraries may have assigned; none of the recomputed ones assigns like this.
LIBRARY_UNKNOWN = "library_unknown"
# The client library is known, and its assignment does not follow from the records.
LIBRARY_NOT_RECOMPUTED = "library_not_recomputed"
# The client library is known, its versions assign differently, and it is unknown which of them assigned.
LIBRARY_VERSION_UNKNOWN = "library_version_unknown"
# The assignment leaves out whole topics, and is otherwise as computed: its leader had no metadata of them.
LEADER_METADATA_STALE = "leader_metadata_stale"
# The records lack the members' previous queues, on which this strategy depends.
OWNERSHIP_UNKNOWN = "ownership_unknown"
# It is unknown which assignor a coordinator of the new protocol used: no member names one, so it is the broker's
# default, or equally many members want a custom one. No known assignor gives the target.
ASSIGNOR_UNKNOWN = "assignor_unknown"
# Polls do not show subscriptions (Kafka's admin calls, for groups of the new protocol).
SUBSCRIPTIONS_UNKNOWN = "subscriptions_unknown"

# The assignment is the computed one for the queues before a topic grew: its leader or coordinator need not have known
# the new queues yet.
GROWTH_NOT_DUE = "growth_not_due"

# The results of the possible libraries prove nothing about this generation.
OF_LIBRARIES = frozenset({LIBRARY_UNKNOWN, LIBRARY_NOT_RECOMPUTED, LIBRARY_VERSION_UNKNOWN, LEADER_METADATA_STALE})
# The strategy's result is unknown.
UNKNOWN_RESULTS = frozenset(
    {
        *(CUSTOM_STRATEGY, LIBRARY_UNKNOWN, LIBRARY_NOT_RECOMPUTED, LIBRARY_VERSION_UNKNOWN),
        *(OWNERSHIP_UNKNOWN, ASSIGNOR_UNKNOWN),
    }
)
# A newer group epoch came before the coordinator had computed its target; some members have no description.
NO_TARGET = "no_target"
MEMBERS_UNKNOWN = "members_unknown"

# Sentence shown to users for each reason code.
SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        NOT_REPORTED: "no assignment is reported",
        NO_MEMBERS: "the group has no members",
        STRATEGY_FAILED: "the strategy failed",
        CUSTOM_STRATEGY: "the strategy, or what it was made with, is not known here",
        TOPICS_UNKNOWN: "the queues of some topics are not known yet",
        LIBRARY_UNKNOWN: "several client libraries may have assigned, and none that is recomputed assigns like this",
        LIBRARY_NOT_RECOMPUTED: "the client library's assignment does not follow from what the records hold",
        LIBRARY_VERSION_UNKNOWN: "versions of the client library assign differently, and which assigned is not known",
        LEADER_METADATA_STALE: "the leader had no metadata of some topics yet",
        NO_TARGET: "a newer epoch came before the coordinator computed a target",
        MEMBERS_UNKNOWN: "some members' subscriptions are not in the records",
        ASSIGNOR_UNKNOWN: "which assignor the coordinator took is not known, and neither of Kafka's gives this target",
        OWNERSHIP_UNKNOWN: "what members held before is not in the records",
        SUBSCRIPTIONS_UNKNOWN: "what members subscribe to is not reported",
        GROWTH_NOT_DUE: "a topic grew just before, and who assigned need not have known its new queues yet",
    }
)
