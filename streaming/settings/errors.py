"""Shell: the error of settings, separate from the settings, which few commands need and which load slowly."""

import re
from collections.abc import Mapping
from typing import Any


class SettingsError(Exception):
    """Settings that cannot be used: all mistakes at once, each with its place."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


def problem_text(problem: Mapping[str, Any], *, is_secret: bool = False) -> str:
    """Return what pydantic found wrong with a value, without its place; the value of a secret is left out."""
    if problem["type"] == "missing":
        return "is missing"
    if problem["type"] == "value_error":  # the message comes from a section and names the mistake
        return str(problem["msg"]).removeprefix("Value error, ")
    message = problem["msg"].replace("valid tuple", "valid list")
    message = re.sub(r"valid dictionary( or instance of \w+)?", "section of keys and values", message)
    return message if is_secret else f"{message}, not {problem['input']!r}"
