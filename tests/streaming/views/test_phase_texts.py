"""Phases of a rebalance in words, and the parts of a logical one; worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.terminal.format import time_text
from streaming.views.phase_texts import phases_text, times_text
from tests.streaming.tables.journals import T0
from tests.streaming.views.story import json_of, rebalance, run, store


@pytest.mark.parametrize(
    ("began", "joined", "completed", "strategy", "expected"),
    [
        (0, 1_200, 1_500, "kafka.range", "join 1.2 s, sync 300 ms"),
        (1_200, 1_200, 1_500, None, "sync 300 ms"),  # nothing was observed before the members had joined
        (None, None, 1_500, "kafka.range", None),
        (0, None, 1_500, "kafka.range", "whole 1.5 s"),
        (0, 40, 3_140, "kafka.server.uniform", "target 40 ms, reconciliation 3.1 s"),
        (None, None, None, None, None),
        (0, 700, None, "kafka.range", "join 700 ms"),
    ],
)
def test_phases_have_the_terms_of_their_protocol(
    began: int | None, joined: int | None, completed: int | None, strategy: str | None, expected: str | None
) -> None:
    row = {"began_at": began, "joined_at": joined, "completed_at": completed, "strategy": strategy}
    assert phases_text(row) == expected


def test_times_have_the_terms_of_their_protocol() -> None:
    row = {"began_at": T0, "joined_at": None, "completed_at": T0 + 9, "strategy": "kafka.server.range"}
    assert times_text(row) == f"epoch began {time_text(T0)}, members had converged {time_text(T0 + 9)}"
    assert times_text({}) is None


def test_both_parts_of_a_cooperative_rebalance_name_each_other(tmp_path: Path) -> None:
    first = rebalance("r1", 9_000, "member_joined", "b", logical_id="r1")
    second = rebalance("r2", 10_000, "cooperative_follow_up", None, logical_id="r1")
    store(tmp_path, [first, second, rebalance("r3", 20_000, "member_left", "b", logical_id="r3")])
    of_first, of_second, of_third = (run(tmp_path, "explain", name).stdout.splitlines() for name in ("r1", "r2", "r3"))
    start = of_first.index("It is part 1 of 2 of logical rebalance r1, along with:")
    assert of_first[start + 1] == f"  generation 2 at {time_text(T0 + 10_000)}: r2"
    start = of_second.index("It is part 2 of 2 of logical rebalance r1, along with:")
    assert of_second[start + 1] == f"  generation 1 at {time_text(T0 + 9_000)}: r1"
    assert "logical" not in "".join(of_third)
    (report,) = json_of(tmp_path, "explain", "r2")
    assert [part["rebalance_id"] for part in report["parts"]] == ["r1", "r2"]
    third, newest, oldest = run(tmp_path, "show", "rebalances", "--wide").stdout.splitlines()[1:]
    ends = [(line.split()[0], line.split()[-1]) for line in (third, newest, oldest)]
    assert ends == [("r3", "-"), ("r2", "r1"), ("r1", "-")]
