"""Shell: the commands, each in its own file."""


def main() -> None:
    """Run the command that the arguments name: the entry point `rebalance-monitor`."""
    from streaming.commands.app import run_app

    run_app()
