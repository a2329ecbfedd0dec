"""Log lines as a user finds them on standard error."""

from __future__ import annotations

import json
import subprocess
import sys

_SCRIPT = """
import logging
from streaming.machine.logs import configure, logger
configure("info", "json")
configure("info", "json")
logging.info("Exception while sending command.", exc_info=RuntimeError("Java has ended"))
logging.warning("of somebody else")
logger("job").info("batch", batch=3)
"""


def test_each_line_is_one_record_and_the_end_of_java_is_none() -> None:
    output = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True).stderr
    records = [json.loads(line) for line in output.splitlines()]
    assert [(record["logger"], record["level"], record["msg"]) for record in records] == [
        ("root", "warning", "of somebody else"),
        ("job", "info", "batch"),
    ]
    assert records[1]["batch"] == 3
