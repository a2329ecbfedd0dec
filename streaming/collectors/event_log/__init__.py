"""Shell: the log to which a collector appends its events: a folder of JSON lines files, or a Kafka topic."""

from streaming.collectors.event_log.event_files import EventFiles
from streaming.collectors.event_log.event_topic import EventTopic
from streaming.collectors.event_log.log import EventLog, ForwardingLog, LogFull, LogLimits, Memory
from streaming.collectors.event_log.quiet_log import QuietLog

__all__ = ["EventFiles", "EventLog", "EventTopic", "ForwardingLog", "LogFull", "LogLimits", "Memory", "QuietLog"]
