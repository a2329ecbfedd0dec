"""Shell: the errors of missing prerequisites of the monitor."""


class SetupError(Exception):
    """Something outside the project is missing or unsuitable, and a user can fix it.

    Args:
        problem: what is wrong, with the path or version found, one sentence.
        remedy: what to do about it, one or more lines.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        indented = "\n".join(f"  {line}" for line in self.remedy.splitlines())
        return f"{self.problem}\n{indented}"


class UnreachableError(SetupError):
    """A server that does not answer now; the same command may succeed later without a change."""
