"""Who assigns fields of a group and its members; functions that take a view of a group, or a group, only read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import rooms
from udfs.group.batch.context import GroupContext
from udfs.group.batch.event_time import EventTimeView
from udfs.group.state import group as state

MODULES = [path for path in rooms.modules("udfs") if path.is_relative_to(rooms.ROOT / "udfs" / "group")]
# These modules change groups while events come, and while decisions are made.
WRITERS = {"context", "history", "sessions", "commit", "commit_spans"}
# These modules create groups.
MAKERS = {"state_format", "restore"}
FIELDS = set(state.Group.__struct_fields__)
# Methods that change the recorded past of a group.
BEFORE = {"note_member", "rename"}
OF_MEMBERS = set(state.Member.__struct_fields__) | set(state.Departed.__struct_fields__)
# Methods that change containers.
CHANGING = {"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"}
OWN_CHANGING = {"forget_owned", "note_target"}
VIEWS = ("GroupView", "EventTimeView", "Group")
WRITING = set(dir(GroupContext)) - set(dir(EventTimeView))
PARTS = (state.Member, state.Departed, state.Evidence, state.WaitingReport, state.Replacement, state.Awaited)
OF_PARTS = set().union(
    *(part.__struct_fields__ for part in (*PARTS, state.Pending, state.GroupFinding, state.IdleQueue))
)
# Changes by other modules to the parts of a group, under the names that those modules use.
CHANGED_ELSEWHERE = {
    # Descriptions of a member, as events give them; `member.*` is a field chosen by name.
    "descriptions": {"member.*", "member.field_times", "member.timeout_since"},
    # Records of Kafka's coordinator.
    "epoch_rebalance": {"group.recorded.note_target"},
    "record_fold": {
        *("recorded.members", "recorded.previous", "recorded.members[member_id].joined_at"),
        *("member.event_id", "member.owned", "folded.departed"),
    },
    # These are not parts of a group: causes of a generation, moves of queues, the row of a rebalance.
    "generation_causes": {"causes.leader"},
    "triggers": {"causes.triggers"},
    "queue_handover": {"found.idle_queues", "found.outages", "found.pulls"},
    "outages": {"row.outages"},
    "episode_step": {"episode.kind"},
}


def written(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each object and field that a module assigns, deletes, or changes by a method; aliases are resolved."""
    other_names = aliases(tree)
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        match node:
            case ast.Assign(targets=found) | ast.Delete(targets=found):
                targets = list(found)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                targets = [target]
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in CHANGING:
                targets = [owner]
                if isinstance(owner, ast.Name):
                    yield from other_names.get(owner.id, ())
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in OWN_CHANGING:
                yield ast.unparse(owner), name
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, *_]):
                yield ast.unparse(owner), "*"
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                place = _without_places(part)
                if isinstance(place, ast.Attribute):
                    yield ast.unparse(place.value), place.attr
                elif isinstance(place, ast.Name) and place is not part:
                    yield from other_names.get(place.id, ())


def aliases(tree: ast.AST) -> dict[str, set[tuple[str, str]]]:
    """Return the attributes for which a module uses a variable as another name."""
    found: dict[str, set[tuple[str, str]]] = {}
    for node in ast.walk(tree):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = list(zip(names, values, strict=False))
            case ast.Assign(targets=[name], value=value) | ast.NamedExpr(target=name, value=value):
                pairs = [(name, value)]
        for name, value in pairs:
            for choice in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                if isinstance(name, ast.Name) and isinstance(choice, ast.Attribute):
                    found.setdefault(name.id, set()).add((ast.unparse(choice.value), choice.attr))
    return found


def _without_places(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


@pytest.mark.parametrize(
    "text",
    [
        "group.pending = None",
        "group.pending, other = None, 1",
        "del group.members[name]",
        "group.members[name].joined_at = 1",
        "group.pending.triggers.append(one)",
        "triggers = group.pending.triggers\ntriggers.append(one)",
        "triggers, n = group.pending.triggers, 1\ntriggers[:] = []",
        "triggers = [] if n else group.pending.triggers\ndel triggers[n:]",
        "member.forget_owned()",
        "setattr(member, name, value)",
    ],
)
def test_a_change_is_found_under_any_alias(text: str) -> None:
    names = FIELDS | OF_PARTS | OWN_CHANGING | {"*"}
    assert [attribute for _, attribute in written(ast.parse(text)) if attribute in names]


def functions_with_a_view() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Return the functions that take a view, or a group itself: module, name of the argument, function."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for argument in [*node.args.args, *node.args.kwonlyargs]:
                    if argument.annotation is not None and ast.unparse(argument.annotation) in VIEWS:
                        yield path.stem, argument.arg, node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_fields_of_a_group_are_assigned_as_events_come_or_decisions_are_made(path: Path) -> None:
    if path.stem in WRITERS | MAKERS:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    groups = ("group", "self.group", "view.group", "context.group", "self.context.group")
    assert sorted({attribute for owner, attribute in written(tree) if owner in groups and attribute in FIELDS}) == []


def test_parts_of_a_group_are_changed_only_by_the_listed_modules() -> None:
    found: dict[str, set[str]] = {}
    for path in MODULES:
        if path.stem in WRITERS | MAKERS | {"member_format"}:
            continue
        for owner, attribute in written(ast.parse(path.read_text(encoding="utf-8"))):
            if attribute in FIELDS | OF_PARTS | OWN_CHANGING | {"*"} and owner != "self":
                found.setdefault(path.stem, set()).add(f"{owner}.{attribute}")
    assert found == CHANGED_ELSEWHERE


def changes_what_is_recorded(tree: ast.AST) -> bool:
    """Return whether fields of a coordinator's records are changed other than by their own methods."""
    return any("recorded" in owner.split(".") and name not in OWN_CHANGING for owner, name in written(tree))


def test_coordinator_records_are_changed_in_few_places() -> None:
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    found = {module for module, tree in trees.items() if changes_what_is_recorded(tree)}
    assert found - {"recorded_group"} == {"record_fold", "group_epochs", "topic_names"}
    for module, _, node in functions_with_a_view():
        if changes_what_is_recorded(node):
            given = {argument.arg: argument.annotation for argument in [*node.args.args, *node.args.kwonlyargs]}
            assert ast.unparse(given["recorded"] or node) == "RecordedGroup", f"{module}.{node.name}"


def test_a_function_that_takes_a_view_changes_nothing() -> None:
    wrong = []
    for module, view, node in functions_with_a_view():
        for owner, attribute in written(node):
            mine = owner.split(".")[0] in (view, "group")
            if mine or attribute in OF_MEMBERS & {"by_heartbeats", "holds_since", "joined_at", "field_times"}:
                wrong.append(f"{module}.{node.name}: {owner}.{attribute}")
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and ast.unparse(part.value) == f"{view}.before" and part.attr in BEFORE:
                wrong.append(f"{module}.{node.name}: {view}.before.{part.attr}")
            is_mine = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == view
            if is_mine and part.attr in WRITING:
                wrong.append(f"{module}.{node.name}: {view}.{part.attr}")
    assert wrong == []
    assert sum(1 for _ in functions_with_a_view()) > 40
