"""Shell: `state`, a look into a checkpoint, and its export as events."""

from __future__ import annotations

import typer

app = typer.Typer(help="Look into a checkpoint, or export it as events for a new one.", no_args_is_help=True)
