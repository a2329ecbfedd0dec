"""What only a source can see, as findings."""

from __future__ import annotations

from udfs.group.batch.observed_findings import OBSERVED, observed
from udfs.model.finding_names import MAX_NAMED, NamedClient, NamedMember


def test_observations_of_a_source_have_a_sentence_and_an_advice() -> None:
    for kind in OBSERVED:
        found = observed(kind, ["x"], "e")
        assert found.message.endswith(". x")
        assert found.advice
        assert observed(kind, [], "e").message == found.message[:-2]


def test_members_that_the_source_names_are_bounded() -> None:
    members = [NamedMember(f"m{number}", "h") for number in range(MAX_NAMED + 7)]
    found = observed("running_info_missing", ["m0 and 56 more"], "e", members)
    assert (len(found.members), found.members_left_out) == (MAX_NAMED, 7)
    assert found.clients == (NamedClient("h"),)
