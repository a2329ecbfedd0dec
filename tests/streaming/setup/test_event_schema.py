"""The file with the schema of events: written beside the defaults, and as the code has it."""

from streaming.settings.conf_files import conf_file
from streaming.setup import event_schema


def test_the_file_is_written_beside_the_defaults(tmp_path, monkeypatch):
    monkeypatch.setattr(event_schema, "conf_file", lambda name: tmp_path / name)
    event_schema.main()
    [written] = tmp_path.iterdir()
    assert written.read_bytes() == conf_file(event_schema.EVENT_SCHEMA_FILE).read_bytes()
