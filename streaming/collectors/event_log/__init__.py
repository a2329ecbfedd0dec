"""Shell: where a collector appends its events: a folder of files of JSON lines, or a Kafka topic."""

from streaming.collectors.event_log.file_log import EventFiles
from streaming.collectors.event_log.log import EventLog, LogFull, LogLimits, Memory
from streaming.collectors.event_log.topic_log import EventTopic

__all__ = ["EventFiles", "EventLog", "EventTopic", "LogFull", "LogLimits", "Memory"]
