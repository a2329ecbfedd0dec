"""Real instances of a Kafka Streams application as child processes, which say themselves what they hold."""

from pathlib import Path

from tests.kit.brokers import Broker
from tests.kit.jars import class_path
from tests.kit.java_members import java_command
from tests.kit.members import Member


def start_streams_member(broker: Broker, application: str, topic: str, *, client_id: str, folder: Path) -> Member:
    """Start one instance, with one thread, of an application that reads a topic; its group has the classic protocol.

    Args:
        application: The name of its group.
        client_id: The beginning of its member id.
        folder: Where it may keep files.
    """
    properties = {
        **broker.java_settings(None),
        "application.id": application,
        "client.id": client_id,
        "topics": topic,
        "state.dir": str(folder),
        "num.stream.threads": "1",
        "consumer.session.timeout.ms": "6000",
        "consumer.heartbeat.interval.ms": "500",
        "metadata.max.age.ms": "1000",
    }
    return Member(
        [
            *java_command(
                class_path("kafka-streams-4.1.1", "StreamsMember"), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
            ),
            "StreamsMember",
            *(f"{key}={value}" for key, value in properties.items()),
        ]
    )
