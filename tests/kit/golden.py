"""Records golden answers from the real classes: `python -m tests.kit.golden [PART OF A NAME]`, only on request."""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote, unquote_plus

from streaming.java import find_java
from tests.kit.allocation_cases import colliding_ids, member_ids
from tests.kit.differential import batches
from tests.kit.oracles import ORACLES, Oracle, Running

FOLDER = Path(__file__).resolve().parent.parent / "golden"
HASH_MAPS = FOLDER / "java" / "hash_map_orders.jsonl"
_SEED = 20
_CASES = 60
_KEPT = 24
_LONGEST = 2_500  # characters of a case: golden answers are read by people, too
_SOURCE = Path(__file__).resolve().parent / "java" / "oracle" / "HashMapOrder.java"


def record(oracle: Oracle, strategy: str) -> None:
    """Ask the real class and keep the shorter ones of its answers."""
    rng = random.Random(f"{_SEED} {oracle.jars} {strategy}")
    kept = []
    with Running(oracle) as running:
        for batch, _ in batches(oracle, strategy, _CASES, rng):
            for case, told in zip(batch, running.ask(batch), strict=True):
                line = {"case": case, "held": told.held, "winner": told.text, "error": told.error}
                text = json.dumps(line, ensure_ascii=True, separators=(",", ":"))
                if len(text) <= _LONGEST and not told.past:
                    kept.append(text)
    kept = rng.sample(kept, min(_KEPT, len(kept)))
    file = FOLDER / strategy / f"{oracle.jars}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{text}\n" for text in kept))


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
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run([find_java().javac, "-d", classes, _SOURCE], check=True)
        lines = "".join("\t".join(quote(key, safe="") for key in each) + "\n" for each in keys)
        run = [find_java().java, "-Dfile.encoding=UTF-8", "-cp", classes, "HashMapOrder"]
        said = subprocess.run(run, input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()
    orders = [[unquote_plus(token) for token in line.split("\t")] for line in said.splitlines()]
    HASH_MAPS.parent.mkdir(parents=True, exist_ok=True)
    HASH_MAPS.write_text(
        "".join(
            json.dumps({"put": put, "iterated": order}, separators=(",", ":")) + "\n"
            for put, order in zip(keys, orders, strict=True)
        )
    )


def main() -> None:
    """Record what the argument names; everything without one."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if wanted in "java hash maps":
        record_hash_maps()
    for oracle in ORACLES:
        for strategy in oracle.strategies:
            if wanted in strategy:
                record(oracle, strategy)


if __name__ == "__main__":
    main()
