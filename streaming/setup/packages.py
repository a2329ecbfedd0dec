"""Shell: packages that only some commands need, and how this installation gets them."""

import importlib.util
import sys
from pathlib import Path

from streaming.setup.errors import SetupError

_OF_SPARK = {"delta", "py4j", "pyspark"}


def require_spark() -> None:
    """Raise if Spark is not installed.

    Raises:
        SetupError: It is not; the message has the command that installs it.
    """
    if importlib.util.find_spec("pyspark") is None:
        raise spark_is_missing()


def spark_is_missing() -> SetupError:
    """Return the error of a command that needs Spark where it is not installed."""
    return SetupError(
        "This command needs Spark, which is not installed with this rebalance-monitor.", command_for("job")
    )


def error_of_import(error: ModuleNotFoundError) -> SetupError | None:
    """Return what to install where an optional package is missing; None if the import is simply wrong."""
    return spark_is_missing() if (error.name or "").partition(".")[0] in _OF_SPARK else None


def command_for(extra: str) -> str:
    """Return the command that adds an extra to this installation, by the tool that made it."""
    wanted = f"'rebalance-monitor[{extra}]'"
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").exists():
        return f"pipx install --force {wanted}"
    if (environment / "uv-receipt.toml").exists():
        return f"uv tool install {wanted}"
    return f"{sys.executable} -m pip install {wanted}"
