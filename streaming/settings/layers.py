"""Shell: the layers of settings, a file, the environment, the command line, and their precedence."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import Any, TypeAlias

ENVIRONMENT_PREFIX = "REBALANCE_MONITOR_"
# These variables have the prefix but are not settings of the job.
_OTHER_VARIABLES = frozenset({"CACHE"})
# These sections hold properties of client libraries, whose names contain dots.
_PROPERTIES = (("kafka", "options"), ("kafka_events", "options"), ("spark", "conf"))

Layer: TypeAlias = dict[str, Any]
# The place where the setting of a path was last given.
Origins: TypeAlias = dict[tuple[str, ...], str]


def is_setting(variable: str) -> bool:
    """Return whether an environment variable is a setting of the job."""
    return variable.startswith(ENVIRONMENT_PREFIX) and variable.removeprefix(ENVIRONMENT_PREFIX) not in _OTHER_VARIABLES


def read_toml(path: Traversable, mistakes: list[str]) -> Layer:
    """Return what a TOML file holds, nothing if it cannot be read; its mistakes are added to the list."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        mistakes.append(f"{path}: cannot be read: it is not in UTF-8")
    except (OSError, ValueError) as error:
        is_toml_error = isinstance(error, tomllib.TOMLDecodeError)
        problem = error.strerror if isinstance(error, OSError) else str(error)
        mistakes.append(f"{path}: {'is not TOML' if is_toml_error else 'cannot be read'}: {problem}")
    return {}


def read_file(path: Traversable, mistakes: list[str]) -> Layer:
    """Return the settings of a TOML file; its mistakes are added to the list."""
    layer = read_toml(path, mistakes)
    _join_properties(layer)
    for section, value in list(layer.items()):
        if not isinstance(value, dict):
            mistakes.append(f"{path}: {section}: belongs to no section; write [section], and its keys below it")
            del layer[section]
    return layer


def read_environment(env: Mapping[str, str], mistakes: list[str]) -> Layer:
    """Return the settings of variables; those without ``ENVIRONMENT_PREFIX`` are ignored."""
    layer: Layer = {}
    for variable, value in sorted(env.items()):
        if not is_setting(variable):
            continue
        keys = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if len(keys) < 2 or not all(keys):
            mistakes.append(f"{variable}: is not a setting; write {ENVIRONMENT_PREFIX}SECTION__KEY")
            continue
        place = layer
        for key in keys[:-1]:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                mistakes.append(f"{variable}: the variable without __{keys[-1].upper()} is set, too")
                break
        else:
            place[keys[-1]] = value
    _join_properties(layer)
    return layer


def read_dotted(dotted: Mapping[str, object]) -> Layer:
    """Return the command line's settings, given as ``section.key`` -> value; None is left out.

    Example:
        >>> read_dotted({"job.tables": "t", "kafka.options.security.protocol": "SSL", "job.checkpoint": None})
        {'job': {'tables': 't'}, 'kafka': {'options': {'security.protocol': 'SSL'}}}
    """
    layer: Layer = {}
    for key, value in dotted.items():
        if value is None:
            continue
        section, _, name = key.partition(".")
        options, _, option = name.partition(".")
        if option:
            layer.setdefault(section, {}).setdefault(options, {})[option] = value
        else:
            layer.setdefault(section, {})[name] = value
    return layer


def merge_layer(under: Layer, over: Layer, origin: str, origins: Origins, path: tuple[str, ...] = ()) -> None:
    """Merge one layer over another, key by key, and record the origin of each."""
    for key, value in over.items():
        here = (*path, key)
        if isinstance(value, dict):
            below = under.get(key)
            if not isinstance(below, dict):
                below = under[key] = {}
            origins.setdefault(here, origin)
            merge_layer(below, value, origin, origins, here)
        else:
            under[key] = value
            origins[here] = origin


def _join_properties(layer: Layer) -> None:
    """Rejoin names of properties that TOML or variables split at each dot."""
    for section, name in _PROPERTIES:
        found = layer.get(section)
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found[name] = dict(_joined(found[name]))


def _joined(properties: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in properties.items():
        if isinstance(value, dict):
            yield from _joined(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
