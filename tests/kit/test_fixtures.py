"""What tests share, they share without touching what is another's."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kit.fixtures import pytest_collection_modifyitems, scope_of

_TESTS = Path(__file__).parents[1]
# By fixture: whose topics and groups it shows.
_SHARED = {
    "kafka41": "Kafka",
    "kafka10": "Kafka",
    "each_kafka": "Kafka",
    "rocketmq55": "RocketMQ",
    "rocketmq49": "RocketMQ",
    "each_rocketmq": "RocketMQ",
    "client_rocketmq": "RocketMQ",
    "metaq": "MetaQ",
}
_NAMING = ("create_topic", "create_group", "new_member", "new_rocketmq_member", "new_metaq_member")
# Made with the cluster, for all.
_FOR_ALL = {"kit-orders"}


def _names(function: ast.FunctionDef) -> Iterator[str]:
    """Return the topics and groups that a test makes or joins under a name of its own."""
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in _NAMING:
            for argument in call.args:
                for part in [argument, *getattr(argument, "elts", ())]:
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


@cache
def _functions() -> list[tuple[str, ast.FunctionDef]]:
    return [
        (f"tests/{file.relative_to(_TESTS).as_posix()}", function)
        for file in _TESTS.rglob("test_*.py")
        for function in ast.parse(file.read_text()).body
        if isinstance(function, ast.FunctionDef)
    ]


def test_no_two_tests_of_a_shared_cluster_use_one_name() -> None:
    users: dict[tuple[str, str], set[str]] = defaultdict(set)
    for file, function in _functions():
        for system in {_SHARED[argument.arg] for argument in function.args.args if argument.arg in _SHARED}:
            for name in _names(function):
                users[system, name].add(f"{file}::{function.name}")
    assert len(users) > 50
    assert {name: tests for name, tests in users.items() if len(tests) > 1 and name[1] not in _FOR_ALL} == {}


@pytest.mark.parametrize(
    ("scopes", "fixtures"),
    [
        ({"spark"}, {"spark"}),
        ({"rocketmq"}, {"rocketmq55", "rocketmq49", "each_rocketmq"}),
    ],
)
def test_files_that_use_an_expensive_fixture_are_listed_as_sharing_it(scopes: set[str], fixtures: set[str]) -> None:
    users = {file for file, function in _functions() if fixtures & {argument.arg for argument in function.args.args}}
    assert len(users) > 5
    assert {file for file in users if scope_of(file) not in scopes} == set()


def _item(name: str, *fixtures: str, parameter: str = "") -> Any:
    found = SimpleNamespace(nodeid=f"tests/kit/test_rocketmq.py::{name}", fixturenames=fixtures)
    found.get_closest_marker = found.add_marker = lambda _name: None
    if parameter:
        found.callspec = SimpleNamespace(params={"each_rocketmq": parameter})
    return found


def test_each_of_rocketmqs_clusters_has_its_tests_one_after_the_other() -> None:
    items = [
        _item("own"),
        _item("new", "rocketmq55"),
        _item("each[new]", "each_rocketmq", parameter="rocketmq55"),
        _item("both", "rocketmq55", "rocketmq49"),
        _item("each[old]", "each_rocketmq", parameter="rocketmq49"),
        _item("old", "rocketmq49"),
    ]
    pytest_collection_modifyitems(items)
    names = [item.nodeid.partition("::")[2] for item in items]
    assert names == ["each[old]", "old", "both", "new", "each[new]", "own"]
