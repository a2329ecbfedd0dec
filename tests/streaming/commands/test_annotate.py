"""The command `annotate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from streaming.commands.app import app
from tests.core_config import core_config
from tests.streaming.collectors.test_annotation_log import written
from udfs.ingest.parser import parse
from udfs.model.annotations import Annotation, annotation_change


def annotate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["annotate", *arguments])


def test_it_writes_an_event_and_prints_its_id(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)]
    what = ["orders 2.4.1", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:01:00Z", "--url", "https://a/42"]
    where = ["--cluster", "main", "--group", "orders*", "--client-id", "a", "--host", "10.0.0.7", "--host", "node-?"]
    done = annotate(*what, *where, "--kind", "scaling", *out)
    assert done.exit_code == 0, done.output
    (event,) = written(tmp_path)
    read = parse(json.dumps(event).encode(), event["event_time"], core_config())
    assert isinstance(read, Annotation)
    assert done.stdout == f"{annotation_change(read).subject}\n"
    assert (read.kind, read.text, read.cluster, read.url) == ("scaling", "orders 2.4.1", "main", "https://a/42")
    assert (read.groups, read.client_ids, read.hosts) == (("orders*",), ("a",), ("10.0.0.7", "node-?"))
    assert (read.from_, read.to) == (1_767_225_600_000, 1_767_225_660_000)


def test_json_prints_the_event_as_it_was_written(tmp_path: Path) -> None:
    done = annotate("v2\u00ad\x1b[2J\n", "--id", "r42", "--out", str(tmp_path), "--json")
    assert [json.loads(done.stdout)] == written(tmp_path)
    assert done.stdout.isascii()
    assert done.stdout.strip().isprintable()
    assert annotate("v2", "--id", "r42", "--to", "now", "--out", str(tmp_path)).stdout == "r42\n"


def test_the_settings_of_the_job_name_the_folder(tmp_path: Path) -> None:
    config = tmp_path / "monitor.toml"
    config.write_text(f'[events]\nfolder = "{tmp_path / "events"}"\n')
    assert annotate("v2", "--config", str(config)).exit_code == 0
    assert [event["kind"] for event in written(tmp_path / "events")] == ["deploy"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["v2"], "no job is known that would read annotations"),
        (["v2", "--out", "kafka:a b"], "'a b' is not a valid topic name"),
        (["v2", "--out", "kafka:events"], "the broker is missing"),
        ([" ", "--out", "x"], "malformed_text"),
        (["v2", "--out", "x", "--url", "javascript:alert(1)"], "malformed_url"),
        (["v2", "--out", "x", "--kind", "\x1b[2J"], "control_character_in_kind: '\\x1b[2J'"),
        (["v2", "--out", "x", "--from", "soon"], "--from: 'soon' is not a time"),
        (["v2", "--out", "x", "--from", "1m", "--to", "2m"], "to_before_from"),
    ],
)
def test_mistakes_are_named_and_write_nothing(
    arguments: list[str], said: str, complaint: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = complaint("annotate", *arguments)
    assert said in text
    assert "\x1b" not in text
    assert list(tmp_path.glob("x/*.jsonl")) == []
