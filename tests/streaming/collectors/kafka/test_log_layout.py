"""Lines of coordinators in the layouts that brokers and containers write: one message, one time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from streaming.collectors.kafka.coordinator_log import CoordinatorLog
from streaming.collectors.kafka.log_layout import Logged, coordinator_message

AT_S = int(datetime(2026, 11, 22, 19, 28, 34, tzinfo=UTC).timestamp())
AT_MS = AT_S * 1_000 + 885
MARK = "[GroupCoordinator 0]: "
NEW_MARK = "[GroupCoordinator id=1 topic=__consumer_offsets partition=7] "
MESSAGE = "Stabilized group g generation 5 (__consumer_offsets-7) with 3 members"
LOGGER = "kafka.coordinator.group.GroupCoordinator"
BERLIN = ZoneInfo("Europe/Berlin")
TEXT = f"[2026-11-22 20:28:34,885] INFO {MARK}{MESSAGE} ({LOGGER})"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {
                "instant": {"epochSecond": AT_S, "nanoOfSecond": 885_123_000},
                "thread": "executor-Heartbeat",
                "level": "INFO",
                "loggerName": LOGGER,
                "message": MARK + MESSAGE,
                "endOfBatch": False,
                "threadPriority": 5,
            },
            id="JsonLayout",
        ),
        pytest.param(
            {"timeMillis": AT_MS, "thread": "t", "level": "INFO", "message": MARK + MESSAGE}, id="JsonLayout to 2.10"
        ),
        pytest.param(
            {
                "@timestamp": "2026-11-22T19:28:34.885Z",
                "ecs.version": "1.2.0",
                "log.level": "INFO",
                "message": NEW_MARK + MESSAGE,
                "log.logger": LOGGER,
            },
            id="EcsLayout",
        ),
        pytest.param(
            {"message": MARK + MESSAGE, "@timestamp": "2026-11-22T20:28:34.885+0100", "@version": 1},
            id="LogstashJsonEventLayoutV1",
        ),
        pytest.param(
            {"version": "1.1", "host": "h", "short_message": MARK + MESSAGE, "timestamp": AT_S + 0.885, "level": 6},
            id="GelfLayout",
        ),
        pytest.param(
            {"timestamp": "2026-11-22T19:28:34.885Z", "severity": "INFO", "message": MARK + MESSAGE}, id="GcpLayout"
        ),
        pytest.param(
            {"log": TEXT + "\n", "stream": "stdout", "time": "2026-11-22T19:28:34.885999Z"}, id="a container's log"
        ),
        pytest.param({"event": TEXT, "timestamp": "soon", "time": None}, id="the time within the text"),
        pytest.param({"thread": MARK, "message": MARK + MESSAGE, "ts": AT_MS}, id="the mark twice"),
    ],
)
@pytest.mark.parametrize("line", ["{}", "{}\r\n", "{},", ",{}"])
def test_a_json_line_has_the_message_and_the_time_of_its_fields(fields: dict[str, Any], line: str) -> None:
    line = line.replace("{}", json.dumps(fields))
    assert coordinator_message(line, BERLIN) == Logged(AT_MS, MESSAGE)
    log = CoordinatorLog("c", zone=BERLIN)
    (event,) = log.events_of(line)
    assert (event.event_time, log.understood, log.unknown) == (AT_MS, 1, 0)


def test_text_in_json_keeps_quotes_brackets_and_line_breaks() -> None:
    reason = 'client reason: he said "}" {and}\nleft'
    line = json.dumps({"message": f"{NEW_MARK}[Group g] Member b-1 has left group; {reason}", "timeMillis": AT_MS})
    assert coordinator_message(line, UTC) == Logged(AT_MS, f"[Group g] Member b-1 has left group; {reason}")


def test_a_json_line_behind_the_time_of_the_container_has_its_own_time_or_that_one() -> None:
    before = "2026-11-22T19:28:34.885123456Z stdout F "
    assert coordinator_message(before + json.dumps({"message": MARK + MESSAGE}), UTC) == Logged(AT_MS, MESSAGE)
    with_time = json.dumps({"message": MARK + MESSAGE, "timeMillis": AT_MS + 5})
    assert coordinator_message(before + with_time, UTC) == Logged(AT_MS + 5, MESSAGE)


def test_text_that_only_begins_like_json_is_read_as_text() -> None:
    line = f'{{"time": "2026-11-22T19:28:34.885Z", "message": "{MARK}{MESSAGE}'
    assert coordinator_message(line, UTC) == Logged(AT_MS, MESSAGE)


@pytest.mark.parametrize("time", [{}, {"instant": {}}, {"instant": {"epochSecond": "1"}}, {"time": True}, {"ts": -1}])
def test_a_json_line_without_a_time_is_counted(time: dict[str, Any]) -> None:
    line = json.dumps({"message": MARK + MESSAGE} | time)
    assert coordinator_message(line, UTC) == Logged(None, MESSAGE)
    log = CoordinatorLog("c")
    assert log.events_of(line) == []
    assert log.unknown == 1


@pytest.mark.parametrize(
    "line", ["", "{}", TEXT.replace("GroupCoordinator 0", "Partition orders-0"), json.dumps({"deep": {"is": MARK}})]
)
def test_other_lines_are_none_of_a_coordinator(line: str) -> None:
    assert coordinator_message(line, UTC) is None
