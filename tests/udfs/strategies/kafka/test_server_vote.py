"""Which assignor a group of the new protocol takes, as real groups of 4.1 do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from udfs.strategies.kafka.server_vote import preferred_assignors

_VOTES = [
    json.loads(line)
    for line in (Path(__file__).resolve().parents[3] / "golden" / "java" / "server_votes.jsonl")
    .read_text()
    .splitlines()
]


@pytest.mark.parametrize("line", _VOTES, ids=lambda line: " ".join(line["members"]))
def test_the_choice_of_a_real_group_is_among_the_possible_ones(line: dict) -> None:
    votes = Counter(dict(member.split("=") for member in line["members"]).values())
    found = preferred_assignors(votes, line["members"][-1].split("=")[1])
    assert line["preferred"] in found
    assert {votes[name] for name in found} == {max(votes.values())}


def of_two(line: dict) -> bool:
    """Return whether the last that joined asks, and all want one of Kafka's own."""
    members = dict(member.split("=") for member in line["members"])
    return len(members) == len(line["members"]) and {*members.values()} <= {"range", "uniform"}


@pytest.mark.parametrize("line", list(filter(of_two, _VOTES)), ids=lambda line: " ".join(line["members"]))
def test_the_vote_of_the_last_that_joined_comes_first(line: dict) -> None:
    wanted = [member.split("=")[1] for member in line["members"]]
    assert preferred_assignors(Counter(wanted), wanted[-1])[0] == line["preferred"]


def test_most_votes_win_and_without_votes_nothing_does() -> None:
    assert preferred_assignors({"range": 1, "uniform": 2}) == ["uniform"]
    assert preferred_assignors({}) == []
