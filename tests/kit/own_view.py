"""What one module sees of a library, changed for it alone: other threads of the test process keep the library's own."""

from __future__ import annotations

import types
from typing import Any

import pytest


def patch_in(monkeypatch: pytest.MonkeyPatch, module: types.ModuleType, library: str, **functions: Any) -> None:
    """Give a module other functions of a library that it imported by name: `time`, `os`, `subprocess` and the like."""
    view = types.SimpleNamespace(**{**vars(getattr(module, library)), **functions})
    monkeypatch.setattr(module, library, view)
