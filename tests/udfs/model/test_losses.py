"""The finding ``events_lost``: a function of what is known of the loss, written once, closed after a day."""

from __future__ import annotations

import msgspec

from tests.core_config import core_config
from tests.udfs.shard.shard_script import CLUSTER, T0
from udfs.ingest.combiner import Combiner, RawRows
from udfs.model.events import Clock
from udfs.model.journal import FindingClosed, FindingOpened
from udfs.model.losses import CLOSES_AFTER_MS, Loss, lost_found
from udfs.shard.shard import Shard
from udfs.shard.source_gaps import SourceGaps

LOSS = Loss(what="Files of w were deleted", since_ms=T0 + 1_000, until_ms=T0 + 61_500, noticed_ms=T0 + 90_000)


def test_the_span_is_named_in_rfc_3339_and_unknown_ends_are_filled_in() -> None:
    assert lost_found("c", LOSS, None).message == (
        "Files of w were deleted: events of cluster c are missing"
        " from 2023-11-14T22:13:21.000Z to 2023-11-14T22:14:21.500Z."
    )
    open_ended = Loss(what="w", noticed_ms=T0 + 5_000)
    assert lost_found("c", open_ended, None).message.endswith("missing up to 2023-11-14T22:13:25.000Z.")
    found = lost_found("c", open_ended, T0)
    assert found.message.endswith("missing from 2023-11-14T22:13:20.000Z to 2023-11-14T22:13:25.000Z.")
    # The newest event may be ahead of what is left.
    assert lost_found("c", open_ended, T0 + 9_000).opened_at == T0 + 5_000


def test_the_same_loss_opens_once_another_opens_too_and_both_close_a_day_after_they_were_noticed() -> None:
    silence = SourceGaps()
    [opened] = silence.report_losses("c", [LOSS], None)
    assert isinstance(opened.body, FindingOpened)
    assert (opened.event_time, opened.body.opened_at, opened.group_id) == (T0 + 1_000, T0 + 1_000, None)
    silence = msgspec.msgpack.decode(msgspec.msgpack.encode(silence), type=SourceGaps)
    assert silence.report_losses("c", [LOSS], T0) == []
    other = msgspec.structs.replace(LOSS, noticed_ms=T0 + 90_001)
    [second] = silence.report_losses("c", [other, LOSS], T0)
    closes = LOSS.noticed_ms + CLOSES_AFTER_MS
    assert silence.report_losses("c", [], closes) == []
    [closed] = silence.report_losses("c", [], closes + 1)
    assert isinstance(closed.body, FindingClosed)
    assert (closed.body.finding_id, closed.body.closed_at) == (opened.body.finding_id, closes)
    [last] = silence.report_losses("c", [], closes + 2)
    assert [change.number for change in (opened, second, closed, last)] == [1, 2, 3, 4]


def test_a_state_of_the_release_before_knows_of_no_losses() -> None:
    # The bytes that a863199 wrote.
    before = b"\x84\xa4last\x05\xa7pending\x91\x07\xa9opened_at\xc0\xa6number\x03"
    silence = msgspec.msgpack.decode(before, type=SourceGaps)
    assert (silence.losses, silence.number, silence.newest()) == ({}, 3, 7)


def opened_by(lines: list[bytes], *, marks: bool, shards: int = 3) -> list[FindingOpened]:
    """Read lines in one batch; return the findings that all shards of the cluster open."""
    import pyarrow as pa

    from udfs.group import coordinator as group

    config = core_config(shards=shards)
    combiner = Combiner(T0 + 10**7, config)
    rows = RawRows("control" if marks else "events", pa.array(lines, pa.binary()), lambda index: str(index))
    (combiner.read_marks if marks else combiner.read_lines)(rows)
    found = []
    for cluster, shard, packet in combiner.packets():
        assert cluster == CLUSTER
        decided = Shard(cluster, shard, None, config, group).advance([packet], T0 + 10**7)  # type: ignore[arg-type]
        found += [row.body for row in decided if hasattr(row, "body") and isinstance(row.body, FindingOpened)]
    return found


def test_a_mark_of_the_driver_opens_the_finding_in_one_shard_whatever_the_clock() -> None:
    mark = {"control": "lost", "cluster": CLUSTER, "lost": msgspec.to_builtins(LOSS)}
    line = msgspec.json.encode(mark)
    [found] = opened_by([line, line], marks=True)
    assert (found.finding, found.severity, found.opened_at) == ("events_lost", "critical", T0 + 1_000)


def test_a_clock_of_a_collector_carries_what_it_could_not_read() -> None:
    clocks = [
        Clock(schema_version=1, event_time=T0 + at, system="kafka", cluster=CLUSTER, lost=lost)
        for at, lost in ((0, (LOSS,)), (10_000, None))
    ]
    [found] = opened_by([msgspec.json.encode(clock) for clock in clocks], marks=False)
    assert (found.finding, found.opened_at) == ("events_lost", T0 + 1_000)
    # As long as the clock stands before it, it waits.
    assert opened_by([msgspec.json.encode(clocks[0])], marks=False) == []
