"""A message has a line for each annotation that lay just before or beside its finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from deltalake.exceptions import DeltaError
from structlog.testing import capture_logs

from streaming.alerts.finding_annotations import FindingAnnotations
from streaming.alerts.findings_reader import FindingsReader
from streaming.alerts.notices import notice_of
from streaming.tables.schema import Row
from streaming.views.related_annotations import Happening, related
from tests.dashboard.hostile import HOSTILE
from tests.streaming.alerts.planted import Scene, bodies, finding, widespread
from tests.streaming.tables.journals import T0
from tests.streaming.views.annotated_story import annotate, annotation
from tests.streaming.views.story import write_story

OPENED = Happening("c1", "orders", [], T0, T0)


def shown(*rows: Row) -> list[Row]:
    return related(rows, OPENED)


def test_a_message_has_what_was_done_just_before_its_finding() -> None:
    scene = Scene(channels={"chat": "json://127.0.0.1:1"}, alertmanager_url="http://127.0.0.1:1")
    scene.annotations["f"] = shown(annotation("r42", -3_000, text="orders 2.4.1", url="https://ci.example/42"))
    scene.open(finding("f"), finding("g"))
    scene.engine.step(scene.findings)
    (webhook,), (chat,) = (bodies(scene.receiver.taken, channel) for channel in ("webhook", "chat"))
    line = "deploy: orders 2.4.1; began 3.0 s before, its end is not known (all clusters)"
    assert line in webhook["text"].splitlines()
    assert line in chat["text"].splitlines()
    assert [[done["line"] for done in found["annotations"]] for found in webhook["findings"]] == [[line], []]
    (done,) = webhook["findings"][0]["annotations"]
    assert (done["annotation_id"], done["url"], done["ended_at"]) == ("r42", "https://ci.example/42", None)
    (alerts,) = (request.body for request in scene.receiver.taken if request.channel == "alertmanager")
    assert line in alerts[0]["annotations"]["description"]  # type: ignore[index]


def test_they_are_read_once_and_stay_as_they_were_sent() -> None:
    scene = Scene(alertmanager_url="http://127.0.0.1:1", retry_first_ms=1)
    scene.open(finding("f"))
    for _ in range(3):
        scene.step(60_000)
    assert scene.annotations_read == ["f"]


def test_a_message_has_few_of_many_and_no_text_leaves_its_line() -> None:
    scene = Scene()
    rows = (annotation(f"{at:03}", -1 - at, text=text) for at, text in enumerate(HOSTILE))
    scene.annotations["f"] = shown(*rows)
    scene.open(finding("f"))
    scene.engine.step(scene.findings)
    (body,) = bodies(scene.receiver.taken, "webhook")
    assert len(body["text"].splitlines()) == 1 + 3
    assert len(body["findings"][0]["annotations"]) == 8
    assert all(done["line"].isprintable() for done in body["findings"][0]["annotations"])


def test_an_alert_is_sent_without_annotations_that_cannot_be_read() -> None:
    def fails(_findings: Iterable[Row]) -> Mapping[str, list[Row]]:
        raise DeltaError("gone")

    row = finding("f")
    with capture_logs() as logs:
        (notice,) = FindingAnnotations(fails).added([notice_of(row, "opened")], {"f": row})
    assert list(notice.annotations) == []
    assert [entry["event"] for entry in logs] == ["annotations cannot be read: alerts are sent without them"]


def test_the_reader_finds_them_in_the_tables(tmp_path: Path) -> None:
    write_story(tmp_path)
    annotate(tmp_path, annotation("r42", 69_000, groups=["orders"]), annotation("r43", 69_000, groups=["billing"]))
    reader = FindingsReader(tmp_path, widespread(), lambda: T0 + 80_000)
    found = reader.annotations(reader.read(set()).current.values())
    assert {name: [row["annotation_id"] for row in rows] for name, rows in found.items()} == {"f1": ["r42"]}
