"""Each example comes out as it says, however it is cut into batches, with the state encoded and decoded in between."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.udfs.group.example import EXAMPLES, UNCUT, Example, read_examples
from tests.udfs.group.example_play import Play

_ALL = {
    f"{path.stem}: {example.title}": example
    for path in sorted(EXAMPLES.glob("*.txt"))
    for example in read_examples(path)
}


@pytest.mark.parametrize("example", _ALL.values(), ids=_ALL)
def test_an_example_comes_out_as_it_says_in_every_cut(example: Example) -> None:
    if UNCUT in example.given:
        assert Play(example).as_written().wrong == []
        return
    fine = Play(example).event_by_event()
    cut = Play(example).cut_at_random(random.Random(example.title))
    assert fine.wrong == []
    assert cut.wrong == []
    assert cut.rows() == fine.rows()
    assert Play(example).in_one().rows() == fine.rows()


_WRONG = """
## it is noticed
with rocketmq | 0 topic t 2 | 10 join a | 20 join b | until 30
{rebalances: ... | 20 #2 1->2 member_joined:a;rebalances: ... | 20 #2 1->2 member_joined:b queues_moved=2;findings: x;
 spans: none;reported spans: t/0 a 10..;sessions: a 10..;owners 10: t/0=a;heard: a=10;row: members=1;last: outdated=x;
 group: late_events=1;rebalance 2: strategy=x;column queues_moved: 0;each MemberOpened: member_id=a;
 change MemberOpened 2: member_id=a at=+10;rebalance 2 triggers: kind=member_joined | kind=x}
"""


def test_an_example_that_comes_out_otherwise_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "wrong.txt").write_text(_WRONG.replace(";\n ", ";"), encoding="utf-8")
    examples = read_examples(tmp_path / "wrong.txt")
    assert len(examples) == 16
    assert [example.title for example in examples if not Play(example).as_written().wrong] == []
