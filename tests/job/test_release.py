"""Checkpoints and tables of former releases are continued."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.commands import Ended
from tests.job.recordings import write_files
from tests.job.release import RELEASES, unpacked
from tests.job.table_bags import bags_of, differences, repeated_keys, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("archive", sorted(RELEASES.iterdir()), ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_state_of_an_older_release_continues_as_if_read_by_this_one(
    archive: Path, run_once: Callable[..., Ended], tmp_path: Path
) -> None:
    with unpacked(archive) as left:
        write_files(tmp_path / "events", [*left.read, *left.unread])
        ended = run_once(tmp_path / "events", tmp_path, "--flush")
        assert ended.exit_code == 0, ended.stderr[-3000:]

        tables = left.place / "tables"
        # It may lack tables of newer releases.
        before = rows_of(tables, "rebalances").num_rows
        write_files(left.place / "events", left.unread, first=len(left.read))
        ended = run_once(left.place / "events", left.place, "--flush")
        assert ended.exit_code == 0, ended.stderr[-3000:]
        after = _comparable(bags_of(tables))
        assert after["rebalances"].total() > before > 0
        assert differences(_comparable(bags_of(tmp_path / "tables")), after) == []
        assert repeated_keys(tables) == []


# What release 0.2.0 did not write: columns, and fields of changes.
_NEWER = frozenset(("client_library", "earlier", "episode_id", "number", "settings", "strategy_settings", "topic_id"))


def _comparable(bags: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Return the rows without what release 0.2.0 did not write, or remember: rebalances, from which episodes follow."""
    found: dict[str, Counter[str]] = {}
    for name in bags.keys() - {"episodes"}:
        found[name] = Counter()
        for text, number in bags[name].items():
            row = json.loads(text)
            if row.get("kind") != "episode_changed":
                kept = {column: row[column] for column in row if column not in _NEWER}
                if name == "changes":
                    body = json.loads(row["body"])
                    kept["body"] = {field: body[field] for field in body if field not in _NEWER}
                found[name][json.dumps(kept, sort_keys=True)] += number
    return found
