"""Dashboard: arguments that several tools take, as agents read them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from streaming.terminal.time_input import HOW_TO_WRITE

# Of one list; an answer has a size, too.
MOST_ROWS = 100

Cluster: TypeAlias = Annotated[str, Field(description="Cluster; empty = any")]
Group: TypeAlias = Annotated[str, Field(description="Consumer group, its whole name")]
AnyGroup: TypeAlias = Annotated[str, Field(description="Consumer group; empty = any")]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=MOST_ROWS, description="Rows at most")]
At: TypeAlias = Annotated[str, Field(description=f"At this time; empty = now; {HOW_TO_WRITE}")]
Since: TypeAlias = Annotated[str, Field(description="Not before this time, written as `at`")]
Until: TypeAlias = Annotated[str, Field(description="Before this time, written as `at`")]
