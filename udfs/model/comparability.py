"""Core: why a reported assignment is not compared with a computed one. No I/O.

The reasons are what the column ``agrees_reason`` holds where ``agrees`` is null. One of them is no such reason: what
a true one leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# This is the error of a rebalance whose assignment is not known here.
NOT_RECOMPUTABLE = "not_recomputable"

# The members' queues are not reported, or there are no members.
NOT_REPORTED = "not_reported"
NO_MEMBERS = "no_members"
# The strategy failed here; it is a class of the user's own; the settings that it was made with are not reported.
STRATEGY_FAILED = "strategy_failed"
CUSTOM_STRATEGY = "custom_strategy"
# Some topics have no metadata yet.
TOPICS_UNKNOWN = "topics_unknown"
# Several client libraries may have assigned; none of those that are recomputed assigns like this.
LIBRARY_UNKNOWN = "library_unknown"
# The client library is known, and its assignment does not follow from what the records hold.
LIBRARY_NOT_RECOMPUTED = "library_not_recomputed"
# The client library is known, its versions assign differently, and which of them assigned is not known.
LIBRARY_VERSION_UNKNOWN = "library_version_unknown"
# The assignment leaves out whole topics, and is otherwise as computed: its leader had no metadata of them.
LEADER_METADATA_STALE = "leader_metadata_stale"
# What the members held before, on which this strategy depends, is not in the records.
OWNERSHIP_UNKNOWN = "ownership_unknown"
# Which assignor a coordinator of the new protocol took is not known: no member names one, so it is the broker's
# default, or as many want a custom one. None that is known here gives the target.
ASSIGNOR_UNKNOWN = "assignor_unknown"
# Polls do not show what the members subscribe to (Kafka's admin calls, of groups of the new protocol).
SUBSCRIPTIONS_UNKNOWN = "subscriptions_unknown"

# The assignment is the computed one of the queues that there were before a topic grew: its leader or coordinator need
# not have known the new ones yet.
GROWTH_NOT_DUE = "growth_not_due"

# The results of the possible libraries prove nothing about this generation.
OF_LIBRARIES = frozenset({LIBRARY_UNKNOWN, LIBRARY_NOT_RECOMPUTED, LIBRARY_VERSION_UNKNOWN, LEADER_METADATA_STALE})
# The strategy's result is not known.
UNKNOWN_RESULTS = frozenset(
    {
        *(CUSTOM_STRATEGY, LIBRARY_UNKNOWN, LIBRARY_NOT_RECOMPUTED, LIBRARY_VERSION_UNKNOWN),
        *(OWNERSHIP_UNKNOWN, ASSIGNOR_UNKNOWN),
    }
)
# A newer group epoch came before the coordinator had computed its target; some members have no description.
NO_TARGET = "no_target"
MEMBERS_UNKNOWN = "members_unknown"

# These texts are for people.
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
