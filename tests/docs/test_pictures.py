"""The pictures show the pages of today: `make pictures` takes them anew and notes the files that they show."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pictures import FOLDER, ROOT, SHOWN, as_text, shown_files


def test_the_pictures_show_the_pages_of_today() -> None:
    noted = {line.split("  ")[1]: line for line in SHOWN.read_text(encoding="utf-8").splitlines()}
    today = {line.split("  ")[1]: line for line in as_text(shown_files()).splitlines()}
    changed = sorted(path for path in noted.keys() | today.keys() if noted.get(path) != today.get(path))
    assert changed == [], "these files changed after the pictures were taken: run `make pictures`"


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "dashboard" / "templates" / "group.html"
    page.parent.mkdir(parents=True)
    page.write_text("one")
    before = shown_files(tmp_path)
    page.write_text("other")
    assert before.keys() == shown_files(tmp_path).keys() == {"dashboard/templates/group.html"}
    assert before != shown_files(tmp_path)


def test_every_picture_is_in_a_document() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    named = {Path(path).name for path in re.findall(r"pictures/[\w-]+\.png", texts)}
    assert named == {path.name for path in FOLDER.glob("*.png")}
