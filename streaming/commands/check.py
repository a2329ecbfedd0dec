"""Command: `check`: one line and an exit code for monitoring systems and CI, like a Nagios plugin."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from streaming.commands.options import ClusterOption, ConfigOption, GroupOption, TablesOption, TimeOption, path_option
from streaming.terminal.format import count
from udfs.model.first_few import first_few

if TYPE_CHECKING:
    from dashboard.reading.objectives import Evaluation, Figure

# Nagios Plugin Development Guidelines, "Plugin Return Codes".
EXIT_CODES = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
_NAMED = 5
_LONGEST_ID = 100
_LONGEST = 1_000
_LONGEST_PLATFORM = 300


class PluginCommand(TyperCommand):
    """A command that reports usage errors as unknown on stdout, because exit code 2 would mean critical."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **named: Any) -> Any:
        """Parse the arguments."""
        with _unknown_usage(as_json="--json" in args):
            return super().make_context(info_name, args, *more, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _unknown_usage(as_json=bool(ctx.params.get("as_json"))):
            return super().invoke(ctx)


@contextmanager
def _unknown_usage(*, as_json: bool) -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        if getattr(error, "exit_code", None) == EXIT_CODES["critical"]:
            error.exit_code = EXIT_CODES["unknown"]
            # Monitors show stdout, so the usage goes to stderr.
            sys.stdout.write(_unknown_line(error.format_message(), as_json=as_json))
        raise


def check(
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=WARNING[:CRITICAL]",
            help="rebalances_per_hour, queue_outage_s, queue_outage_s_per_day (of one group) or source_delay_s (of one"
            " cluster),"
            " with the values from which it is a warning, and critical. Default: the settings [check].",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Findings of this kind do not count, e.g. idle_members.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Span of rates, outages and delays, e.g. 1h.")
    ] = None,
    plan: Annotated[
        Path | None, path_option("Instead: what planned changes would do, by this file (docs/what-if.md).", "FILE")
    ] = None,
    at: TimeOption = None,
    cluster: ClusterOption = None,
    group: GroupOption = None,
    tables: TablesOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all values.")] = False,
) -> None:
    """Print one line and exit 0 (ok), 1 (warning), 2 (critical) or 3 (unknown) by open findings and objectives.

    Open findings of severity critical are critical, those of severity warning a warning. Kinds that are widespread, see
    the settings [widespread], are named and do not count, and so are Kubernetes clusters whose pods are not known.
    Unknown: the present of a cluster is not known, because the cluster, the job or their connection is away
    (check.blind_state makes that critical); nothing is known of a cluster at the time --at, which is before the first
    row about it or after the last knowledge; the tables cannot be read or do not know --cluster or --group; or the
    arguments cannot be used.
    """
    from deltalake.exceptions import DeltaError

    from streaming.commands.options import span_ms, time_ms
    from streaming.settings.errors import SettingsError
    from streaming.stores.failure import one_line

    at_ms, window_ms = time_ms("--at", at), span_ms(window, "--window")
    overrides: dict[str, object] = {"job.tables": tables, "check.window_ms": window_ms}
    for text in objective or []:
        overrides |= _objective(text)
    if plan is not None and (objective or ignore or window or group):
        raise typer.BadParameter("--plan: its objectives and groups are those of the file; only with --at, --cluster")
    try:
        if plan is not None:
            _show_plan(plan, overrides, config, at_ms, cluster, as_json=as_json)
        found = _evaluated(overrides, config, at_ms, cluster, group, ignore or [])
    except SettingsError as error:
        _unknown("; ".join(error.mistakes), as_json=as_json)
    except (OSError, DeltaError) as error:
        _unknown(one_line(error), as_json=as_json)
    except Exception as error:  # noqa: BLE001 - whatever keeps the tables from being read, the state is unknown
        _unknown(str(error) or type(error).__name__, as_json=as_json)
    if as_json:
        sys.stdout.write(json.dumps(_json(found), ensure_ascii=False) + "\n")
    else:
        figures = (_performance(figure, is_known=not found.blind) for figure in found.figures)
        sys.stdout.write(f"{sentence(found)} | {' '.join(figures)}\n")
    sys.exit(EXIT_CODES[found.state])


def _objective(text: str) -> dict[str, object]:
    from dashboard.reading.objectives import OBJECTIVES

    name, equals, values = text.partition("=")
    warning, _, critical = values.partition(":")
    try:
        limits = float(warning), float(critical or 0)
    except ValueError:
        limits = None
    if name not in OBJECTIVES or not equals or limits is None:
        raise typer.BadParameter(f"--objective: {text!r} is not NAME=WARNING[:CRITICAL] with {', '.join(OBJECTIVES)}")
    changed: dict[str, object] = {f"check.{name}_warning": limits[0]}
    if critical:
        changed[f"check.{name}_critical"] = limits[1]
    return changed


def _evaluated(
    overrides: dict[str, object], config: Any, at_ms: int | None, cluster: str | None, group: str | None, ignored: Any
) -> Evaluation:
    from dashboard.reading.objectives import evaluate
    from dashboard.reading.opened_tables import OpenedTables
    from streaming.commands.options import reader_settings
    from streaming.views.name_checks import require_present

    settings = reader_settings(config, overrides)
    tables = OpenedTables(settings.job.tables)
    require_present(tables, cluster, group)
    limits, widespread = settings.check, settings.widespread
    return evaluate(tables, limits, widespread, at_ms, cluster=cluster, group=group, ignored=ignored)


def _show_plan(
    plan: Path,
    overrides: dict[str, object],
    config: Path | None,
    at_ms: int | None,
    cluster: str | None,
    *,
    as_json: bool,
) -> NoReturn:
    from dashboard.reading.opened_tables import OpenedTables
    from dashboard.reading.planned_objectives import judge
    from streaming.commands.check_plan import plan_lines, plan_row, state_of
    from streaming.commands.options import reader_settings
    from streaming.settings.plan import read_plan

    planned, settings = read_plan(plan), reader_settings(config, overrides)
    # What custom strategies print as they are loaded is no part of the answer.
    with redirect_stdout(sys.stderr):
        judged = judge(OpenedTables(settings.job.tables), planned, settings, at_ms, cluster)
    lines = [json.dumps(plan_row(judged), ensure_ascii=False)] if as_json else plan_lines(judged)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.exit(EXIT_CODES[state_of(judged)])


def sentence(found: Evaluation) -> str:
    """Return the state and its reasons in one line without the characters that plugins use as separators.

    Example:
        >>> from dashboard.reading.objectives import Evaluation
        >>> sentence(Evaluation([], []))
        'REBALANCES OK - no open findings'
    """
    reasons = [_blind(found)] if found.blind else []
    if found.findings:
        kinds = [f"{number} {severity} {kind}" for (severity, kind), number in found.kinds.items()]
        first = found.findings[0]
        where = plain("/".join(filter(None, (first["cluster"], first["group_id"]))))
        reasons.append(f"open findings: {', '.join(_first(kinds, 'kinds more'))}, first of {where}")
    reasons += [_missed(figure) for figure in found.figures if figure.state != "ok"]
    recordings = [f"{plain(recording.cluster)} is {recording.text}" for recording in found.recordings]
    platforms = [plain(text, _LONGEST_PLATFORM) for text in found.platforms]
    budgets = [_budget(figure, is_known=not found.blind) for figure in found.figures if figure.is_budget]
    more = [*budgets, *_widespread(found), *_first(recordings, "more recordings"), *_first(platforms)]
    return plain(f"REBALANCES {found.state.upper()} - {'; '.join([*(reasons or [_nothing(found)]), *more])}", _LONGEST)


def _first(texts: Sequence[str], more: str = "more") -> list[str]:
    """Return the first few texts, and how many more there are."""
    others = len(texts) - _NAMED
    return [*texts[:_NAMED], *([f"{others} {more}"] if others > 0 else [])]


def _blind(found: Evaluation) -> str:
    """Return the clusters whose present is unknown, and why; a reason shared by several clusters is written once."""
    if not found.blind[0].cluster:
        return f"no cluster is known: {found.blind[0].reason}"
    texts: dict[str, list[str]] = {}
    for cluster in found.blind:
        texts.setdefault(cluster.text, []).append(plain(cluster.cluster))
    return "; ".join(_first([f"{_several(names)} {text}" for text, names in texts.items()]))


def _several(names: list[str]) -> str:
    return first_few(names, _NAMED) + (" clusters" if len(names) > _NAMED else "")


def _nothing(found: Evaluation) -> str:
    """Return that nothing is wrong, for exactly what was checked."""
    counted = " that count" if found.widespread or found.info else ""
    info = f" ({found.info} of severity info)" if found.info else ""
    objectives = [figure for figure in found.figures if figure.warning or figure.critical]
    met = f", {len(objectives)} objectives met" if len(objectives) > 1 else ", objective met" if objectives else ""
    return f"no open findings{counted}{info}{met}"


def _widespread(found: Evaluation) -> list[str]:
    """Return the kinds that are not counted because they are open in many groups."""
    names = [plain(kind.text) for kind in found.widespread]
    return [f"widespread, not counted: {', '.join(_first(names))}"] if names else []


def _missed(figure: Figure) -> str:
    limit = figure.critical if figure.state == "critical" else figure.warning
    where = plain("/".join(filter(None, (figure.cluster, figure.group_id))))
    value = f"{_number(figure.value)}{f' in {where}' if where else ''}"
    if figure.state == "unknown":
        return f"{figure.name} is at least {value}: for {count(figure.unknown_queues, 'queue')} the end is unknown"
    return f"{figure.name} is {value} ({figure.state} from {_number(limit)})"


def _budget(figure: Figure, *, is_known: bool) -> str:
    """Return how much of a budget the group that used most has used, and what is left."""
    if not is_known and figure.cluster is None:
        return "budget of a day: what is used is unknown"
    least = "at least " if figure.unknown_queues or not is_known else ""
    where = plain("/".join(filter(None, (figure.cluster, figure.group_id))))
    left = f"{_number(figure.critical - figure.value)} s left" if figure.value <= figure.critical else "none left"
    share = f"{figure.value / figure.critical:.0%} of {_number(figure.critical)} s"
    used = f"{least}{share} used{f' in {where}' if where else ''}"
    return f"budget of a day: {used}, {f'at most {left}' if least and figure.value < figure.critical else left}"


def plain(text: str, longest: int = _LONGEST_ID) -> str:
    """Return a text without the characters that plugins use as separators, and not longer than this."""
    from streaming.terminal.escape import printable

    text = printable(text).replace("|", "¦")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _performance(figure: Figure, *, is_known: bool) -> str:
    # 'label'=value[UOM];warn;crit;min; U is a value that is not known.
    value = _number(figure.value) if is_known else "U"
    unit = "s" if figure.name.endswith(("_s", "_s_per_day")) and is_known else ""
    limits = (_number(limit) if limit else "" for limit in (figure.warning, figure.critical))
    return f"{figure.name}={value}{unit};{';'.join(limits)};0"


def _number(value: float) -> str:
    """Return a number with up to three decimals and never with an exponent."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _json(found: Evaluation) -> dict[str, object]:
    from streaming.terminal.output import TIMES, with_times

    return {
        "state": found.state,
        "exit_code": EXIT_CODES[found.state],
        "message": sentence(found),
        "widespread": [
            {"cluster": kind.cluster, "kind": kind.kind, "groups": kind.groups, "of_groups": kind.of_groups}
            for kind in found.widespread
        ],
        "findings": with_times(list(found.findings), TIMES),
        "blind": with_times([cluster.row for cluster in found.blind], TIMES),
        "platforms": list(found.platforms),
        "recordings": with_times([recording.row for recording in found.recordings], TIMES),
        "objectives": [_objective_row(figure, is_known=not found.blind) for figure in found.figures],
    }


def _objective_row(figure: Figure, *, is_known: bool) -> dict[str, object]:
    """Return a figure; where clusters are blind, only what misses its objective all the same has a value."""
    is_shown = is_known or figure.state in ("warning", "critical")
    budget: dict[str, object] = {}
    if figure.is_budget:
        left = max(0.0, figure.critical - figure.value)
        ratio = figure.value / figure.critical if is_shown else None
        budget = {"used_ratio": ratio, "left": left if is_known or not left else None}
    return {
        "name": figure.name,
        "state": figure.state if is_shown else "unknown",
        "value": figure.value if is_shown else None,
        "unknown_queues": figure.unknown_queues,
        "warning": figure.warning or None,
        "critical": figure.critical or None,
        "cluster": figure.cluster,
        "group_id": figure.group_id,
        **budget,
    }


def _unknown(reason: str, *, as_json: bool) -> NoReturn:
    sys.stdout.write(_unknown_line(reason, as_json=as_json))
    sys.exit(EXIT_CODES["unknown"])


def _unknown_line(reason: str, *, as_json: bool) -> str:
    line = plain(f"REBALANCES UNKNOWN - {reason}", _LONGEST)
    shown = {"state": "unknown", "exit_code": EXIT_CODES["unknown"], "message": line}
    return f"{json.dumps(shown) if as_json else line}\n"
