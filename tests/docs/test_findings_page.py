"""The page of findings has every kind that the code can open, with its severity."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from udfs.group.batch.findings import RULES
from udfs.group.batch.observed_findings import OBSERVED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| (\w+) \| ", PAGE, re.MULTILINE))
_OPENING = {"set_finding", "_finding", "_Finding"}


def _opened(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that name the kind of a finding that a module opens."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _OPENING and node.args:
                yield node.args[0]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "finding")
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "finding":
                    yield value


def _texts(expression: ast.expr, module: ModuleType) -> Iterator[str]:
    """Yield the texts that an expression may be: constants, also under a name of the module."""
    for node in ast.walk(expression):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.Name):
            value = getattr(module, node.id, None)
        if isinstance(value, str):
            yield value


def kinds() -> set[str]:
    """Return every kind that the code opens by name, by a rule, or for a source."""
    found = {name for name, _ in RULES} | set(OBSERVED)
    for path in sorted([*(ROOT / "udfs").rglob("*.py"), *(ROOT / "streaming").rglob("*.py")]):
        text = path.read_text(encoding="utf-8")
        if "set_finding(" in text or "FindingOpened" in text or "_finding(" in text.lower():
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            for expression in _opened(ast.parse(text)):
                found.update(text for text in _texts(expression, module) if re.fullmatch(r"[a-z_]+", text))
    return found


def test_every_kind_is_on_the_page_and_no_other() -> None:
    found = kinds()
    assert {"rebalance_stuck", "duplicate_instance", "events_lost", "clocks_ahead", "job_silent"} < found
    assert set(ROWS) == found


def test_severities_are_those_of_the_code() -> None:
    of_code = {kind: severity for kind, (severity, _, _) in OBSERVED.items()}
    for kind, rule in RULES:
        of_code[kind] = re.findall(r'severity="(\w+)"', inspect.getsource(rule))[0]
    assert {kind: ROWS[kind] for kind in of_code} == of_code
