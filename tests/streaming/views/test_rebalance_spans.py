"""Owners before and after a rebalance: members of Kafka's newer protocols change theirs while it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables.schema import Row
from streaming.views.reader import Reader
from streaming.views.rebalance_spans import began_ms, is_after, is_before, is_new, spans_of
from tests.streaming.tables.journals import T0
from tests.streaming.views.reconciled_story import reconciled, write_reconciled


def owners(spans: list[Row], origin: str) -> dict[int, str]:
    return {span["queue_id"]: span["member_id"] for span in spans if span["origin"] == origin}


@pytest.mark.parametrize("origin", ["reported", "computed"])
def test_owners_before_are_those_of_the_epochs_beginning(tmp_path: Path, origin: str) -> None:
    write_reconciled(tmp_path)
    row = reconciled()
    spans = spans_of(Reader(tmp_path), row)
    before = owners([span for span in spans if is_before(span, row)], origin)
    after = owners([span for span in spans if is_after(span, row)], origin)
    assert ["".join(owner_of[queue] for queue in range(6)) for owner_of in (before, after)] == ["aaabbb", "aacbbc"]
    new = [span for span in spans if is_new(span, row)]
    assert owners(new, origin) == {2: "c", 5: "c"}


@pytest.mark.parametrize(
    ("why", "more", "at"),
    [
        ("classic groups change all at once", {"strategy": "kafka.range"}, 47_000),
        ("its epoch was not observed", {"began_at": None}, 47_000),
        ("an assignor of the user's", {"strategy": "kafka.server.mine"}, 40_000),
        ("no strategy is known", {"strategy": None}, 47_000),
    ],
)
def test_a_rebalance_has_a_length_where_members_take_over_one_by_one(why: str, more: Row, at: int) -> None:
    assert began_ms(reconciled(**more), "reported") == T0 + at, why


@pytest.mark.parametrize(
    ("since", "until", "before", "after", "new"),
    [
        (39_999, 40_000, True, False, False),
        (40_000, 47_000, False, False, True),
        (40_000, 47_001, False, True, True),
        (39_999, None, True, True, False),
        (47_000, None, False, True, True),
        (47_001, None, False, False, False),
        (1, 39_999, False, False, False),
    ],
)
def test_spans_begin_and_end_to_the_millisecond(
    since: int, until: int | None, before: bool, after: bool, new: bool
) -> None:
    end = None if until is None else T0 + until
    span = {"origin": "reported", "valid_from": T0 + since, "valid_to": end}
    row = reconciled()
    assert (is_before(span, row), is_after(span, row), is_new(span, row)) == (before, after, new)
