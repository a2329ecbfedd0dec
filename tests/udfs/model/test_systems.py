"""What the core knows of each system, and that it knows it in one place."""

from __future__ import annotations

import ast
import json
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


def decided_by_name(tree: ast.AST) -> Iterator[int]:
    """Return the lines that compare with the name of a system, or choose by it."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            parts += [one for part in parts if isinstance(part, ast.Tuple | ast.Set | ast.List) for one in part.elts]
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        if any(isinstance(part, ast.Constant) and part.value in SYSTEMS for part in parts):
            yield node.lineno


def test_nothing_is_decided_by_the_name_of_a_system():
    found = []
    for path in (path for top in rooms.PRODUCT for path in rooms.modules(top)):
        place = str(path.relative_to(rooms.ROOT))
        if not place.startswith(own_places()):
            found += [f"{place}:{line}" for line in decided_by_name(ast.parse(path.read_text(encoding="utf-8")))]
    assert found == []


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
    assert load().rules().session_timeouts_ms[system] > 0


def test_one_more_system_is_a_profile_and_a_strategy():
    script = Path(__file__).with_name("toy_run.py")
    command = [sys.executable, "-m", f"tests.udfs.model.{script.stem}"]
    answer = json.loads(subprocess.run(command, cwd=rooms.ROOT, capture_output=True, check=True).stdout)
    assert answer["rejected"] == []
    made, expired = answer["rows"]
    assert (made["system"], made["trigger"], made["after_ms"]) == ("toy", "group_created", 1)
    assert (made["strategy"], made["queues"]) == ("toy.all-to-first", 2)
    assert (expired["system"], expired["trigger"], expired["after_ms"]) == ("toy", "session_expired", 30_002)
