"""Shell: the options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from streaming.settings.locations import Location, folder_of, hand_on, location_of, tables_of, without_key
from streaming.stores.access import require_stores

if TYPE_CHECKING:
    from streaming.settings.model import Settings
    from streaming.views.related_annotations import AnnotationSpans
    from udfs.model.config import CoreConfig


def path_option(help_text: str, metavar: str = "DIR") -> Any:
    """Return an option that names a folder or file; ``help_text`` is its help."""
    return typer.Option(metavar=metavar, parser=_given_path, help=help_text)


def location_option(help_text: str) -> Any:
    """Return an option that names a folder, or its URI on a store; ``help_text`` is its help."""
    return typer.Option(metavar="DIR", parser=_given_folder, help=help_text)


def _given_folder(text: str) -> str:
    return _given_location(text, folder_of)


def _given_location(text: str, read: Callable[[object], Location] = tables_of) -> str:
    try:
        read(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{without_key(text)}: {error}" if text.strip() else "is empty; . is the folder in which the command runs"
        ) from error
    return text


def _given_path(text: str | Path) -> Path:
    # An empty path comes from an unset variable, and would mean the working folder.
    if not str(text).strip():
        raise typer.BadParameter("is empty; . is the folder in which the command runs")
    try:
        location = location_of(text)
    except ValueError as error:
        raise typer.BadParameter(f"{without_key(str(text))}: {error}") from error
    if not isinstance(location, Path):
        raise typer.BadParameter(f"{text}: is on a store; this must be on the disk of this machine")
    return location


TablesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        parser=_given_location,
        help="Folder or URI (s3, abfss, gs, hdfs) of the tables, or catalog.schema. Default: the setting job.tables.",
    ),
]
IntoOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="DIR",
        parser=_given_location,
        help="Folder, URI or catalog.schema of the tables replays and replay_groups. Default: that of the tables.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None, path_option("Settings file; conf/default.toml lists every setting.", "FILE")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object per line; times in RFC 3339.")]
GroupOption: TypeAlias = Annotated[str | None, typer.Option("--group", "-g", metavar="GROUP", help="Only this group.")]
ClusterOption: TypeAlias = Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="Only this cluster.")]
TimeOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="State at this time: 15m (ago), RFC 3339, or epoch ms. Default: now."),
]
SinceOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Not before: 15m or -2h (ago), yesterday, RFC 3339, or epoch ms."),
]
UntilOption: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before; as --since.")]
LimitOption: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", metavar="N", min=1, help="Maximum number of rows.")
]
WideOption: TypeAlias = Annotated[bool, typer.Option("--wide", help="All columns, nothing shortened or cut.")]


def tables_root(tables: str | None, config: Path | None = None) -> Location:
    """Return the root of the tables from the option, else from the settings."""
    if tables is not None and config is None and isinstance(tables_of(tables), Path):
        return tables_of(tables)
    return reader_settings(config, {"job.tables": tables}).job.tables


def reader_settings(config: Path | None, overrides: Mapping[str, object]) -> Settings:
    """Load the settings of a command that reads the tables.

    Raises:
        SettingsError: They cannot be used, or the tables' store cannot be read.
    """
    from streaming.settings.model import load

    settings = load(config, overrides, os.environ)
    hand_on(settings.storage.plain_options(), os.environ)
    require_stores({}, {"--tables": settings.job.tables})
    return settings


def core_config(config: Path | None) -> CoreConfig:
    """Return the settings of the core; the model of all settings, which is slow, is loaded only if some are set."""
    from streaming.settings.defaults import default_core_config
    from streaming.settings.layers import is_setting

    if config is None and not any(map(is_setting, os.environ)):
        return default_core_config()
    return reader_settings(config, {}).core_config()


def annotation_spans(config: Path | None) -> AnnotationSpans:
    """Return which annotations are near something, by the settings; they are loaded only if some are set."""
    from streaming.settings.layers import is_setting
    from streaming.views.related_annotations import DEFAULT_SPANS, AnnotationSpans

    if config is None and not any(map(is_setting, os.environ)):
        return DEFAULT_SPANS
    return AnnotationSpans.of(reader_settings(config, {}).annotations)


def time_ms(option: str, text: str | None) -> int | None:
    """Parse a time given as an option.

    Raises:
        typer.BadParameter: The text is not a time.
    """
    if text is None:
        return None
    from streaming.machine.clock import now_ms
    from streaming.terminal.time_input import parse_time

    try:
        return parse_time(text, now_ms())
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from error


def chosen_of(option: str, text: str | None, values: Sequence[str]) -> Any:
    """Return the value of an option that takes one of a few, ignoring case; None if it was not given.

    Raises:
        typer.BadParameter: The text is not one of them.
    """
    from streaming.settings.suggestions import one_of

    same = [value for value in values if text is not None and value.casefold() == text.casefold()]
    if text is not None and not same:
        raise typer.BadParameter(f"{option}: {one_of(text, values)}")
    return same[0] if same else None


def span_ms(text: str | None, option: str) -> int | None:
    """Return the span in ms; None if the option was not given.

    Raises:
        typer.BadParameter: The text is not a span.
    """
    from streaming.settings.model import duration_ms

    if text is None:
        return None
    try:
        return duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
