"""The pictures of README and docs, from the pages themselves over the recorded day: `make pictures`."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page

from dashboard.server import DashboardServer
from streaming.settings.locations import location_of
from streaming.settings.model import load
from streaming.views.reader import Reader
from tests.browser.day_tables import write_day
from tests.kit.chromium import chromium

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
# The files of the pages as they were when the pictures were taken; a test of the documents compares.
SHOWN = FOLDER / "shown.sha256"
# Files of pages that no picture shows.
_OTHERS = frozenset(
    {"error", "findings", "job", "login", "member", "members", "question", "questions", "rebalances", "rejected_events"}
    | {"__init__", "errors", "member_page", "page_addresses", "question_pages", "static_files"}
)
SIZE = {"width": 1200, "height": 820}
SMALL = {"width": 1200, "height": 700}
# The last shift of the day, from its first rebalance on.
LAST_SHIFT = """async () => {
  const place = document.querySelector("[data-lanes]"), last = place.lanes.data.marks.at(-1).at;
  place.dataset.source += `&since=${last - 48000}&until=${last + 4000}`;
  await place.lanes.load();
  place.lanes.paint();
}"""


def shown_files(root: Path = ROOT) -> dict[str, str]:
    """Return the SHA-256 of each file of the pages that the pictures show, by its path."""
    pages = root / "dashboard"
    found = [*pages.glob("templates/*.html"), *pages.glob("pages/*.py"), *pages.glob("static/*.*")]
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(found)
        if path.stem not in _OTHERS
    }


def as_text(files: dict[str, str]) -> str:
    """Return the lines of ``SHOWN``, as ``sha256sum --check`` reads them."""
    return "".join(f"{digest}  {path}\n" for path, digest in files.items())


def take(root: Path, folder: Path) -> None:
    """Write each picture below a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    reader = Reader(location_of(str(root)))
    # Of the rebalances with a known outage and a confirmed assignment, the one that moved most queues.
    moving = max(
        reader.rows("rebalances"),
        key=lambda rebalance: (
            bool(rebalance["outage_max_ms"]) and rebalance["agrees"] is True,
            rebalance["queues_moved"],
            rebalance["rebalance_id"],
        ),
    )
    # A group whose members are there at the end of the day, and which rebalanced often.
    generations = {
        (row["cluster"], row["group_id"]): row["generation"] for row in reader.rows("groups") if row["members"] > 2
    }
    cluster, name = max(generations, key=lambda key: (key[0].startswith("kafka"), generations[key]))
    group = {"cluster": cluster, "group": name}
    wanted = {
        "groups": ("/?sort=-rebalances_day", "light", SIZE),
        "group": (f"/group?{urlencode(group)}", "light", SIZE),
        "group-dark": (f"/group?{urlencode(group)}", "dark", SIZE),
        "rebalance": (f"/rebalance?id={moving['rebalance_id']}", "light", SMALL),
    }
    server = DashboardServer(root, load(overrides={"dashboard.port": 0}).dashboard)
    with server.in_background(), chromium() as browser:
        for name, (path, theme, size) in wanted.items():
            page = browser.new_context(color_scheme=theme, viewport=size).new_page()  # type: ignore[arg-type]
            page.goto(server.url.rstrip("/") + path)
            _wait_for_charts(page)
            if page.locator("[data-lanes]").count():
                page.evaluate(LAST_SHIFT)
            page.screenshot(path=str(folder / f"{name}.png"))
            page.context.close()


def _wait_for_charts(page: Page) -> None:
    for place in page.locator("[data-chart], [data-lanes]").all():
        place.and_(page.locator("[data-drawn]")).wait_for()
    page.locator("#live-state", has_text="recording").wait_for()


def main() -> None:
    """Write the pictures of the recorded day."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        write_day(Path(folder))
        take(Path(folder), FOLDER)
    SHOWN.write_text(as_text(shown_files()), encoding="utf-8")


if __name__ == "__main__":
    main()
