"""What the core knows of each system, and that it knows it in one place."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.settings.model import load
from tests import rooms
from udfs.model.systems import BY_NUMBER, SYSTEMS, system_of
from udfs.strategies.registry import names, registered


def own_places() -> tuple[str, ...]:
    """Return where a system may be named."""
    return (
        *("udfs/kafka/", "streaming/simulator/", "udfs/model/systems.py"),
        *(f"{room}/{system}/" for system in SYSTEMS for room in ("udfs/strategies", "streaming/collectors")),
    )


# A topic of events is in Kafka, whatever system its events are of: ``--kafka`` may name its broker alone.
EXCEPTIONS = {"streaming/commands/collect.py", "streaming/commands/output_logs.py", "streaming/commands/run.py"}
_PROFILES = {name.upper() for name in SYSTEMS}
_PREFIX = re.compile(rf"({'|'.join(SYSTEMS)})\W")


def names_a_system(node: ast.expr | None) -> bool:
    """Return whether an expression is a system's name or profile: ``"kafka"``, ``KAFKA.name`` or ``KAFKA``."""
    match node:
        case ast.Constant(value=str(value)):
            return value in SYSTEMS
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="name"):
            return name in _PROFILES
        case _:
            return False


def begins_with_a_system(node: ast.expr) -> bool:
    """Return whether an expression is a text, or begins as an f-string, with the name of a system before a sign."""
    match node:
        case ast.Constant(value=str(value)):
            return _PREFIX.match(value) is not None
        case ast.JoinedStr(values=[ast.FormattedValue(value=first), *_]):
            return names_a_system(first)
        case ast.Tuple(elts=elements):
            return any(map(begins_with_a_system, elements))
        case _:
            return False


def decided_by_name(tree: ast.AST) -> Iterator[int]:
    """Return the lines that compare with the name of a system, or choose by it."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        match node:
            case ast.Compare(left=left, comparators=others):
                parts = [left, *others]
                parts += [
                    item for part in parts if isinstance(part, ast.Tuple | ast.Set | ast.List) for item in part.elts
                ]
            case ast.Dict(keys=keys):
                parts = list(keys)
            case ast.MatchValue(value=value):
                parts = [value]
            case ast.Call(func=ast.Attribute(attr="startswith" | "removeprefix"), args=[prefix, *_]):
                if begins_with_a_system(prefix):
                    yield node.lineno
        if any(map(names_a_system, parts)):
            yield node.lineno


@pytest.mark.parametrize(
    "text",
    [
        'system == "kafka"',
        'system in ("kafka", "metaq")',
        "system != KAFKA.name",
        "KAFKA.name not in followed",
        "profile is ROCKETMQ",
        '{"kafka": 1}[system]',
        "{KAFKA.name: 1}[system]",
        'strategy.startswith("kafka.")',
        'strategy.startswith(("metaq.", "x"))',
        'strategy.removeprefix(f"{KAFKA.name}.")',
        'match system:\n    case "kafka":\n        pass',
    ],
)
def test_code_that_decides_by_a_system_name_is_found(text: str) -> None:
    assert list(decided_by_name(ast.parse(text)))


@pytest.mark.parametrize("text", ['default = "kafka.range"', "system = KAFKA.name", 'name.startswith("kafkaesque")'])
def test_a_name_that_decides_nothing_is_not(text: str) -> None:
    assert not list(decided_by_name(ast.parse(text)))


def test_nothing_is_decided_by_the_name_of_a_system():
    found: dict[str, list[int]] = {}
    for path in (path for top in rooms.PRODUCT for path in rooms.modules(top)):
        place = str(path.relative_to(rooms.ROOT))
        if not place.startswith(own_places()):
            lines = list(decided_by_name(ast.parse(path.read_text(encoding="utf-8"))))
            found |= {place: lines} if lines else {}
    assert {place: lines for place, lines in found.items() if place not in EXCEPTIONS} == {}
    assert found.keys() == EXCEPTIONS, "it needs no exception any more"


def test_numbers_in_packets_never_change():
    assert {1: "rocketmq", 0: "kafka", 2: "metaq"}.items() <= BY_NUMBER.items()
    assert len(BY_NUMBER) == len(SYSTEMS)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_has_its_strategies_and_a_timeout(system: str):
    profile = SYSTEMS[system]
    assert profile.name == system
    assert system_of(profile.default_strategy) == system
    assert registered(profile.default_strategy, system)
    assert [name for name in names() if system_of(name) == system]
    assert load().core_config().session_timeouts_ms[system] > 0


def test_one_more_system_is_a_profile_and_a_strategy():
    script = Path(__file__).with_name("toy_run.py")
    command = [sys.executable, "-m", f"tests.udfs.model.{script.stem}"]
    answer = json.loads(subprocess.run(command, cwd=rooms.ROOT, capture_output=True, check=True).stdout)
    assert answer["rejected"] == []
    made, expired = answer["rows"]
    assert (made["system"], made["trigger"], made["after_ms"]) == ("toy", "group_created", 1)
    assert (made["strategy"], made["queues"]) == ("toy.all-to-first", 2)
    assert (expired["system"], expired["trigger"], expired["after_ms"]) == ("toy", "session_expired", 30_002)
