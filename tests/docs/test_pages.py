"""Files and settings that the documents name exist."""

import re
import tomllib
from pathlib import Path

import pytest

from streaming.tables.projections import PROJECTIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
_NAMED_PATH = re.compile(r"`((?:bench|conf|docs|streaming|tests|udfs)/[\w./-]+)`")
_SETTING_ROW = re.compile(r"^\| (`\w+\.\w+`(?:, `\w+\.\w+`)*) \|", re.MULTILINE)


_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def named_settings() -> list[str]:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    return [name for row in _SETTING_ROW.findall(page) for name in re.findall(r"[\w.]+", row)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_file_exists(page: Path) -> None:
    named = [path for path in _NAMED_PATH.findall(page.read_text(encoding="utf-8")) if "SYSTEM" not in path]
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_begins_with_its_readers(page: Path) -> None:
    title, empty, first, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert empty == ""
    assert re.match(r"For (people|those|operators|anyone|authors|developers) ", first)


def test_the_changelog_begins_with_unreleased_changes_and_then_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    unreleased, newest, *_ = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert unreleased == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", newest)


def test_every_setting_of_the_page_of_performance_exists() -> None:
    defaults = tomllib.loads((ROOT / "conf" / "default.toml").read_text(encoding="utf-8"))
    named = named_settings()
    assert len(named) > 10
    assert [name for name in named if name.split(".")[1] not in defaults[name.split(".")[0]]] == []


def _plain(text: str) -> float:
    """Return a value as people write it as the settings have it: milliseconds, or a number."""
    number, _, unit = text.strip().replace(",", "").partition(" ")
    ms = {"s": 1_000, "min": 60_000, "hour": 3_600_000, "hours": 3_600_000, "days": 86_400_000}
    return float(number) * ms.get(unit, 1)


def test_the_page_of_performance_has_the_defaults() -> None:
    defaults = tomllib.loads((ROOT / "conf" / "default.toml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    compared = 0
    for names, cell in re.findall(r"^\| (`\w+\.\w+`(?:, `\w+\.\w+`)*) \| ([^|]+) \|", page, re.MULTILINE):
        for position, name in enumerate(re.findall(r"[\w.]+", names)):
            section, key = name.split(".")
            shown = cell.split("; ")
            value = defaults[section][key]
            if isinstance(value, int | float):
                assert _plain(shown[min(position, len(shown) - 1)]) == value, name
                compared += 1
    assert compared > 15


def test_the_page_of_internals_names_the_tables_that_can_be_made_again() -> None:
    page = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"delete the folders (.*?), and they start", page, re.DOTALL)
    assert sorted(re.findall(r"`(\w+)`", named)) == sorted(projection.table.name for projection in PROJECTIONS)


def test_the_page_of_performance_names_every_benchmark() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    benchmarks = {path.stem.removesuffix("_bench") for path in (ROOT / "bench").glob("*_bench.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == benchmarks
