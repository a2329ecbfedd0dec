"""Shell: the one error of everything that must be there before the monitor can start."""


class SetupError(Exception):
    """Something outside the project is missing or unfit, and a user can mend it.

    Args:
        problem: what is wrong, with the path or version seen, one sentence.
        way_out: what to do about it, one or more lines.
    """

    def __init__(self, problem: str, way_out: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way_out = way_out

    def __str__(self) -> str:
        indented = "\n".join(f"  {line}" for line in self.way_out.splitlines())
        return f"{self.problem}\n{indented}"
