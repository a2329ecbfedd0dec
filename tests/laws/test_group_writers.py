"""A group is changed in five modules; a function that takes a view changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import rooms
from udfs.group.batch.context import GroupContext
from udfs.group.state import group as state
from udfs.group.state.view import GroupView

MODULES = [path for path in rooms.modules("udfs") if path.is_relative_to(rooms.ROOT / "udfs" / "group")]
# As events come, and as decisions are made.
WRITERS = {"context", "history", "commit", "commit_spans", "audit_commit"}
# They make a group.
MAKERS = {"state_format", "restore"}
FIELDS = set(state.Group.__struct_fields__)
OF_MEMBERS = set(state.Member.__struct_fields__) | set(state.Departed.__struct_fields__)
# Methods of containers that change them.
CHANGING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"}
WRITING = set(dir(GroupContext)) - set(dir(GroupView))


def written(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Return what is assigned, deleted, or changed by a method: of which name, which attribute."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = list(node.targets)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            targets = [node.func.value]
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(found := _without_places(one), ast.Attribute):
                    yield ast.unparse(found.value), found.attr


def _without_places(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def functions_with_a_view() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Return the functions that take a view: module, name of the view, function."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for one in [*node.args.args, *node.args.kwonlyargs]:
                    if one.annotation is not None and ast.unparse(one.annotation) == "GroupView":
                        yield path.stem, one.arg, node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_fields_of_a_group_are_assigned_as_events_come_or_decisions_are_made(path: Path) -> None:
    if path.stem in WRITERS | MAKERS:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    groups = ("group", "self.group", "view.group", "context.group", "self.context.group")
    assert sorted({attribute for owner, attribute in written(tree) if owner in groups and attribute in FIELDS}) == []


def test_a_function_that_takes_a_view_changes_nothing() -> None:
    wrong = []
    for module, view, node in functions_with_a_view():
        for owner, attribute in written(node):
            mine = owner.split(".")[0] in (view, "group")
            if mine or attribute in OF_MEMBERS & {"by_heartbeats", "holds_since", "joined_at", "field_times"}:
                wrong.append(f"{module}.{node.name}: {owner}.{attribute}")
        for one in ast.walk(node):
            is_mine = isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == view
            if is_mine and one.attr in WRITING:
                wrong.append(f"{module}.{node.name}: {view}.{one.attr}")
    assert wrong == []
    assert sum(1 for _ in functions_with_a_view()) > 40
