"""Shell: writes conf/event.schema.json; ``python -m streaming.setup.event_schema`` after the contract has changed."""

from __future__ import annotations

import json

from streaming.settings.conf_files import conf_path
from udfs.model.json_schema import event_schema

EVENT_SCHEMA_FILE = "event.schema.json"


def schema_text() -> str:
    """Return the schema as it is in the file."""
    return json.dumps(event_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file."""
    with conf_path(EVENT_SCHEMA_FILE) as file:
        file.write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
