"""Within which age clients need not know that a topic grew."""

from __future__ import annotations

import pytest

from udfs.group.assignment.metadata_age import (
    METADATA_MAX_AGE_MS,
    NOT_FOLLOWED,
    SARAMA_METADATA_MAX_AGE_MS,
    metadata_age_ms,
    unshown_growth,
)
from udfs.group.state.group import Evidence, Group, Member


def _member(library: str | None) -> Member:
    return Member(member_id="m", name="m", joined_at=0, client_library=library)


@pytest.mark.parametrize(
    ("libraries", "age_ms"),
    [
        ((), METADATA_MAX_AGE_MS),
        ((None, "librdkafka"), METADATA_MAX_AGE_MS),
        (("librdkafka", "sarama"), SARAMA_METADATA_MAX_AGE_MS),
    ],
)
def test_the_slowest_member_decides(libraries: tuple[str | None, ...], age_ms: int) -> None:
    assert metadata_age_ms([_member(library) for library in libraries]) == age_ms


def test_unshown_evidence_concerns_that_topic_and_metadata() -> None:
    grown, older = (
        Evidence("queue_count_changed", 20, None, "t"),
        Evidence("queue_count_changed", 10, None, "t", None, NOT_FOLLOWED),
    )
    others = [
        Evidence("queue_count_changed", 30, None, "u"),
        Evidence("queue_count_changed", 30, None, "t", None, "deleted"),
        Evidence("member_joined", 30, "m"),
    ]
    assert unshown_growth(Group(evidence=[older, grown, *others]), "t") == [older, grown]
