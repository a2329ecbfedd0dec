"""Reads examples: histories of one group with what must come of them, as lines of text.

```text
## a member that leaves gives its queues to the others
with rocketmq settle_ms=100 | 0 topic t 4 | 10 join a | join b | 20 leave a | until 200
rebalances: 10 #1 0->2 group_created member_joined:a member_joined:b | 120 #2 2->1 member_left:a
owners 130: t/0=b t/1=b t/2=b t/3=b
```

``##`` begins an example with what it says, ``#`` a comment; what begins with two spaces continues the line before.
``with`` names what is not usual: the system (else kafka), settings of the core, ``uncut`` where late events make the
batch count in which they come. Then come lines of events, which begin with a time, and lines of what must be. Times are
ms after ``T0``; an event without one has that of the event before it. ``until`` moves the clock: what lies before it
applies. ``~`` is a space within a value.

``{1;2;3}``: the example is played once with each of these, and with those in the same place of its other braces; so
are ``{1}`` and ``{2}`` by rows of ``- first ; second``. What several examples of a file have in common, it names at its
top: ``@crew: 10 join a | join b``.

Events are those of the contract; their other fields follow as ``name=value``:

- ``join a``, ``beat a``, ``leave a``; who joins subscribes to ``t``, else to ``topics=t,u`` (``topics=none``: it does
  not say). ``settings mode=message``, ``delete``.
- ``topic t 4``: how many queues a topic has, or ``topic t queues=broker-0@rack,1``.
- ``generation 3 a=0,1 b(host=h;rack=r):t,u=u/0``: a snapshot with its members: what each is described by, subscribes to
  (``t``) and was assigned (a number alone is a queue of ``t``); ``poll`` is one without a generation, ``admin`` one of
  Kafka's admin calls, whose generations are counted.
- ``holds a 0 1@250``: what a member says that it holds, and when it last pulled. ``commit t/0``,
  ``observe t/0 committed=5 end=9``, ``commits_deleted t/0``.
- Records of Kafka's coordinator (``with records``): ``epoch 2``, ``member a``, ``target 2 a=0,1 b=2+u/0``,
  ``current a 2 0,1 unrevoked 2,3``, ``deleted a``, ``come_back a a2 3 0,1``, ``record KIND``; ``first_member`` and
  ``second_member`` are stories of ``RecordScript``.

What must be is compared as text, each as far as the example is about it (``none``: nothing, ``...``: any earlier ones):

- ``rebalances`` (fields of a row may follow it), ``spans``, ``reported spans``, ``sessions``, ``findings``: all of
  them, as ``Script`` shows them. ``owners 30``, ``reported owners 30``: who had which queue then. ``heard``: the last
  heartbeats.
- ``rebalance 2``, ``audit 1``, ``change MemberOpened 1`` (of the journal), ``row`` (of the group), ``group`` (its
  state), ``last`` (what the batch said): fields of it. ``audit 1 differing``: of each item of a list. ``column agrees``
  has fields of each rebalance, ``each MemberOpened`` of each such change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parent / "examples"
_CHOICE = re.compile(r'\{([^{}"]*;[^{}"]*)\}')


UNCUT = "uncut"


class Step(NamedTuple):
    """One event, one move of the clock (``until``) or, with a ``:`` at the end of its verb, something that must be."""

    verb: str
    words: tuple[str, ...]
    at: int = 0


class Example(NamedTuple):
    """One history and what must come of it."""

    title: str
    given: tuple[str, ...]
    steps: tuple[Step, ...]


def read_examples(path: Path) -> list[Example]:
    """Return the examples of a file, those with braces once for each choice."""
    text = re.sub(r"\n  +", " ", path.read_text(encoding="utf-8"))
    head, *blocks = re.split(r"^## ", text, flags=re.MULTILINE)
    for name, beginning in reversed(re.findall(r"^@(\w+): (.*)$", head, flags=re.MULTILINE)):
        blocks = [re.sub(rf"@{name}\b", beginning, block) for block in blocks]
    return [example for block in blocks for example in _choices(block)]


def _choices(block: str) -> Iterator[Example]:
    title, _, body = block.partition("\n")
    lines = [line for line in body.splitlines() if line and not line.startswith("#")]
    rows = [line[2:].split(";") for line in lines if line.startswith("- ")]
    body = "\n".join(line for line in lines if not line.startswith("- "))
    numbers = {len(rows)} if rows else {len(found.split(";")) for found in _CHOICE.findall(body)} or {1}
    assert len(numbers) == 1, f"{title}: braces of {numbers} choices"
    for number in range(*numbers):
        chosen = _CHOICE.sub(lambda found, number=number: found[1].split(";")[number].strip(), body)  # type: ignore[misc]
        for place, text in enumerate(rows[number] if rows else (), start=1):
            chosen = chosen.replace(f"{{{place}}}", text.strip())
        yield _example(f"{title} ({number + 1})" if numbers != {1} else title, chosen.splitlines())


def _example(title: str, lines: list[str]) -> Example:
    given: tuple[str, ...] = ()
    steps: list[Step] = []
    for line in lines:
        if line.startswith("with "):
            words, _, line = line.partition(" | ")
            given = tuple(words.split()[1:])
        if not line:
            continue
        if re.match(r"-?\d|until |\|", line.lstrip()):
            steps += _events(line, steps[-1].at if steps else 0)
        else:
            verb, colon, rest = line.partition(":")
            assert colon, f"{title}: neither an event nor what must be: {line}"
            steps.append(
                Step(f"{verb}:", tuple(item.strip() for item in rest.split(" | ") if item.strip()), _last(steps))
            )
    return Example(title, given, tuple(steps))


def _last(steps: list[Step]) -> int:
    return steps[-1].at if steps else 0


def _events(line: str, at: int) -> Iterator[Step]:
    for item in line.split(" | "):
        words = item.split()
        if not words:
            continue  # one of several choices that has no such event
        if words[0] == "until":
            words = words[:1]
            yield Step("until", (), int(item.split()[1]))
            continue
        if re.fullmatch(r"-?\d+", words[0]):
            at = int(words.pop(0))
        yield Step(words[0], tuple(words[1:]), at)
