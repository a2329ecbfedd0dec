"""The errors of tables: each ends a command in its own way, and none needs a table to be opened."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streaming.commands import app
from streaming.tables.errors import AmbiguousError, NoTablesError, NotFoundError, TableError

ERRORS = (TableError, NoTablesError, NotFoundError, AmbiguousError)


@pytest.mark.parametrize("kind", ERRORS)
def test_none_is_a_kind_of_another_nor_one_of_the_machine(kind: type[Exception]) -> None:
    assert [other for other in (*ERRORS, OSError, ValueError) if issubclass(kind, other)] == [kind]


def test_a_table_that_cannot_be_used_ends_a_command_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise TableError("t is another table. Choose a folder with --tables.")

    monkeypatch.setattr(app, "app", fail)
    with pytest.raises(SystemExit) as ended:
        app.run_app()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: t is another table. Choose a folder with --tables.\n"


def test_importing_them_loads_neither_arrow_nor_delta() -> None:
    script = "import sys, streaming.tables.errors; print({'pyarrow', 'deltalake', 'numpy'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "set()\n"
