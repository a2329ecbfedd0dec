"""Shell: where a collector appends its events: a folder of files of JSON lines, or a Kafka topic."""

from streaming.event_log.files import EventFiles
from streaming.event_log.log import EventLog, Limits, LogFull, Memory
from streaming.event_log.topic import EventTopic

__all__ = ["EventFiles", "EventLog", "EventTopic", "Limits", "LogFull", "Memory"]
