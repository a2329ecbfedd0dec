"""Shell: the options of `run` and `collect` for live clusters."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from streaming.collectors.registry import FOLLOWED
from streaming.settings.locations import location_of, without_key

if TYPE_CHECKING:
    from streaming.settings.model import Settings

_NAMES = " ".join(f"{system}=NAME" for system in FOLLOWED)
_TITLES_WITH_TOPICS = ", ".join(followed.profile.title for followed in FOLLOWED.values() if followed.filters_topics)

ClusterNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster", metavar="NAME", help=f"Name of that cluster; where several are followed, one for each: {_NAMES}."
    ),
]
KafkaProperties: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka-option",
        metavar="KEY=VALUE",
        help="Client property for --kafka, e.g. security.protocol=SASL_SSL. Repeatable.",
    ),
]
KafkaSource: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kafka-source",
        metavar="records|admin|auto",
        help="Where --kafka's groups come from: __consumer_offsets, admin calls (less exact), or as rights allow.",
    ),
]
KafkaLogs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka-log",
        metavar="FILE|GLOB|-",
        help="Also read what the Kafka brokers' group coordinators log (- = standard input): how members departed."
        " Repeatable.",
    ),
]
IncludeGroups: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--include-group", metavar="REGEX", help="Follow only groups that match. Repeatable."),
]
ExcludeGroups: TypeAlias = Annotated[
    list[str] | None, typer.Option("--exclude-group", metavar="REGEX", help="Exclude groups that match. Repeatable.")
]
IncludeTopics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--include-topic", metavar="REGEX", help=f"Follow only topics that match ({_TITLES_WITH_TOPICS}). Repeatable."
    ),
]
ExcludeTopics: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-topic", metavar="REGEX", help=f"Exclude topics that match ({_TITLES_WITH_TOPICS}). Repeatable."
    ),
]

# The address of each system's cluster, if given, as ``with_addresses`` passes it to a command.
Addresses: TypeAlias = Mapping[str, str | None]
EACH_ADDRESS = [f"--{system}" for system in FOLLOWED]


def with_addresses(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each system, e.g. ``--kafka``, in place of its parameter ``addresses``."""

    def with_each(**given: Any) -> None:
        command(addresses={system: given.pop(system) for system in FOLLOWED}, **given)

    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += _address_parameters() if parameter.name == "addresses" else [parameter]
    with_each.__name__, with_each.__doc__ = command.__name__, command.__doc__
    with_each.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    with_each.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return with_each


def _address_parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            system,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                str | None,
                typer.Option(
                    f"--{system}", metavar=followed.metavar, help=f"Follow this live {followed.profile.title} cluster."
                ),
            ],
        )
        for system, followed in FOLLOWED.items()
    ]


def address_settings() -> dict[str, str]:
    """Return the setting that holds the address of each system's cluster."""
    from streaming.settings.clusters import SECTIONS

    return {system: f"{system}.{section.address}" for system, section in SECTIONS.items()}


class ClusterOptions:
    """The live clusters on the command line, as settings, and usage errors.

    Args:
        addresses: As passed by ``with_addresses``.
    """

    def __init__(
        self,
        addresses: Addresses,
        clusters: Sequence[str],
        *,
        include_groups: Sequence[str],
        exclude_groups: Sequence[str],
        include_topics: Sequence[str],
        exclude_topics: Sequence[str],
        kafka_options: Sequence[str],
        kafka_source: str | None = None,
        kafka_logs: Sequence[str] = (),
    ) -> None:
        self.mistakes: list[str] = []
        places = address_settings()
        self.given = [system for system, address in addresses.items() if address is not None]
        # Without an address here, it is in the settings.
        meant = self.given or list(FOLLOWED)
        self.settings: dict[str, object] = {places[system]: address for system, address in addresses.items()}
        self._name_clusters(clusters, meant)
        for system in meant:
            self.settings[f"{system}.include_groups"] = list(include_groups) or None
            self.settings[f"{system}.exclude_groups"] = list(exclude_groups) or None
        with_topics = [system for system, followed in FOLLOWED.items() if followed.filters_topics]
        for system in filter(meant.__contains__, with_topics):
            self.settings[f"{system}.include_topics"] = list(include_topics) or None
            self.settings[f"{system}.exclude_topics"] = list(exclude_topics) or None
        if (include_topics or exclude_topics) and self.given and not set(self.given) & set(with_topics):
            options = " or ".join(f"--{system}" for system in with_topics)
            self.mistakes.append(f"--include-topic and --exclude-topic go with {options}")
        self._read_kafka_options(kafka_options)
        self.settings["kafka.source"] = kafka_source
        self.settings["kafka.logs"] = list(kafka_logs) or None

    def missing(self, config: Path | None, env: Mapping[str, str]) -> list[str]:
        """Return what is certainly missing even if the settings cannot be loaded, because no other check reports it."""
        from streaming.settings.layers import is_setting

        if config is not None or any(map(is_setting, env)):
            return []
        return [_nameless(system) for system in self.given if not self.settings.get(f"{system}.cluster")]

    def _name_clusters(self, clusters: Sequence[str], meant: Sequence[str]) -> None:
        named: set[str] = set()
        for text in clusters:
            system, equals, name = text.partition("=")
            if equals and system in FOLLOWED:
                self.settings[f"{system}.cluster"] = name
                named_now = {system}
                if system not in meant:
                    self.mistakes.append(f"--cluster {text}: its address is missing: add --{system}")
            elif len(self.given) > 1:
                self.mistakes.append(f"--cluster {text}: ambiguous: write --cluster {self.given[0]}={text}")
                continue
            else:
                self.settings |= {f"{system}.cluster": text for system in meant}
                named_now = set(meant)
            if named & named_now:
                self.mistakes.append(f"--cluster {text}: the cluster already has a name")
            named |= named_now

    def _read_kafka_options(self, options: Sequence[str]) -> None:
        for option in options:
            key, equals, value = option.partition("=")
            if equals:
                self.settings[f"kafka.options.{key}"] = value
            else:
                self.mistakes.append(f"--kafka-option {option!r}: write KEY=VALUE")


def _nameless(system: str) -> str:
    return f"--{system} needs --cluster NAME: the name of this cluster in the tables"


def incomplete_clusters(settings: Settings) -> list[str]:
    """Return missing settings of the clusters to follow, and names shared by two of them."""
    followed = settings.followed()
    mistakes = [_nameless(system) for system, cluster in followed.items() if not cluster]
    for cluster, count in Counter(filter(None, followed.values())).items():
        if count > 1:
            mistakes.append(f"--cluster {cluster}: names {count} clusters; each needs a unique name")
    for system in FOLLOWED:
        mistakes += settings.cluster(system).mistakes()
    return mistakes + _unknown_properties(settings)


def unfit_logs(settings: Settings) -> list[str]:
    """Return the mistakes in the paths of the brokers' logs."""
    mistakes: list[str] = []
    paths = settings.kafka.logs
    if not paths:
        return mistakes
    from streaming.collectors.kafka.log_files import STDIN

    if paths.count(STDIN) and len(paths) > 1:
        mistakes.append(f"--kafka-log {STDIN} cannot be combined with other logs")
    files = [path for path in paths if path != STDIN and not has_magic(path)]
    return mistakes + [
        f"--kafka-log {without_key(file)}: {_no_file(file)}" for file in files if not Path(file).is_file()
    ]


def _no_file(text: str) -> str:
    try:
        is_local = isinstance(location_of(text), Path)
    except ValueError as error:
        return str(error)
    return "there is no such file" if is_local else "is on a store; brokers' logs are read from this machine's disk"


def _unknown_properties(settings: Settings) -> list[str]:
    """Return the unknown properties of Kafka's clients."""
    sections = {"kafka.options": settings.kafka, "kafka_events.options": settings.kafka_events}
    options = {where: section.plain_options() for where, section in sections.items()}
    if not any(options.values()):
        return []
    from streaming.collectors.kafka.client_properties import unknown_properties

    return [mistake for where, given in options.items() for mistake in unknown_properties(given, where)]
