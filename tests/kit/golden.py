"""Records golden answers from the real classes: `python -m tests.kit.golden [PART OF A NAME]`, only on request."""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from streaming.setup.java import find_java
from tests.kit.allocation_cases import Case, colliding_ids, member_ids
from tests.kit.differential import Held, batches
from tests.kit.jars import kit_jars
from tests.kit.oracles import ORACLES, Oracle, Running

FOLDER = Path(__file__).resolve().parent.parent / "golden"
EDGES = FOLDER / "edges"
HASH_MAPS = FOLDER / "java" / "hash_map_orders.jsonl"
TIMELINE_MAPS = FOLDER / "java" / "timeline_map_orders.jsonl"
SERVER_VOTES = FOLDER / "java" / "server_votes.jsonl"
_SEED = 20
_CASES = 60
_KEPT = 24
_LONGEST = 2_500  # characters of a case: golden answers are read by people, too
_ORACLES = Path(__file__).resolve().parent / "java" / "oracle"


def record(oracle: Oracle, strategy: str) -> None:
    """Request the real class and keep the shorter ones of its answers."""
    rng = random.Random(f"{_SEED} {oracle.jars} {strategy}")
    kept = []
    with Running(oracle) as running:
        for batch, _ in batches(oracle, strategy, _CASES, rng):
            for case, real in zip(batch, running.allocate(batch), strict=True):
                line = {"case": case, "held": real.held, "winner": real.text, "error": real.error}
                text = json.dumps(line, ensure_ascii=True, separators=(",", ":"))
                if len(text) <= _LONGEST and not real.past:
                    kept.append(text)
    kept = rng.sample(kept, min(_KEPT, len(kept)))
    file = FOLDER / strategy / f"{oracle.jars}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{text}\n" for text in kept))


class Edge(NamedTuple):
    """A small case at the edge of a rule: an answer that keeps all others but this rule is another one."""

    why: str
    case: Case
    held: Held


def edges(name: str) -> list[Edge]:
    """Read the cases of a file, each with the real class's answer."""
    found = []
    for line in (EDGES / f"{name}.jsonl").read_text().splitlines():
        edge = json.loads(line)
        held = {member: [tuple(queue) for queue in queues] for member, queues in edge["held"].items()}
        found.append(Edge(edge["why"], edge["case"], held))
    return found


def real_edges(name: str) -> list[Edge]:
    """Request the real classes of Kafka 4.1 the cases of a file."""
    recorded = edges(name)
    held = {}
    for strategy in {edge.case["strategy"] for edge in recorded}:
        requested = [edge for edge in recorded if edge.case["strategy"] == strategy]
        (oracle,) = [
            candidate for candidate in ORACLES if candidate.jars == "kafka-4.1.1" and strategy in candidate.strategies
        ]
        with Running(oracle) as running:
            answers = running.allocate([edge.case for edge in requested])
        held.update((edge.why, answer.held) for edge, answer in zip(requested, answers, strict=True))
    return [edge._replace(held=held[edge.why]) for edge in recorded]


def record_edges(name: str) -> None:
    """Renew the answers of a file."""
    lines = [json.dumps(edge._asdict(), separators=(",", ":")) for edge in real_edges(name)]
    (EDGES / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def record_hash_maps() -> None:
    """Keep the iteration orders of real HashMaps of strings, with slots that grow into trees."""
    rng = random.Random(_SEED)
    keys = []
    for count in (1, 2, 12, 13, 24, 25, 50, 100):
        keys += [[f"k{rng.randrange(10**6)}" for _ in range(count)], member_ids(rng, 40)]
    for colliding in (8, 9, 10, 11, 12, 20, 40):
        for others in (0, 5, 30, 60):
            mixed = [*colliding_ids(rng, colliding), *(f"m{number}" for number in range(others))]
            rng.shuffle(mixed)
            keys.append(mixed)
    keys += [_keys_of_few_hashes(rng) for _ in range(30)]
    orders = _iterated("hash", [[f"+{key}" for key in each] for each in keys])
    HASH_MAPS.parent.mkdir(parents=True, exist_ok=True)
    HASH_MAPS.write_text(
        "".join(
            json.dumps({"put": put, "iterated": order}, separators=(",", ":")) + "\n"
            for put, order in zip(keys, orders, strict=True)
        )
    )


def record_timeline_maps() -> None:
    """Keep the iteration orders of real maps of Kafka's coordinator, from which members go, too."""
    rng = random.Random(_SEED)
    changes = []
    for count in (1, 2, 3, 5, 6, 10, 11, 21, 22, 42, 43, 85, 86, 120):
        keys = [f"k{number}" for number in rng.sample(range(10**6), count)]
        changes.append([f"+{key}" for key in keys])
        dropped = rng.sample(keys, count // 2)
        changes.append(
            [f"+{key}" for key in keys] + [f"-{key}" for key in dropped] + [f"+n{key}" for key in dropped[::3]]
        )
    changes.append([f"+{key}" for key in _keys_of_few_hashes(rng)])
    orders = _iterated("timeline", changes)
    TIMELINE_MAPS.write_text(
        "".join(
            json.dumps({"changes": made, "iterated": order}, separators=(",", ":")) + "\n"
            for made, order in zip(changes, orders, strict=True)
        )
    )


def _iterated(kind: str, changes: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the order of each map, ``hash`` or ``timeline``, after its changes: +KEY is put, -KEY is removed."""
    quoted = [[change[0] + quote(change[1:], safe="") for change in made] for made in changes]
    return [[unquote_plus(token) for token in line.split("\t")] for line in _answers("MapOrder", quoted, kind)]


def record_server_votes() -> None:
    """Keep which assignor real groups of the new protocol prefer, as members with equal votes come and ask."""
    rng = random.Random(_SEED)
    names = ["uniform", "range", "custom", "org.acme.RackAssignor", "Aa", "BB"]
    lines = []
    for _ in range(60):
        some = rng.sample(names, rng.choice((2, 2, 3, 4)))
        members = [f"m{number}={rng.choice(some)}" for number in range(rng.randint(2, 6))]
        again = rng.choice(members)
        lines.append(members if rng.random() < 0.5 else [*members, again])
    lines += [["a=uniform", "b=range"], ["a=range", "b=uniform"], ["a=range", "b=uniform", "a=range"]]
    SERVER_VOTES.write_text(
        "".join(
            json.dumps({"members": line, "preferred": found}, separators=(",", ":")) + "\n"
            for line, found in zip(lines, _answers("KafkaServerVote", lines), strict=True)
        )
    )


def _answers(program: str, lines: Sequence[Sequence[str]], *arguments: str) -> list[str]:
    """Return what a program says of each line of tokens."""
    with tempfile.TemporaryDirectory() as classes:
        path = f"{classes}:{kit_jars('kafka-4.1.1')[0].parent}/*"
        subprocess.run([find_java().javac, "-cp", path, "-d", classes, _ORACLES / f"{program}.java"], check=True)
        text = "".join("\t".join(line) + "\n" for line in lines)
        run = [find_java().java, "-Dfile.encoding=UTF-8", "-cp", path, program, *arguments]
        return subprocess.run(run, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()


def _keys_of_few_hashes(rng: random.Random) -> list[str]:
    """Return keys that share hashes, or nearly: their trees are divided, kept and given up as the table grows."""
    keys = {f"m{number}" for number in range(rng.choice((0, 20, 60)))}
    count = len(keys) + rng.choice((9, 15, 40, 80))
    while len(keys) < count:
        start = "".join(rng.choice(("Aa", "BB", "C#")) for _ in range(rng.randint(3, 6)))
        keys.add(start + rng.choice(("", "a", "b", "c", "é")))
    return rng.sample(sorted(keys), count)


def main() -> None:
    """Record what the argument names; everything without one."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if wanted in "java hash maps":
        record_hash_maps()
    if wanted in "timeline maps":
        record_timeline_maps()
    if wanted in "server votes":
        record_server_votes()
    if wanted in "edges":
        for file in sorted(EDGES.glob("*.jsonl")):
            record_edges(file.stem)
    for oracle in ORACLES:
        for strategy in oracle.strategies:
            if wanted in strategy:
                record(oracle, strategy)


if __name__ == "__main__":
    main()
