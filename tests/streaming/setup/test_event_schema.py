"""The file of the schema is written from the contract."""

from contextlib import contextmanager

from streaming.settings.conf_files import conf_file
from streaming.setup import event_schema


def test_the_file_in_the_checkout_is_what_would_be_written(tmp_path, monkeypatch):
    written = tmp_path / event_schema.EVENT_SCHEMA_FILE

    @contextmanager
    def elsewhere(name):
        yield tmp_path / name

    monkeypatch.setattr(event_schema, "conf_path", elsewhere)
    event_schema.main()
    assert written.read_bytes() == conf_file(event_schema.EVENT_SCHEMA_FILE).read_bytes()
