"""Templates escape what they are given."""

from __future__ import annotations

import pytest

from dashboard.pages.templating import environment


def test_the_environment_escapes_and_refuses_unname_checks() -> None:
    template = environment().from_string("{{ value }}")
    assert template.render(value="<b>") == "&lt;b&gt;"
    with pytest.raises(Exception, match="undefined"):
        template.render()


def test_the_environment_has_the_cells_of_tables() -> None:
    rendered = environment().from_string("{{ table_rows([], [{}]) }} {{ truth(true) }} {{ 1200 | amount }}").render()
    assert rendered.split() == ["<tr></tr>", "yes", "1,200"]
