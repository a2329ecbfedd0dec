"""Annotations reach the folder or topic that a job reads, from several processes at once."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from streaming.collectors.annotation_log import read_annotation, taker, writer_to
from streaming.machine.file_lock import exclusive_lock
from streaming.settings.model import Settings, load
from streaming.setup.errors import SetupError
from tests.core_config import core_config
from tests.kit.brokers import Broker
from tests.kit.topics import create_topic
from tests.udfs.event_lines import NOW, VALID, envelope, line
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation
from udfs.model.rejection import Rejection

RULES = core_config()
DEPLOY = b'{"kind": "deploy", "text": "v2"}'


def settings(**values: Any) -> Settings:
    return load(overrides={name.replace("__", "."): value for name, value in values.items()})


def written(folder: Path) -> list[dict[str, Any]]:
    """Return the lines in the order in which a job reads them."""
    files = sorted(folder.glob("[!.]*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(text) for file in files for text in file.read_text().splitlines()]


def test_what_every_event_has_may_be_left_out() -> None:
    found = read_annotation(DEPLOY, NOW, RULES)
    assert isinstance(found, Annotation)
    assert (found.event_time, found.kind, found.schema_version) == (NOW, "deploy", 1)
    whole = read_annotation(line(VALID["annotation"]), NOW + 5, RULES)
    assert isinstance(whole, Annotation)
    assert whole.event_time == NOW
    assert read_annotation(line(envelope(data=VALID["annotation"])), NOW, RULES) == parse(
        line(envelope(data=VALID["annotation"])), NOW, RULES
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty_body"),
        (b" \n", "empty_body"),
        (b"{", "truncated_json"),
        (b"[]", "not_an_object"),
        (b"\xff", "not_utf8"),
        (b"[" * 100_000, "too_deep"),
        (b'{"kind": "deploy"}', "missing_text"),
        (b'{"kind": "deploy", "text": "v2", "schema_version": 2}', "unknown_schema_version"),
        (line(VALID["heartbeat"]), "not_an_annotation"),
        (line(envelope()), "not_an_annotation"),
    ],
)
def test_nothing_else_is_taken(body: bytes, reason: str) -> None:
    found = read_annotation(body, NOW, RULES)
    assert isinstance(found, Rejection)
    assert found.reason == reason


def test_several_writers_write_one_after_another_and_lose_nothing(tmp_path: Path) -> None:
    takes = [taker(settings(events__folder=tmp_path)) for _ in range(4)]

    def write(number: int) -> None:
        for place in range(5):
            takes[number](json.dumps({"kind": "deploy", "text": f"{number}-{place}"}).encode())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [event["text"] for event in written(tmp_path)]
    assert sorted(texts) == sorted(f"{number}-{place}" for number in range(4) for place in range(5))
    for number in range(4):
        mine = [text for text in texts if text.startswith(f"{number}-")]
        assert mine == sorted(mine)


def test_a_writer_that_stays_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streaming.collectors.annotation_log._WAIT_S", 0.1)
    take = taker(settings(events__folder=tmp_path))
    with (
        exclusive_lock(tmp_path / ".annotations.lock", problem="p", remedy="r"),
        pytest.raises(SetupError, match="annotations are being written"),
    ):
        take(DEPLOY)


def test_old_files_go_as_those_of_collectors_do(tmp_path: Path) -> None:
    bounds = {"event_log__retention_at_least_ms": 0, "event_log__retention_ms": 1}
    kept = settings(events__folder=tmp_path, event_log__unread_retention_ms=1, **bounds)
    for text in ("old", "new"):
        taker(kept)(json.dumps({"kind": "deploy", "text": text}).encode())
        threading.Event().wait(0.01)
    assert [event["text"] for event in written(tmp_path)] == ["new"]


@pytest.mark.broker
def test_a_topic_of_events_takes_them_from_everyone(kafka41: Broker) -> None:
    topic = "annotations-of-everyone"
    create_topic(kafka41, topic, 1)
    servers = {"kafka_events__bootstrap_servers": kafka41.bootstrap}
    take = taker(settings(kafka_events__topic=topic, **servers))
    take(DEPLOY)
    take(b'{"kind": "deploy", "text": "v3", "cluster": "c1"}')
    writer_to(settings(), topic=f"{kafka41.bootstrap}/{topic}")(annotation := read(DEPLOY))
    consumer = Consumer({**kafka41.client_settings(), "group.id": "reader of annotations", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = [record for record in (consumer.poll(60) for _ in range(3)) if record is not None]
    consumer.close()
    events = [read(record.value() or b"") for record in records]
    assert [(event.text, event.cluster) for event in events] == [("v2", None), ("v3", "c1"), ("v2", None)]
    assert events[-1] == annotation


def read(body: bytes) -> Annotation:
    found = read_annotation(body, NOW, RULES)
    assert isinstance(found, Annotation)
    return found


def test_without_a_folder_of_events_the_checkpoint_of_a_job_takes_them(tmp_path: Path) -> None:
    live = {"kafka__bootstrap_servers": "127.0.0.1:1", "kafka__cluster": "c1", "job__checkpoint": tmp_path / "job"}
    with pytest.raises(SetupError, match="no job is known"):
        writer_to(settings(**live))
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "identity.json").write_text("{}")
    taker(settings(**live))(DEPLOY)
    assert [event["text"] for event in written(tmp_path / "job" / "collected")] == ["v2"]
