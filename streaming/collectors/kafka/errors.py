"""Shell: recognizes failures of a query that come from the broker and pass."""

from __future__ import annotations

import re

# Names of exceptions of kafka-clients and the JDK, as they occur in the messages of Spark's own. Wrong permissions and
# passwords are among them: once they are fixed at the broker, the job should continue.
_CONNECTION = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|Retriable|NotLeaderOrFollower|LeaderNotAvailable"
    r"|BrokerNotAvailable|CoordinatorNotAvailable|CoordinatorLoadInProgress|UnknownTopicOrPartition|NotCoordinator"
    r"|ReplicaNotAvailable|KafkaStorage|FencedLeaderEpoch|UnknownLeaderEpoch|StaleMetadata|UnknownServer"
    r"|SaslAuthentication|SslAuthentication|Authentication|TopicAuthorization|GroupAuthorization|ClusterAuthorization"
    r"|InvalidReplicationFactor)\w*Exception"
    r"|Failed to construct kafka consumer|No resolvable bootstrap urls|Failed to get offsets? for"
    r"|Cannot fetch (?:offset|record)|Timeout of \d+\s?ms expired before (?:the position|successfully)"
    r"|Failed to get records for|Timed out waiting for a node assignment"
)
_MAX_DEPTH = 16
_LONGEST_LINE = 500


def connection_error(exception: BaseException) -> str | None:
    """Return the line with the broker's error; None if there is none."""
    current: BaseException | None = exception
    for _ in range(_MAX_DEPTH):
        if current is None:
            break
        text = f"{type(current).__name__}: {current} {getattr(current, 'desc', '')}"
        found = _CONNECTION.search(text)
        if found is not None:
            return text[found.start() :].splitlines()[0][:_LONGEST_LINE]
        current = current.__cause__ or current.__context__
    return None
