"""The finding ``source_silent``: exact, however the events were cut."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from udfs.model.journal import Change, FindingClosed, FindingOpened
from udfs.shard.source_gaps import SourceGaps

AFTER = 60


def spans(times: list[int]) -> list[tuple[int, int]]:
    """First and last of each span of sixty, as one task would say it."""
    numbers = sorted({at // AFTER for at in times})
    return [
        (min(at for at in times if at // AFTER == number), max(at for at in times if at // AFTER == number))
        for number in numbers
    ]


def gaps(changes: list[Change]) -> list[tuple[str, int]]:
    return [
        ("open", change.body.opened_at) if isinstance(change.body, FindingOpened) else ("close", change.body.closed_at)
        for change in changes
        if isinstance(change.body, FindingOpened | FindingClosed)
    ]


times = st.lists(st.integers(0, 30).map(lambda step: step * 30) | st.integers(0, 900), min_size=1, max_size=30)


@given(times, st.lists(st.integers(0, 900), max_size=6), st.integers(1, 3))
def test_every_gap_longer_than_the_limit_is_found_and_no_other(
    observed: list[int], cuts: list[int], tasks: int
) -> None:
    observed = sorted(observed)
    expected = [
        gap
        for before, after in pairwise(sorted(set(observed)))
        if after - before > AFTER
        for gap in (("open", before + AFTER), ("close", after))
    ]
    silence, found = SourceGaps(), []
    edges = [0, *sorted(min(cut, len(observed)) for cut in cuts), len(observed)]
    for start, end in pairwise(edges):
        batch = observed[start:end]
        reported = [span for task in range(tasks) for span in spans(batch[task::tasks])]
        clock = max(observed[:end], default=None)
        silence = msgspec.msgpack.decode(msgspec.msgpack.encode(silence), type=SourceGaps)
        found += silence.advance("c", reported, clock, AFTER)
    found += silence.advance("c", [], observed[-1] + 1, AFTER)
    assert gaps(found) == expected
    assert [change.number for change in found] == list(range(1, len(found) + 1))


def test_two_times_per_span_are_kept_of_a_long_wait() -> None:
    silence = SourceGaps()
    silence.advance("c", [(at, at) for at in range(600)], 0, AFTER)
    assert silence.pending == sorted([*range(0, 600, AFTER), *range(AFTER - 1, 600, AFTER)])


def test_a_finding_and_its_end_carry_one_id() -> None:
    silence = SourceGaps()
    changes = silence.advance("c", [(0, 0), (100, 100)], 101, AFTER)
    assert len({change.body.finding_id for change in changes}) == 1  # type: ignore[union-attr]
