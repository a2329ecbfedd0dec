"""Shell: the commands. Each is in its own file; heavy modules are imported inside, so that --help is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from streaming.commands.advise import advise
from streaming.commands.alerts import alerts
from streaming.commands.allocate import allocate
from streaming.commands.annotate import annotate
from streaming.commands.check import PluginCommand, check
from streaming.commands.collect import collect
from streaming.commands.command_group import CommandGroup, complain, options_of_all
from streaming.commands.demo import demo
from streaming.commands.explain import explain
from streaming.commands.mcp import mcp
from streaming.commands.optimize import optimize
from streaming.commands.pack import pack
from streaming.commands.query import query
from streaming.commands.replay import replay
from streaming.commands.run import run
from streaming.commands.serve import serve
from streaming.commands.setup import setup
from streaming.commands.show import app as show
from streaming.commands.simulate import simulate
from streaming.commands.state import app as state
from streaming.commands.what_if import what_if
from streaming.commands.who_owned import who_owned
from streaming.settings.errors import SettingsError
from streaming.setup.errors import SetupError, UnreachableError
from streaming.setup.packages import error_of_import
from streaming.spark.checkpoint import CheckpointError
from streaming.stores.failure import is_of_delta, one_line
from streaming.tables.errors import TableError
from udfs.model.errors import StateVersionError

FAILED = 1

app = typer.Typer(
    name="rebalance-monitor",
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.callback()(options_of_all)
app.command()(run)
app.command()(demo)
app.command()(simulate)
app.command()(collect)
app.command()(annotate)
app.command()(allocate)
app.add_typer(show, name="show")
app.command(name="who-owned")(who_owned)
app.command()(explain)
app.command(name="what-if")(what_if)
app.command()(replay)
app.command()(advise)
app.command()(serve)
app.command()(mcp)
app.command()(query)
app.command(cls=PluginCommand)(check)
app.command()(alerts)
app.add_typer(state, name="state")
app.command()(optimize)
app.command()(setup)
app.command()(pack)


def run_app() -> None:
    """Run the command of the arguments; print errors as messages, not as tracebacks."""
    _open_what_was_closed()
    # A store's client writes pages of warnings while it looks for credentials; errors are reported here.
    os.environ.setdefault("RUST_LOG", "error")
    try:
        app()
    except SettingsError as error:
        complain(*error.mistakes)
    except UnreachableError as error:
        complain(str(error), exit_code=FAILED)
    except (SetupError, CheckpointError, StateVersionError, TableError) as error:
        complain(str(error))
    except BrokenPipeError:
        # The reader of the output has closed it, e.g. head(1).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        # The disk is full or a folder was removed, so the output is incomplete.
        place = f"{error.filename}: " if error.filename else ""
        complain(f"{place}{error.strerror or one_line(error)}", exit_code=FAILED)
    except ModuleNotFoundError as error:
        if (missing := error_of_import(error)) is None:
            raise
        complain(str(missing))
    except Exception as error:
        if not is_of_delta(error):
            raise
        # The log is damaged, or a permission was revoked in the meantime.
        complain(f"the tables cannot be used: {one_line(error)}", exit_code=FAILED)


def _open_what_was_closed() -> None:
    """Discard the output if the caller closed its file (`>&-`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for the process
