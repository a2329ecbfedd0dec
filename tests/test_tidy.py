"""The house: rooms, names and sizes are as ARCHITECTURE.md says."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import rooms

PRODUCT = [path for top in (*rooms.PRODUCT, "bench") for path in rooms.modules(top)]
LONGEST = 400
LONGEST_OF_CORE = 60  # lines of a function
# Words of a private dialect for which the field has a term: assign, report or emit, departure.
DIALECT = frozenset({"deal", "dealing", "deals", "dealt", "goings", "tell", "telling", "tells", "told"})
# Good English in a sentence, but no name for a report.
PLAIN_IN_PROSE = frozenset({"goings", "tell", "tells"})
# Where the output of each module is fixed from outside, by a real class, a wire or a former state, each has its test
# file. Elsewhere tests follow behaviour, not files.
MIRRORED = (
    *("udfs/strategies/", "udfs/kafka/", "udfs/packets/", "udfs/group/format/"),
    *("udfs/shard/state_format.py", "streaming/tables/delta_schema.py", "streaming/pipeline/codecs.py"),
)
# Names that modules of several rooms share: what each collector has, and what each room has of its own.
SHARED = frozenset(
    {
        *("cluster_diff", "collector", "errors", "factory", "group_diff", "offset_diff", "options", "registry"),
        *("liveness", "state_format", "topic_diff"),
    }
)
# Modules that are not named after their main class, and why.
NAMED_OTHERWISE = {
    "dashboard/questions/catalog.py": "its questions are files; Question is one of them",
    "streaming/tables/columns.py": "most of it is types of columns, which are not classes",
    "streaming/tables/row_edits.py": "OpenSpans is one of three that edit rows together",
    "udfs/model/config.py": "the only configuration that the core has",
    "udfs/model/systems.py": "it names the systems; SystemProfile describes each of them",
}
# Rooms whose modules are not named after their classes yet.
RENAMED_LATER = ("dashboard/pages", "dashboard/reading", "streaming/views", "udfs/group")
# Files there are named after a command or a strategy.
NAMED_BY_CONTRACT = ("streaming/commands", "udfs/strategies/kafka", "udfs/strategies/metaq", "udfs/strategies/rocketmq")


def tokens(name: str) -> set[str]:
    """Return the words of a name in any case."""
    return set(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return the syntax tree of a module, node by node: each of them is read once."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def mentioning(paths: Iterable[Path], words: Iterable[str], before: str = "") -> Iterator[Path]:
    """Yield the modules whose text has one of these words, whatever it is there: no other needs a syntax tree."""
    pattern = re.compile(f"{before}(?:{'|'.join(words)})", re.IGNORECASE)
    return (path for path in paths if pattern.search(path.read_text(encoding="utf-8")))


def named(path: Path) -> dict[str, int]:
    """Return the names that a module gives to itself, its classes and its functions, with their lines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {path.stem: 1} | {node.name: node.lineno for node in nodes(path) if isinstance(node, kinds)}


def test_no_module_class_or_function_has_a_name_of_the_dialect():
    wrong = [
        f"{path.relative_to(rooms.ROOT)}:{line} {name}"
        for path in mentioning([*PRODUCT, *rooms.modules("tests")], DIALECT)
        for name, line in named(path).items()
        if tokens(name) & DIALECT
    ]
    assert wrong == []


def bound(path: Path) -> dict[str, int]:
    """Return the names of variables, parameters and attributes that a module sets, with their lines."""
    found: dict[str, int] = {}
    for node in nodes(path):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.setdefault(name, node.lineno)
    return found


def test_no_variable_of_shell_pages_or_tests_has_a_name_of_the_dialect():
    wrong = [
        f"{path.relative_to(rooms.ROOT)}:{line} {name}"
        for top in ("streaming", "dashboard", "tests", "bench")
        for path in mentioning(rooms.modules(top), DIALECT)
        for name, line in bound(path).items()
        if tokens(name) & DIALECT
    ]
    assert wrong == []


def test_a_variable_says_what_it_is():
    wrong = [
        f"{path.relative_to(rooms.ROOT)}:{line}"
        for path in mentioning([*PRODUCT, *rooms.modules("tests")], [r"\bone\s*(?:[:=,)\]]|in\b)"])
        if (line := bound(path).get("one"))
    ]
    assert wrong == []


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module, with their lines."""
    text = path.read_text(encoding="utf-8")
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_no_prose_of_a_test_is_in_the_dialect():
    wrong = [
        f"{path.relative_to(rooms.ROOT)}:{line} {word}"
        for top in ("tests", "bench")
        for path in mentioning(rooms.modules(top), DIALECT - PLAIN_IN_PROSE)
        for line, text in prose(path)
        for word in sorted(set(re.findall(r"[a-z]+", text.lower())) & (DIALECT - PLAIN_IN_PROSE))
    ]
    assert wrong == []


def test_no_docstring_begins_in_the_dialect():
    wrong = []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    words = DIALECT | {"answer", "answers"}
    for path in mentioning([*PRODUCT, *rooms.modules("tests")], words, r'"""\W*'):
        for node in nodes(path):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            first = re.match(r"\W*(\w+)", text or "")
            if first and first[1].lower() in words:
                wrong.append(f"{path.relative_to(rooms.ROOT)}:{getattr(node, 'lineno', 1)} {first[1]}")
    assert wrong == []


def declared(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, classes: dict[str, set[str]]) -> set[str]:
    """Return the parameters of a function, or the fields of a class with those of its bases."""
    if not isinstance(node, ast.ClassDef):
        return {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    inherited = (classes.get(base.id, set()) for base in node.bases if isinstance(base, ast.Name))
    return fields(node).union(*inherited)


def fields(node: ast.ClassDef) -> set[str]:
    """Return the fields, methods and attributes of a class, and the parameters of its ``__init__``."""
    found = {
        part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }
    for member in node.body:
        if isinstance(member, ast.FunctionDef):
            found.add(member.name)
            attributes = (part for part in ast.walk(member) if isinstance(part, ast.Attribute))
            found |= {part.attr for part in attributes if isinstance(part.value, ast.Name) and part.value.id == "self"}
            found |= {
                part.arg for part in ast.walk(member.args) if isinstance(part, ast.arg) and member.name == "__init__"
            }
    return found


def documented(text: str) -> list[str]:
    """Return the names at the beginning of entries under ``Attributes:`` and ``Args:``."""
    names: list[str] = []
    indent: str | None = None
    is_list = False
    for line in text.splitlines():
        if re.match(r"\S", line):
            is_list, indent = line.strip() in ("Attributes:", "Args:"), None
        elif is_list and (found := re.match(r"( +)([*\w]+(?:, [*\w]+)*):", line)):
            indent = indent or found[1]
            names += found[2].replace("*", "").split(", ") if found[1] == indent else []
    return names


def test_docstrings_name_fields_and_parameters_that_there_are():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [(path, node) for path in PRODUCT for node in nodes(path) if isinstance(node, kinds)]
    classes = {node.name: fields(node) for _, node in found if isinstance(node, ast.ClassDef)}
    wrong = [
        f"{path.relative_to(rooms.ROOT)}:{node.lineno} {node.name}: {name}"
        for path, node in found
        for name in documented(ast.get_docstring(node) or "")
        if name not in declared(node, classes)
    ]
    assert wrong == []


def test_no_two_modules_or_public_classes_of_the_product_have_one_name():
    found: dict[str, list[str]] = {}
    for path in (module for top in rooms.PRODUCT for module in rooms.modules(top)):
        place = str(path.relative_to(rooms.ROOT))
        module_node, *_ = nodes(path)
        assert isinstance(module_node, ast.Module)
        classes = [node.name for node in module_node.body if isinstance(node, ast.ClassDef)]
        for name in [*([] if place.startswith(NAMED_BY_CONTRACT) else [path.stem]), *classes]:
            found.setdefault(name, []).append(place)
    twice = {name: places for name, places in found.items() if len(places) > 1 and not name.startswith("_")}
    assert {name: places for name, places in twice.items() if name not in SHARED} == {}


def main_class(path: Path) -> str | None:
    """Return the public class that has two thirds of the lines of a module's public classes and functions.

    Errors do not count: they are beside what raises them.
    """
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, kinds) and not node.name.startswith("_") and not node.name.endswith("Error")
    ]
    lengths = {node: (node.end_lineno or 0) - node.lineno + 1 for node in public}
    longest = max(public, key=lambda node: lengths[node], default=None)
    is_main = isinstance(longest, ast.ClassDef) and 3 * lengths[longest] > 2 * sum(lengths.values())
    return longest.name if longest is not None and is_main else None


def fits(path: Path, class_name: str) -> bool:
    """Return whether a module has the name of its class: with or without its room's, one of them or several."""
    name = path.stem.replace("_", "")
    rooms_before = [part.replace("_", "") for part in path.parts[:-1]]
    return class_name.lower() in {
        form for plain in (name, name.removesuffix("s")) for form in (plain, *(room + plain for room in rooms_before))
    }


def test_a_module_has_the_name_of_its_main_class():
    modules = [path.relative_to(rooms.ROOT) for top in rooms.PRODUCT for path in rooms.modules(top)]
    other = {
        str(path): name
        for path in modules
        if path.name != "errors.py" and not str(path).startswith(RENAMED_LATER)
        if (name := main_class(rooms.ROOT / path)) and not fits(path, name)
    }
    assert {path: name for path, name in other.items() if path not in NAMED_OTHERWISE} == {}
    assert sorted(other) == sorted(NAMED_OTHERWISE), "no longer needed"


def test_no_module_is_longer_than_a_reader_can_follow():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PRODUCT}
    assert {str(path.relative_to(rooms.ROOT)): length for path, length in lengths.items() if length > LONGEST} == {}


def test_no_function_of_the_core_is_longer_than_a_page():
    found = [(path, node) for path in rooms.modules("udfs") for node in nodes(path)]
    lengths = {
        f"{path.relative_to(rooms.ROOT)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path, node in found
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_OF_CORE} == {}


@pytest.mark.parametrize("room", rooms.rooms())
def test_each_room_has_its_line_in_the_architecture(room: str):
    folder = room.replace(".", "/")
    bullets = re.findall(r"^(?:- |  )(.*)$", rooms.ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE)
    assert any(f"`{folder}`" in bullet for bullet in bullets)


def test_the_drawing_of_imports_is_that_of_the_code():
    assert rooms.drawn() == rooms.drawing(), "redraw it: python -m tests.rooms"


def test_no_two_rooms_import_each_other():
    graph = rooms.imports()
    below: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in below:
            below[room] = set()
            for other in graph[room]:
                below[room] |= {other} | reach(other)
        return below[room]

    assert [room for room in graph if room in reach(room)] == []


@pytest.mark.parametrize("place", MIRRORED)
def test_a_module_whose_output_is_fixed_from_outside_has_its_test_file(place: str):
    modules = [path.relative_to(rooms.ROOT) for path in PRODUCT if f"{path.relative_to(rooms.ROOT)}".startswith(place)]
    assert modules != []
    tests = [rooms.ROOT / "tests" / path.with_name(f"test_{path.name}") for path in modules]
    assert [path.name for path in tests if not path.exists()] == []


def given_defaults(path: Path) -> dict[str, int]:
    """Return the parameters and fields of a module that have a number as their default, with their lines."""
    found: dict[str, int] = {}
    for node in nodes(path):
        pairs: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            positional = [*node.args.posonlyargs, *node.args.args]
            pairs += zip([argument.arg for argument in positional[::-1]], node.args.defaults[::-1], strict=False)
            pairs += zip([argument.arg for argument in node.args.kwonlyargs], node.args.kw_defaults, strict=True)
        elif isinstance(node, ast.ClassDef):
            fields = [
                part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
            pairs += [(part.target.id, part.value) for part in fields if isinstance(part.target, ast.Name)]
        # A number that stands for "none" is not the default of a setting.
        found |= {
            name: node.lineno for name, value in pairs if isinstance(value, ast.Constant) and is_amount(value.value)
        }
    return found


def is_amount(value: object) -> bool:
    """Return whether a value is a number other than 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value != 0


def test_the_default_of_a_setting_is_in_one_file():
    sections = tomllib.loads((rooms.ROOT / "conf/default.toml").read_text(encoding="utf-8")).values()
    settings = {key for section in sections for key, value in section.items() if isinstance(value, int | float)}
    wrong = [
        f"{path.relative_to(rooms.ROOT)}:{line} {name}"
        for path in PRODUCT
        for name, line in given_defaults(path).items()
        if name in settings
    ]
    assert wrong == []
