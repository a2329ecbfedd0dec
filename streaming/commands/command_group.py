"""Shell: the list of commands, with whole sentences in its help and one format for usage errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort, TyperException

from streaming.commands.examples import EXAMPLES
from streaming.settings.suggestions import did_you_mean

if TYPE_CHECKING:
    from streaming.settings.locations import Location

USAGE_EXIT = 2


class CommandGroup(TyperGroup):
    """Commands whose usage errors are lines that begin with ``error:``, like all other errors."""

    def main(self, args: Sequence[str] | None = None, *more: Any, standalone_mode: bool = True, **named: Any) -> Any:
        """Run the command of the arguments."""
        named["standalone_mode"] = False
        if not standalone_mode:
            return super().main(args, *more, **named)
        try:
            exit_code = super().main(args, *more, **named)
        except TyperException as error:
            if error.format_message().startswith("Usage: "):
                # Only the name of a group of commands was given, so the message is its help.
                sys.stderr.write(f"{error.format_message()}\n")
                sys.exit(error.exit_code)
            complain(usage_sentence(error), exit_code=error.exit_code)
        except Abort:
            complain("aborted", exit_code=1)
        sys.exit(exit_code if isinstance(exit_code, int) else 0)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, with examples at the end of its help."""
        command = super().get_command(ctx, cmd_name)
        _, _, above = ctx.command_path.partition(" ")
        lines = EXAMPLES.get(f"{above} {cmd_name}".strip())
        if command is not None and lines:
            # The character keeps the lines as they are.
            command.epilog = "\b\nExamples:\n" + "\n".join(f"  rebalance-monitor {line}" for line in lines)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with the complete first sentence of its help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first_sentence(command.help or "")) for name, command in found if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    sentence = paragraph.split(". ", maxsplit=1)[0].removesuffix(".")
    return sentence if sentence.endswith("?") else f"{sentence}."


def warn_if_blind(root: Location, clusters: Iterable[str]) -> None:
    """Write on standard error which clusters' present is unknown, and why: later rebalances may be in no table."""
    from streaming.terminal.escape import printable
    from streaming.views.liveness_reader import blind_text

    for text in (blind_text(root, cluster) for cluster in clusters):
        if text:
            sys.stderr.write(f"{printable(text)}\n")


def announce(doing: str) -> None:
    """Write at once, on a terminal, what a command does before its first output; logs of services omit it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"rebalance-monitor: {doing} …\n")
        sys.stderr.flush()


def complain(*mistakes: str, exit_code: int = USAGE_EXIT) -> NoReturn:
    """Write each mistake as one line on standard error, and exit.

    Args:
        mistakes: Sentences; further lines of a mistake, such as a remedy, are written unchanged.
        exit_code: 2 if the same command can never work; 1 if it may work later.
    """
    for mistake in mistakes:
        sys.stderr.write(f"error: {mistake}\n")
    sys.exit(exit_code)


def usage_sentence(error: TyperException) -> str:
    """Return the usage error as one sentence that names the option or argument."""
    message = error.format_message()
    possible = getattr(error, "possibilities", None)
    option = getattr(error, "option_name", None)
    if possible is not None or message.startswith("No such option"):
        meant = f"; did you mean {' or '.join(sorted(possible))}?" if possible else "; --help lists them"
        return f"there is no option {option}{meant}"
    if message.startswith("Invalid value: "):
        return message.removeprefix("Invalid value: ")
    if message.startswith("Invalid value for "):
        hint, _, why = message.removeprefix("Invalid value for ").partition(": ")
        why = re.sub(r"^Input should be (.*?)(?:, unable to parse.*)?$", r"it must be \1", why.removesuffix("."))
        return f"{hint.replace(chr(39), '').replace(' / ', ', ')}: {why}"
    if message.startswith("Missing "):
        _, _, name = message.removesuffix(".").removeprefix("Missing ").partition(" ")
        return f"{name.replace(chr(39), '')} is missing; --help explains it"
    if unknown := re.match(r"No such command '(.*?)'\.", message):
        there = getattr(getattr(getattr(error, "ctx", None), "command", None), "commands", {})
        return f"there is no command {unknown[1]}{did_you_mean(unknown[1], there)}"
    return message[:1].lower() + message[1:].removesuffix(".")


def show_version(is_wanted: bool) -> None:
    """Print the version and exit, if requested."""
    from importlib.metadata import version

    if is_wanted:
        sys.stdout.write(f"rebalance-monitor {version('rebalance-monitor')}\n")
        raise typer.Exit


def options_of_all(
    *,
    is_version: bool = typer.Option(
        False, "--version", is_eager=True, callback=show_version, help="Print the version and exit."
    ),
) -> None:
    """Follow the rebalances of consumer groups of Kafka, RocketMQ and MetaQ, with their causes."""
