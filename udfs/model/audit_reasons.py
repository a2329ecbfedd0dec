"""Core: why the audit of a generation found no agreement: the column ``reason`` of ``audits``. No I/O.

If nothing could be recomputed, the reasons are those of ``comparability``, and a few that only audits use.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from udfs.model import comparability
from udfs.model.comparability import CUSTOM_STRATEGY, MEMBERS_UNKNOWN, NO_TARGET, NOT_REPORTED, TOPICS_UNKNOWN

# The reported assignment is exactly the result of another library, strategy or state of knowledge.
ANOTHER_LIBRARY = "another_library"
ANOTHER_STRATEGY = "another_strategy"
RACKS_IGNORED = "racks_ignored"
STALE_METADATA = "stale_metadata"
OWNERSHIP_IGNORED = "ownership_ignored"
OTHER_OWNERSHIP = "other_ownership"
WRONG_OWNERSHIP = "wrong_ownership"
# If each member assigns for itself, members that know less, or that do nothing, would produce it.
NOT_FOLLOWED = "not_followed"
NOT_YET_FOLLOWED = "not_yet_followed"
MEMBER_UNKNOWN = "member_unknown"
OWNER_HOLDS_NOTHING = "owner_holds_nothing"
# The input is no longer available, or there are too many possibilities to try.
UNEXPLAINED = "unexplained"
# A generation without a verdict.
MEMBERS_NOT_REPORTING = "members_not_reporting"
REPORTED_LATE = "reported_late"

# Only these reasons contradict the strategy's name.
AGAINST_THE_STRATEGY: Final = frozenset({ANOTHER_LIBRARY, ANOTHER_STRATEGY, CUSTOM_STRATEGY, RACKS_IGNORED})
# These reasons explain why one generation has no verdict although its strategy may have one.
PASSING: Final = frozenset(
    {MEMBERS_NOT_REPORTING, MEMBERS_UNKNOWN, NO_TARGET, NOT_REPORTED, REPORTED_LATE, TOPICS_UNKNOWN}
)

# Sentence shown to users for each reason code.
SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        **comparability.SENTENCES,
        ANOTHER_LIBRARY: "another client library, or another version of it, assigned",
        ANOTHER_STRATEGY: "another strategy assigned",
        CUSTOM_STRATEGY: "a strategy assigned that is not known here, or with settings that are not",
        RACKS_IGNORED: "the leader assigned without racks",
        STALE_METADATA: "the leader, or a member, knew another number of queues",
        OWNERSHIP_IGNORED: "the leader did not know what members had owned",
        OTHER_OWNERSHIP: "the leader started from another ownership than members claim",
        WRONG_OWNERSHIP: "members claimed queues that the generation before had given to others",
        NOT_FOLLOWED: "members have not taken over what the generation gave them, though they had the time to follow",
        NOT_YET_FOLLOWED: "the next generation came before members had followed this one",
        MEMBER_UNKNOWN: "members assign as if one of them did not exist",
        OWNER_HOLDS_NOTHING: "the expected owners report no queue at all",
        UNEXPLAINED: "no cause was found",
        MEMBERS_NOT_REPORTING: "not all members have reported their queues",
        REPORTED_LATE: "the generation was reported after newer ones",
    }
)
