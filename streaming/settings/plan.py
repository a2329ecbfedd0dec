"""Shell: a plan, as a TOML file has it: changes of groups, and what they may do to them at most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from streaming.settings.errors import SettingsError, problem_text
from streaming.settings.layers import read_toml
from streaming.settings.model import duration_ms
from streaming.settings.sections import Section
from streaming.settings.suggestions import one_of

# A change takes up to a second; a plan of more is several plans.
MOST_CHANGES = 1_000
_MOST = 10_000

Members = Annotated[int, Field(ge=0, le=_MOST, strict=True)]
Some = Annotated[int, Field(ge=1, le=_MOST, strict=True)]
Names = tuple[Annotated[str, Field(min_length=1)], ...]
Queues = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


def _listed(value: object) -> object:
    """Accept a number in place of names: the N newest members."""
    return (str(value),) if isinstance(value, int) and not isinstance(value, bool) else value


def _in_ms(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"is a span of time in quotes, e.g. '5s', not {value!r}")
    return duration_ms(value)


class Limit(Section):
    """What a change may do at most: above ``value`` it is critical, above ``warn`` a warning."""

    value: Annotated[int, Field(ge=0, strict=True)]
    warn: Annotated[int, Field(ge=0, strict=True)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _alone(cls, given: object) -> object:
        """Accept the value alone."""
        return given if isinstance(given, Mapping | Limit) else {"value": given}

    @model_validator(mode="after")
    def _warns_first(self) -> Limit:
        if self.warn is not None and self.warn >= self.value:
            raise ValueError("warn is not lower than value")
        return self


class SpanLimit(Limit):
    """The same of spans, in ms."""

    value: Annotated[int, BeforeValidator(_in_ms)]
    warn: Annotated[int, BeforeValidator(_in_ms)] | None = None


class Objectives(Section):
    """At most so many queues moved and stopped, idle members, and spread; so long a pause."""

    max_moved: Limit | None = None
    max_stopped: Limit | None = None
    max_pause: SpanLimit | None = None
    max_idle: Limit | None = None
    max_spread: Limit | None = None

    @model_validator(mode="after")
    def _has_any(self) -> Objectives:
        if not self.limits():
            raise ValueError(f"has none of {', '.join(type(self).model_fields)}")
        return self

    def limits(self) -> dict[str, Limit]:
        """Return the objectives that are set, by name."""
        return {name: limit for name, limit in self if limit is not None}


class PlanChange(Section):
    """A change of one group; members, queues and strategy as they shall be."""

    group: Annotated[str, Field(min_length=1)]
    cluster: str | None = None
    members: Some | None = None
    add: Members = 0
    like: str | None = None
    remove: Annotated[Names, BeforeValidator(_listed)] = ()
    lose_host: Names = ()
    lose_rack: Names = ()
    queues: dict[str, Queues] = Field(default_factory=dict)
    strategy: str | None = None
    rolling_restart: Annotated[bool, Field(strict=True)] = False
    at_a_time: Some = 1
    static: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _makes_sense(self) -> PlanChange:
        counted = self.add or self.remove or self.lose_host or self.lose_rack
        if self.members is not None and counted:
            raise ValueError("members says how many there shall be: without add, remove, lose_host and lose_rack")
        if not (self.members or counted or self.queues or self.strategy or self.rolling_restart):
            raise ValueError("changes nothing: it has none of members, add, remove, lose_host, lose_rack, queues, …")
        if self.like is not None and not (self.add or self.members):
            raise ValueError("like: only with add or members")
        if not self.rolling_restart and (self.static or self.at_a_time != 1):
            raise ValueError("static and at_a_time: only with rolling_restart")
        if self.strategy == "all":
            raise ValueError("strategy: a plan has one strategy; `what-if --strategy all` compares them")
        return self


def _some_changes(changes: tuple[PlanChange, ...]) -> tuple[PlanChange, ...]:
    if not 1 <= len(changes) <= MOST_CHANGES:
        raise ValueError(f"a plan has 1 to {MOST_CHANGES} changes, not {len(changes)}")
    return changes


class Plan(Section):
    """A file: what is planned, and what it may do to each group."""

    objectives: Objectives
    change: Annotated[tuple[PlanChange, ...], AfterValidator(_some_changes)]


# What a key belongs to, by the name of the list or section that it is in.
_KEYS: Mapping[str, type[Section]] = {"objectives": Objectives, "change": PlanChange}


def read_plan(path: Path) -> Plan:
    """Return the plan of a file.

    Raises:
        SettingsError: Every mistake, with the file, the key and what is allowed.
    """
    mistakes: list[str] = []
    given = read_toml(path, mistakes)
    if mistakes:
        raise SettingsError(mistakes)
    try:
        return Plan(**given)
    except pydantic.ValidationError as error:
        raise SettingsError([f"{path}: {_sentence(problem)}" for problem in error.errors()]) from error


def _sentence(problem: Mapping[str, Any]) -> str:
    """Return a mistake with its key; changes are counted from 1."""
    parts = [str(part + 1) if isinstance(part, int) else part for part in problem["loc"]]
    key = ".".join(parts)
    if problem["type"] == "extra_forbidden":
        of = Plan if len(parts) == 1 else _KEYS[parts[0]] if len(parts) == 2 + (parts[0] == "change") else Limit
        return f"{key}: {one_of(parts[-1], list(of.model_fields))}"
    return f"{key}: {problem_text(problem)}"
